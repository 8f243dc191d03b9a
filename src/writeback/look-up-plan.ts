import { MINUTE_MS, SECOND_MS } from "../platform/clock";

/**
 * No request is begun later than this after its receipt; with the longest answer and some room to spare, one that has
 * not ended by then has gone with its process.
 */
export const BEGIN_WITHIN_MS = MINUTE_MS;
export const ABANDONED_AFTER_MS = 2 * MINUTE_MS;

/** What the CRM took in may show so much later; a complete look that begins after it and finds nothing is proof. */
export const SETTLED_AFTER_MS = 3 * MINUTE_MS;

/** Between one look-up and the next, counted from the end of the sending; the fourth can prove an absence. */
const PAUSES_MS = [
  ...[5 * SECOND_MS, 25 * SECOND_MS, MINUTE_MS, 95 * SECOND_MS],
  ...[5 * MINUTE_MS, 15 * MINUTE_MS, 60 * MINUTE_MS, 180 * MINUTE_MS],
];
const LONGEST_PAUSE_MS = 360 * MINUTE_MS;

/** When a write is looked up next, after `lookUps` of them. */
export function nextLookUp(now: Date, lookUps: number): Date {
  return new Date(now.getTime() + (PAUSES_MS[lookUps] ?? LONGEST_PAUSE_MS));
}

export interface Look {
  begunAt: Date;
  /** The note's id where its reference was found. */
  foundId: number | null;
  /** Whether every page was read to its end and every note on it understood. */
  complete: boolean;
  /** Whether the record is in the copy: only a user who sees it sees what is on it. */
  visible: boolean;
}

/** What a look-up shows of a write whose sending ended at `sentAt`; UNKNOWN: ask again. */
export function verdictOf(sentAt: Date, look: Look): "WRITTEN" | "FAILED" | "UNKNOWN" {
  if (look.foundId !== null) return "WRITTEN";
  const lateEnough = look.begunAt.getTime() >= sentAt.getTime() + SETTLED_AFTER_MS;
  return lateEnough && look.complete && look.visible ? "FAILED" : "UNKNOWN";
}
