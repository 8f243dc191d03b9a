import { WRITTEN } from "./draft-slots";
import type { Draft } from "./drafts";
import { OF_BROWSER, OF_TAB, readFrom, removeFrom, slotsIn, writeTo } from "./stores";
import { isTarget, type Target } from "./targets";

/** A note as it was sent. Its key is made with its first sending, and is not given up before that is settled. */
export interface SentNote {
  key: string;
  target: Target;
  content: string;
  /** When it was first sent, in milliseconds. */
  at: number;
  /** Another text was sent with this key before, and may have arrived: the service takes one of them. */
  isMixed: boolean;
  /** The marks of texts that were sent with this key before. */
  before?: readonly string[];
  /** Its text was given back, but a request with its key may still arrive: only the key is kept, for the next text. */
  isOver?: boolean;
}

/** By slot, in front of the browser's stores, which may be forbidden or full: then a reload forgets. */
const notes = new Map<string, SentNote>();

/** What this tab has sent, or locked because another one had. */
export const keptNote = (slot: string): SentNote | null => notes.get(slot) ?? asNote(readFrom(OF_TAB, slot));

/**
 * What any tab has sent of the text that is shown in this one, or has written of it since it was typed; else what was given
 * back. The tab may be gone without its answer, and this one may have slept or shown another page while it was written, or
 * edited: the text still stands here, and with a key of its own it would be a second note. The same words typed later are meant
 * as one.
 */
export function noteElsewhere(slot: string, { text, at }: Draft): SentNote | null {
  const [sent, mark] = [notesIn(slot), markOf(text)];
  const newer = notesIn(WRITTEN + slot).filter((note) => note.at > at);
  const written = newer.find((note) => note.content === mark);
  const edited = [...sent, ...newer].find((note) => !note.isOver && note.before?.includes(mark));
  return (
    sent.find((note) => note.content === text) ??
    (written ? { ...written, content: text } : null) ??
    (edited ? { ...edited, content: text, isMixed: true } : null) ??
    sent.find((note) => note.isOver) ??
    null
  );
}

/** The last note of a slot that is not settled: where nothing was typed since, it is what stands in the form. */
export const unsettledNote = (slot: string): SentNote | null =>
  notesIn(slot)
    .filter(({ isOver }) => !isOver)
    .sort((a, b) => b.at - a.at)[0] ?? null;

/** A note whose text is given back. */
export const over = (note: SentNote): SentNote => ({ ...note, content: "", isOver: true, before: textsOf(note) });

const textsOf = ({ before = [], content }: SentNote): string[] => [...new Set([...before, markOf(content)])];

/** Whether another tab may have sent another text with this note's key. */
export function isMixedElsewhere(slot: string, { key, content }: SentNote): boolean {
  const sent = asNote(readFrom(OF_BROWSER, slot + key));
  const written = asNote(readFrom(OF_BROWSER, WRITTEN + slot + key));
  // Where a store is forbidden or full nothing is there, which says nothing.
  if (!sent && !written) return false;
  const isThis = sent?.content === content || written?.content === markOf(content);
  return !isThis || (sent ?? written)?.isMixed === true;
}

const notesIn = (prefix: string): SentNote[] =>
  slotsIn(OF_BROWSER, prefix).flatMap((one) => asNote(readFrom(OF_BROWSER, one)) ?? []);

/** Before it is sent. For all tabs each has a slot of its own: no note is forgotten for another that was sent beside it. */
export function keepNote(slot: string, note: SentNote): void {
  keepHere(slot, note);
  writeTo(OF_BROWSER, slot + note.key, note);
}

/** In this tab alone: whoever sent it has kept it for all. */
export function keepHere(slot: string, note: SentNote): void {
  notes.set(slot, note);
  writeTo(OF_TAB, slot, note);
}

/** It is settled. Another form of this meeting may have sent the next one meanwhile. */
export function dropNote(slot: string, key: string): void {
  removeFrom(OF_BROWSER, slot + key);
  if (keptNote(slot)?.key !== key) return;
  notes.delete(slot);
  removeFrom(OF_TAB, slot);
}

/** The first tab that learns of it says when: one that wakes later would take what was typed since for the same note. */
export function dropWritten(slot: string, note: SentNote): void {
  dropNote(slot, note.key);
  const itsSlot = WRITTEN + slot + note.key;
  const known = asNote(readFrom(OF_BROWSER, itsSlot));
  const first: SentNote = known ?? { ...note, content: markOf(note.content), at: Date.now() };
  const written: SentNote = { ...first, before: [...new Set([...(known?.before ?? []), ...textsOf(note)])] };
  writeTo(OF_BROWSER, itsSlot, written);
}

/** In place of the text, of which nothing is kept once it is written. */
function markOf(text: string): string {
  let [one, two] = [text.length, 0x9e3779b9];
  for (let at = 0; at < text.length; at += 1) {
    one = Math.imul(one ^ text.charCodeAt(at), 0x01000193);
    two = Math.imul(two ^ text.charCodeAt(at), 0x5bd1e995) ^ (one >>> 15);
  }
  return [text.length, one, two].join();
}

/** Tells of each note that another tab sends, and that it gives back. @returns what ends it */
export function onNoteElsewhere(slot: string, tell: (note: SentNote) => void): () => void {
  // The event has the note itself: by the time it is told, the note may be written and out of the store.
  const listen = ({ key, newValue }: StorageEvent) => {
    const note = key?.startsWith(slot) ? asNote(parsed(newValue)) : null;
    if (note) tell(note);
  };
  window.addEventListener("storage", listen);
  return () => window.removeEventListener("storage", listen);
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}

/** Another version of the page may have kept something else. */
function asNote(kept: unknown): SentNote | null {
  const { key, target, content, at } = (kept ?? {}) as Partial<SentNote>;
  const isNote = typeof key === "string" && typeof content === "string" && isTarget(target);
  return isNote && typeof at === "number" ? (kept as SentNote) : null;
}
