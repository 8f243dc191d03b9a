import { type RefObject, useEffect, useEffectEvent, useRef, useState } from "react";

interface Typed {
  field: RefObject<HTMLInputElement | null>;
  typed: string;
  type(text: string): void;
}

/** What is typed in a field. What it says elsewhere, as in the address, is taken over, but never under somebody's hands, but where they went back. */
export function useTyped(said: string): Typed {
  const field = useRef<HTMLInputElement>(null);
  const [typed, type] = useState(said);
  useEffect(() => {
    if (document.activeElement !== field.current) type(said);
  }, [said]);
  const takeOver = useEffectEvent(() => type(said));
  useEffect(() => {
    // Once the address has been read.
    const went = () => setTimeout(takeOver);
    window.addEventListener("popstate", went);
    return () => window.removeEventListener("popstate", went);
  }, []);
  return { field, typed, type };
}
