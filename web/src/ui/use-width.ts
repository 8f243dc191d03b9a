import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** How wide an element is, in CSS pixels, from its first frame on: a chart drawn to that size keeps its text readable. */
export function useWidth<E extends Element>(atFirst: number): [RefObject<E | null>, number] {
  const element = useRef<E>(null);
  const [width, setWidth] = useState(atFirst);
  useLayoutEffect(() => {
    if (!element.current) return;
    // What is hidden has no width, and is not to be drawn to none.
    const take = (shown = 0) => shown > 0 && setWidth(Math.round(shown));
    take(element.current.clientWidth);
    const observer = new ResizeObserver(([entry]) => take(entry?.contentRect.width));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}
