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
const PAUSES_S = [5, 25, 60, 95, 300, 900, 3_600, 10_800];
const LONGEST_PAUSE_S = 21_600;

/** When a write is looked up next, after `lookUps` of them; null where that would be too long after its sending. */
export function nextLookUp(sentAt: Date, now: Date, lookUps: number, lookedForMs: number): Date | null {
  const next = now.getTime() + (PAUSES_S[lookUps] ?? LONGEST_PAUSE_S) * SECOND_MS;
  return next > sentAt.getTime() + lookedForMs ? null : new Date(next);
}

export interface Look {
  begunAt: Date;
  /** Whether the CRM holds what was sent. */
  found: boolean;
  /** Whether all that was to be looked at was read and understood. */
  complete: boolean;
}

/**
 * What a look-up shows of a write whose sending ended at `sentAt`. ABSENT is no proof by itself: the notes of a record that
 * is no longer shown are elsewhere, with the one into which it was merged, or nowhere.
 */
export function verdictOf(sentAt: Date, look: Look): "WRITTEN" | "ABSENT" | "UNKNOWN" {
  if (look.found) return "WRITTEN";
  const lateEnough = look.begunAt.getTime() >= sentAt.getTime() + SETTLED_AFTER_MS;
  return lateEnough && look.complete ? "ABSENT" : "UNKNOWN";
}
