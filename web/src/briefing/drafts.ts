import { PREFIX, tooMany } from "./draft-slots";

/** Characters: a note has 60,000 at most, and a browser keeps some five million of a site. */
const LONGEST_DRAFT = 120_000;

interface Draft {
  text: string;
  /** When it was typed, in milliseconds. */
  at: number;
}

/** In front of the browser's stores, which may be forbidden or full: then a reload forgets, and going around in the page does not. */
const typed = new Map<string, string>();

/** What was typed and not sent: in this tab, else in the tab that was typed in last. */
export function keptDraft(slot: string): string {
  return typed.get(slot) ?? (read(() => sessionStorage, slot) ?? read(() => localStorage, slot))?.text ?? "";
}

/** @returns whether it is there after a reload */
export function keepDraft(slot: string, text: string): boolean {
  if (text === "") {
    dropDraft(slot, keptDraft(slot));
    return true;
  }
  typed.set(slot, text);
  if (text.length > LONGEST_DRAFT) return false;
  const draft = JSON.stringify({ text, at: Date.now() } satisfies Draft);
  return [() => sessionStorage, () => localStorage].map((store) => write(store, slot, draft)).includes(true);
}

/** It was sent, or cleared: another text, that another tab has typed since, stays. */
export function dropDraft(slot: string, sent: string): void {
  typed.delete(slot);
  remove(() => sessionStorage, slot);
  if (read(() => localStorage, slot)?.text === sent) remove(() => localStorage, slot);
}

/** A store may be forbidden altogether: then asking for it throws. */
type Store = () => Storage;

function read(store: Store, slot: string): Draft | null {
  try {
    const kept: unknown = JSON.parse(store().getItem(slot) ?? "null");
    const { text, at } = (kept ?? {}) as Partial<Draft>;
    return typeof text === "string" && typeof at === "number" ? { text, at } : null;
  } catch {
    return null;
  }
}

function write(store: Store, slot: string, draft: string): boolean {
  try {
    const kept = store();
    const others = Object.keys(kept).filter((key) => key.startsWith(PREFIX) && key !== slot);
    for (const old of tooMany(others.map((key) => ({ slot: key, at: read(store, key)?.at ?? 0 }))))
      kept.removeItem(old);
    kept.setItem(slot, draft);
    return true;
  } catch {
    return false;
  }
}

function remove(store: Store, slot: string): void {
  try {
    store().removeItem(slot);
  } catch {
    // Forbidden, so it was never there.
  }
}
