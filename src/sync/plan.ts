import { MAIN_LISTS as MAIN, type SyncListRow, type SyncPassRow } from "../entities/sync-list";
import type { SyncResource } from "../entities/sync-run";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../platform/clock";

/** The CRM's index lags its writes by seconds (size unknown): a list is asked for what changed so much before its watermark. */
const OVERLAP_MS = MINUTE_MS;
/** A walk that shows so many fewer records, and less than half, may be a glitch (decision 0013). */
const MANY = 100;
/** Two walks that are both to show that much is gone stand at least so far apart. */
export const WALKS_APART_MS = 10 * MINUTE_MS;
/** What cannot be read for long is tried once a day. */
const LONGEST_REST_MS = DAY_MS;

/** Without one of these a run has failed; without the others it succeeds and says what is missing (specification 4.3). */
export const MAIN_LISTS: ReadonlySet<SyncResource> = new Set(MAIN);

export type PassKind = "WHOLE" | "CHANGES";

/**
 * The moment from which a pass is complete. Either clock may be wrong; too early a moment only reads a change twice, and
 * too late a one would miss it for good.
 * @param crm the CRM's `Date` of the pass's first answer; null where it has none
 * @param ours when that answer was asked for
 */
export function clockOf(crm: Date | null, ours: Date): Date {
  return crm !== null && crm < ours ? crm : ours;
}

/** `updated_since` for what changed since a watermark, on the CRM's clock, in whole seconds: fractions are refused. */
export function sinceOf(watermark: Date): Date {
  return new Date(Math.max(0, Math.floor((watermark.getTime() - OVERLAP_MS) / SECOND_MS) * SECOND_MS));
}

/** What a run knows of a list when it comes to it. */
export interface ListFacts {
  /** Whether the CRM tells what changed in it; the others are small and read whole. */
  tellsChanges: boolean;
  list: Pick<SyncListRow, "watermark" | "readAt"> | null;
  /** A whole pass was asked for, or is under way. */
  wholeIsOpen: boolean;
  /** Passes that began in an earlier run. */
  begunBefore: ReadonlySet<PassKind>;
  /** The list was done with in an earlier turn of this run. */
  isDone: boolean;
}

/**
 * The passes that a run makes through a list now. A long pass is no reason to let the rest grow old: what changed is read
 * besides it, each time that the last read is older than `staleAfterMs`. What went on from an earlier run has passed by
 * whatever changed behind it since, and that is read after it.
 */
export function passesOf(facts: ListFacts, now: Date, staleAfterMs: number): PassKind[] {
  const { tellsChanges, list, wholeIsOpen, begunBefore, isDone } = facts;
  // A read that a clock ahead of its time has noted keeps nobody from reading.
  const isStale = !list?.readAt || Math.abs(now.getTime() - list.readAt.getTime()) >= staleAfterMs;
  const readsChanges = isStale || begunBefore.size > 0 || !(wholeIsOpen || isDone);
  const passes: PassKind[] = [];
  if (tellsChanges && list?.watermark && readsChanges) passes.push("CHANGES");
  if (!isDone && (wholeIsOpen || !tellsChanges || !list?.watermark)) passes.push("WHOLE");
  const goesOn = begunBefore.has("CHANGES") || (begunBefore.has("WHOLE") && !list?.watermark);
  if (tellsChanges && goesOn) passes.push("CHANGES");
  return passes;
}

/**
 * A pass that began anew and came to no end rests for as long as that has gone on, a day at most: what is read in vain run
 * after run is paid from what the other lists need. A time that has not come is of a clock that was wrong.
 */
export function rests(
  { inVainSince, begunAnewAt }: Pick<SyncPassRow, "inVainSince" | "begunAnewAt">,
  now: Date,
): boolean {
  if (inVainSince === null || begunAnewAt === null) return false;
  const restMs = Math.min(LONGEST_REST_MS, begunAnewAt.getTime() - inVainSince.getTime());
  const restedMs = now.getTime() - begunAnewAt.getTime();
  return restedMs >= 0 && restedMs < restMs;
}

export interface Absence {
  /** What the walks have not seen. */
  absent: number;
  /** What the copy holds. */
  held: number;
}

/** So much less than is held is more likely a glitch, or another user's view, than a day's deletions: it has to be proven. */
export function isMuch({ absent, held }: Absence): boolean {
  return absent >= held || (absent > MANY && absent > held / 2);
}
