import type { Target } from "./targets";

/** A note as it was sent. Its key is made with its first sending, and is not given up before that is settled. */
export interface SentNote {
  key: string;
  target: Target;
  content: string;
  /** Another text was sent with this key before, and may have arrived: the service takes one of them. */
  isMixed: boolean;
  /** It was refused, but a request before it may still arrive: only its key is kept, for the next text. */
  isOver?: boolean;
}

/** By slot, in front of the tab's own storage, which a browser may forbid and which may be full: then a reload forgets. */
const notes = new Map<string, SentNote>();

export function keptNote(slot: string): SentNote | null {
  return notes.get(slot) ?? stored(slot);
}

/** @param note null: it is settled */
export function keepNote(slot: string, note: SentNote | null): void {
  if (note) notes.set(slot, note);
  else notes.delete(slot);
  try {
    if (note) sessionStorage.setItem(slot, JSON.stringify(note));
    else sessionStorage.removeItem(slot);
  } catch {
    // Forbidden or full. The note is in `notes`.
  }
}

function stored(slot: string): SentNote | null {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(slot) ?? "null");
    return isSentNote(kept) ? kept : null;
  } catch {
    return null;
  }
}

/** Another version of the page may have kept something else. */
function isSentNote(kept: unknown): kept is SentNote {
  const { key, target, content } = (kept ?? {}) as Partial<SentNote>;
  return [key, content, target?.id, target?.name].every((text) => typeof text === "string");
}
