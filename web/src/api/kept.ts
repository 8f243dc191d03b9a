import { useState } from "react";
import type { CombinedError } from "urql";

interface Kept<T> {
  data: T | undefined;
  error: CombinedError | undefined;
}

/**
 * The latest data there was: what is on the screen stays there while newer data cannot be read. An answer with an error lacks
 * something that may be there, or all of it (null), so that it is shown only where there was none without.
 */
export function useKept<T>(data: T | null | undefined, error: CombinedError | undefined): Kept<T> {
  const [whole, keepWhole] = useState<T>();
  const [part, keepPart] = useState<{ data: T; error: CombinedError }>();
  // While it is read anew the client goes on giving such an answer, but without its error.
  const missing = error ?? (data === part?.data ? part?.error : undefined);
  if (data == null) return { data: whole ?? part?.data, error: missing };
  if (!missing && data !== whole) keepWhole(() => data);
  if (missing && data !== part?.data) keepPart({ data, error: missing });
  return { data: missing ? (whole ?? data) : data, error: missing };
}
