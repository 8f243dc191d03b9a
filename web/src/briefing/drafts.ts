import { setLoss } from "../ui/losses";
import { OF_BROWSER, OF_TAB, readFrom, removeFrom, type Store, writeTo } from "./stores";
import { isTarget, type Target } from "./targets";

/** Characters: a note has 60,000 at most, and a browser keeps some five million of a site. */
const LONGEST_DRAFT = 120_000;

export interface Draft {
  text: string;
  /** When it was typed, in milliseconds. */
  at: number;
  /** The record that a person has chosen for it. */
  target?: Target;
}

/** In front of the browser's stores, which may be forbidden or full: then a reload forgets, and going around in the page does not. */
const typed = new Map<string, Draft>();

/** What was typed and not sent: in this tab, else in the tab that was typed in last. */
export function keptDraft(slot: string): Draft {
  return typed.get(slot) ?? draftIn(OF_TAB, slot) ?? draftIn(OF_BROWSER, slot) ?? { text: "", at: 0 };
}

/** @returns whether it is there after a reload */
export function keepDraft(slot: string, draft: Draft): boolean {
  if (draft.text === "") {
    dropDraft(slot, keptDraft(slot).text);
    return true;
  }
  typed.set(slot, draft);
  const isShort = draft.text.length <= LONGEST_DRAFT;
  const isKept = isShort && [OF_TAB, OF_BROWSER].map((store) => writeTo(store, slot, draft)).includes(true);
  setLoss(slot, !isKept);
  return isKept;
}

/** It was sent, or cleared: another text, that was typed since here or in another tab, stays. */
export function dropDraft(slot: string, sent: string): void {
  if (keptDraft(slot).text === sent) {
    typed.delete(slot);
    removeFrom(OF_TAB, slot);
    setLoss(slot, false);
  }
  if (draftIn(OF_BROWSER, slot)?.text === sent) removeFrom(OF_BROWSER, slot);
}

function draftIn(store: Store, slot: string): Draft | null {
  const { text, at, target } = (readFrom(store, slot) ?? {}) as Partial<Draft>;
  if (typeof text !== "string" || typeof at !== "number") return null;
  return isTarget(target) ? { text, at, target } : { text, at };
}
