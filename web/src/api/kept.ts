import { useState } from "react";

/** The latest data there was: what is on the screen stays there while newer data cannot be read. */
export function useKept<T>(data: T | undefined): T | undefined {
  const [kept, keep] = useState(data);
  if (data !== undefined && data !== kept) keep(data);
  return data ?? kept;
}
