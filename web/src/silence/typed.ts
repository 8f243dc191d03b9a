import { useSyncExternalStore } from "react";
import { setLoss } from "../ui/losses";
import type { Draft } from "./draft";

let typed: Draft | null = null;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What was typed and not saved, as long as the page is there: a link to another part of it and back loses nothing. */
export const useTyped = (): Draft | null => useSyncExternalStore(subscribe, () => typed);

/** Also of a save that is answered when its form is gone. */
export function changeTyped(change: (before: Draft | null) => Draft | null): void {
  typed = change(typed);
  warnOfTyped(typed !== null);
  for (const listener of listeners) listener();
}

export const warnOfTyped = (isUnsaved: boolean): void => setLoss("settings", isUnsaved);
