import { DAY_MS, MINUTE_MS, SECOND_MS } from "../platform/clock";

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

/** What a day of looks could not settle none will: from then on only a synced note can, and nobody's tokens are spent. */
const LOOKED_FOR_MS = DAY_MS;

/** When a write is looked up next, after `lookUps` of them; null where that would be too long after its sending. */
export function nextLookUp(sentAt: Date, now: Date, lookUps: number): Date | null {
  const next = now.getTime() + (PAUSES_MS[lookUps] ?? LONGEST_PAUSE_MS);
  return next > sentAt.getTime() + LOOKED_FOR_MS ? null : new Date(next);
}

export interface Look {
  begunAt: Date;
  /** The note's id where its reference was found. */
  foundId: number | null;
  /** Whether every page was read to its end and every note on it understood. */
  complete: boolean;
}

/**
 * What a look-up shows of a write whose sending ended at `sentAt`. ABSENT is no proof by itself: the notes of a record that
 * is no longer shown are elsewhere, with the one into which it was merged, or nowhere.
 */
export function verdictOf(sentAt: Date, look: Look): "WRITTEN" | "ABSENT" | "UNKNOWN" {
  if (look.foundId !== null) return "WRITTEN";
  const lateEnough = look.begunAt.getTime() >= sentAt.getTime() + SETTLED_AFTER_MS;
  return lateEnough && look.complete ? "ABSENT" : "UNKNOWN";
}
