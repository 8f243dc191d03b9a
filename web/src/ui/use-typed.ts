import { type RefObject, useEffect, useRef, useState } from "react";

interface Typed {
  field: RefObject<HTMLInputElement | null>;
  typed: string;
  type(text: string): void;
}

/** What is typed in a field. What it says elsewhere, as in the address, is taken over, but never under somebody's hands. */
export function useTyped(said: string): Typed {
  const field = useRef<HTMLInputElement>(null);
  const [typed, type] = useState(said);
  useEffect(() => {
    if (document.activeElement !== field.current) type(said);
  }, [said]);
  return { field, typed, type };
}
