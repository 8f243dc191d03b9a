import { type RefObject, useEffect, useRef, useState } from "react";

/** How wide an element is, in CSS pixels, as it changes: a chart drawn to that size keeps its text readable. */
export function useWidth<E extends Element>(atFirst: number): [RefObject<E | null>, number] {
  const element = useRef<E>(null);
  const [width, setWidth] = useState(atFirst);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.round(entry.contentRect.width)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}
