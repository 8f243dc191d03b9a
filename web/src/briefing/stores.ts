import { KINDS, kindOf, LONGEST_KEPT, tooMany } from "./draft-slots";

/** A store may be forbidden altogether: then asking for it throws. */
export type Store = () => Storage;
export const OF_TAB: Store = () => sessionStorage;
/** Of all tabs, whoever has signed in. */
export const OF_BROWSER: Store = () => localStorage;

/** null where nothing is there, or another version of the page has left what is no JSON. */
export function readFrom(store: Store, slot: string): unknown {
  try {
    return JSON.parse(store().getItem(slot) ?? "null");
  } catch {
    return null;
  }
}

/**
 * The oldest of its kind go where they are too many.
 * @param kept with the time when it was made, in milliseconds
 * @returns whether it is there after a reload
 */
export function writeTo(store: Store, slot: string, kept: { at: number }): boolean {
  try {
    const others = slotsIn(store, kindOf(slot)).filter((other) => other !== slot);
    for (const old of tooMany(others.map((other) => ({ slot: other, at: madeAt(readFrom(store, other)) }))))
      store().removeItem(old);
    store().setItem(slot, JSON.stringify(kept));
    return true;
  } catch {
    return false;
  }
}

export function removeFrom(store: Store, slot: string): void {
  try {
    store().removeItem(slot);
  } catch {
    // Forbidden, so it was never there.
  }
}

export function slotsIn(store: Store, prefix: string): string[] {
  try {
    return Object.keys(store()).filter((slot) => slot.startsWith(prefix));
  } catch {
    return [];
  }
}

/** What anybody has typed here, and never comes back for, does not stay in the browser for ever. */
export function forgetOld(store: Store): void {
  for (const slot of KINDS.flatMap((kind) => slotsIn(store, kind))) {
    // Of another version of the page it may not be known.
    const at = madeAt(readFrom(store, slot));
    if (at && Date.now() - at > LONGEST_KEPT) removeFrom(store, slot);
  }
}

function madeAt(kept: unknown): number {
  const { at } = (kept ?? {}) as { at?: unknown };
  return typeof at === "number" ? at : 0;
}
