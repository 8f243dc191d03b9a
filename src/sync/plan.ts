import { ADDRESSES } from "../crm/calls";
import type { SyncListRow, SyncPassRow } from "../entities/sync-list";
import type { SyncKind, SyncResource } from "../entities/sync-run";
import { DAY_MS, HOUR_MS, MINUTE_MS, msApart, SECOND_MS } from "../platform/clock";
import type { ListResource } from "./lists";

/** The CRM's index lags its writes by seconds, its stamps by perhaps more: a list is asked for what changed so much before its watermark. */
const OVERLAP_MS = 5 * MINUTE_MS;
/** What cannot be read for long is tried once a day. */
export const LONGEST_REST_MS = DAY_MS;

/** Small lists that seldom change, and that the CRM only tells whole. */
export const SLOW: ReadonlySet<SyncResource> = new Set(["USERS", "PIPELINES", "STAGES"]);
export const SLOW_MS = 4 * HOUR_MS;
/** They name each other, so they are read together: a new deal without its person would be of nobody. */
export const TOGETHER: readonly ListResource[] = ["ORGANIZATIONS", "PERSONS", "DEALS"];
const READ: readonly ListResource[] = ["USERS", "PIPELINES", "STAGES", ...TOGETHER, "ACTIVITIES", "NOTES"];
/** Those that are read whole for nothing else than to find what is gone. */
const RECONCILED: readonly ListResource[] = ["ORGANIZATIONS", "PERSONS", "ACTIVITIES", "NOTES"];

/** After so many reads without a change the wait for the next one grows by an interval. */
const READS_A_STRETCH = 2;
/** The longest that a list waits, in intervals: an unchanged day costs a tenth of the smallest budget at most. */
const LONGEST = 4;
/** In whole intervals, for then a run comes; but one at least. Nothing is judged by what is a day old, and a read may fail. */
const LONGEST_MS = 16 * HOUR_MS;
/** And while a meeting is near: people prepare for it, and 20 meetings a day are still within the means however they lie. */
const LONGEST_NEAR = 2.5;
const NEAR_MS = 2 * HOUR_MS;
/** What is due so soon, in intervals, is read along: a run more would cost a question who the user is. Runs come early by less. */
const ALONG = 0.25;
/** Runs of many tenants that were connected together drift apart by this share of the interval, to either side. */
const JITTER = 0.1;
/** Two runs of the schedule are at least so far apart, also where the first came to nothing. */
export const APART_MS = MINUTE_MS;
/** So long before a meeting what it is about is brought up to date: late enough to be fresh, in time to be read. */
export const REFRESH_BEFORE_MS = 5 * MINUTE_MS;
/** And up to so long after it began, where it was recorded late or no worker was there in time. */
export const REFRESH_AFTER_MS = 5 * MINUTE_MS;
/** What is read for a meeting at the least. */
export const PRICE_OF_MEETING = ADDRESSES.activities.price + ADDRESSES.notes.price;
/** Where the CRM's company is short of tokens and nothing says until when, it is asked again after this. */
export const SHORT_MS = HOUR_MS;
/** Between the two looks that show that a record is gone. */
export const SECOND_LOOK_MS = 10 * MINUTE_MS;

export type PassKind = "WHOLE" | "CHANGES";
type Anew = Pick<SyncPassRow, "inVainSince" | "begunAnewAt">;

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
  const isStale = !list?.readAt || msApart(list.readAt, now) >= staleAfterMs;
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
export function rests({ inVainSince, begunAnewAt }: Anew, now: Date): boolean {
  if (inVainSince === null || begunAnewAt === null) return false;
  const restMs = Math.min(LONGEST_REST_MS, begunAnewAt.getTime() - inVainSince.getTime());
  const restedMs = now.getTime() - begunAnewAt.getTime();
  return restedMs >= 0 && restedMs < restMs;
}

/** When a pass goes on. What a clock far ahead has noted holds up none. */
function goesOnAt({ restsUntil }: Pick<SyncPassRow, "restsUntil">, now: Date): number {
  return restsUntil && msApart(restsUntil, now) <= LONGEST_REST_MS ? restsUntil.getTime() : 0;
}

const alongUntil = (now: Date, intervalMs: number): number => now.getTime() + ALONG * intervalMs;
export const isResting = (pass: Pick<SyncPassRow, "restsUntil">, now: Date, intervalMs: number): boolean =>
  goesOnAt(pass, now) > alongUntil(now, intervalMs);

/** What the schedule knows of a list. */
export interface PaceFacts extends Pick<SyncListRow, "readAt" | "wholeAt" | "quietReads" | "muchGone" | "lateAt"> {
  /** A way through it is under way, or was asked for. */
  isOpen: boolean;
  /** Until when that rests, because it has failed. */
  restsUntil: Date | null;
  /** What has failed is how the list is read at its pace; else it is a whole pass beside that. */
  isUnread: boolean;
}

export type Lists = ReadonlyMap<SyncResource, PaceFacts>;
export interface Pace {
  /** How often a list is read that changes; 0: by request only. */
  intervalMs: number;
  /** When the next meeting begins whose world is not brought up to date yet; null: none is recorded. */
  nextMeetingAt: Date | null;
}

/** How long ago something was. What a clock far ahead has noted was long ago: it must not hold up what is due since. */
export function ageOf(noted: Date, now: Date): number {
  const ageMs = now.getTime() - noted.getTime();
  return ageMs < -APART_MS ? Number.POSITIVE_INFINITY : ageMs;
}

/** From when on the schedule reads a list. One that is being read has been due for ever, or since it has rested. */
function dueAt(lists: Lists, resource: ListResource, now: Date, pace: Pace): number {
  const list = lists.get(resource);
  const openAt = list?.isOpen ? goesOnAt(list, now) : Number.POSITIVE_INFINITY;
  return list?.isUnread ? openAt : Math.min(openAt, dueByPace(lists, resource, now, pace));
}

/** Those that belong together do not wait for one that cannot be read. What was never read to its end has been due for ever. */
function dueByPace(lists: Lists, resource: ListResource, now: Date, { intervalMs, nextMeetingAt }: Pace): number {
  const together = (TOGETHER.includes(resource) ? TOGETHER : [resource]).map((each) => lists.get(each));
  const group = together.filter((list) => !list?.isUnread);
  const readAt = Math.min(...group.map((list) => believed(list?.readAt, now)));
  if (SLOW.has(resource)) return readAt + Math.max(SLOW_MS, intervalMs);
  const stretch = 1 + Math.floor(Math.min(...group.map((list) => list?.quietReads ?? 0)) / READS_A_STRETCH);
  const intervals = Math.max(1, Math.floor(LONGEST_MS / intervalMs));
  const after = (most: number) => readAt + intervalMs * Math.min(most, stretch, intervals);
  if (!nextMeetingAt) return after(LONGEST);
  return Math.min(after(LONGEST), Math.max(after(LONGEST_NEAR), nextMeetingAt.getTime() - NEAR_MS));
}

/** What was noted, unless by a clock far ahead. */
export const unlessAhead = (noted: Date | null | undefined, now: Date): Date | null =>
  noted && Number.isFinite(ageOf(noted, now)) ? noted : null;
const believed = (noted: Date | null | undefined, now: Date) => unlessAhead(noted, now)?.getTime() ?? 0;

/** The lists that a run of the schedule reads now. One that somebody asked for reads all of them. */
export function dueLists(lists: Lists, now: Date, pace: Pace): ListResource[] {
  const until = alongUntil(now, pace.intervalMs);
  return READ.filter((resource) => dueAt(lists, resource, now, pace) <= until);
}

export interface Waiting {
  /** When a record was missed that waits for its second look; null: none does. */
  missedAt: Date | null;
  /** Until then the CRM's company needs its tokens for others; null: there are some for syncs. */
  shortUntil: Date | null;
}

/**
 * When the next run comes: when the first list is due, or a meeting begins, or a second look is to be had.
 * @param chance 0 to 1, for the jitter
 * @returns null where runs are only made by request
 */
export function nextRunAt(now: Date, lists: Lists, pace: Pace, waiting: Waiting, chance: number): Date | null {
  const { intervalMs, nextMeetingAt } = pace;
  if (intervalMs === 0) return null;
  const at = now.getTime();
  const firstDue = Math.min(...READ.map((list) => dueAt(lists, list, now, pace)));
  const jitter = intervalMs * JITTER * (2 * chance - 1);
  const reasons = [Math.max(at + intervalMs, firstDue) + jitter];
  if (nextMeetingAt) reasons.push(nextMeetingAt.getTime() - REFRESH_BEFORE_MS);
  const secondLook = (waiting.missedAt?.getTime() ?? 0) + SECOND_LOOK_MS;
  // One that the run before this was to have, and had not, is no reason to hurry.
  if (secondLook > at) reasons.push(secondLook);
  return new Date(Math.max(Math.min(...reasons), at + APART_MS, waiting.shortUntil?.getTime() ?? 0));
}

/** The latest that a next run is planned for; what is planned for later was by a clock far ahead. */
export function longestWaitMs(intervalMs: number): number {
  return Math.max(LONGEST * intervalMs, SLOW_MS) + JITTER * intervalMs;
}

/**
 * Everything once in a while, to find what is gone; a day after much was gone, to find what is back; and where a record came late,
 * to find what came into sight with it. Else what changed. The list that was read whole last counts: one that cannot be read
 * would else make every run a reconciling one, and so would all of them, of which it was asked already. Nor does one count of
 * which much was gone, while it is being walked or cannot be.
 * @param lateMs how long after the last time where a record came late
 */
export function dueKind(lists: Lists, now: Date, everyMs: number, lateMs = Number.POSITIVE_INFINITY): SyncKind {
  const wholes = RECONCILED.flatMap((list) => lists.get(list)?.wholeAt ?? []).map((at) => believed(at, now));
  const wholeAt = Math.max(...wholes);
  const wasMuchGone = [...lists.values()].some(({ muchGone, isOpen }) => muchGone && !isOpen);
  const isLate = [...lists.values()].some(({ lateAt }) => believed(lateAt, now) > wholeAt);
  const apartMs = Math.min(everyMs, wasMuchGone ? DAY_MS : everyMs, isLate ? lateMs : everyMs);
  const isAsked = RECONCILED.every((list) => lists.get(list)?.isOpen);
  const mayBe = everyMs > 0 && wholes.length > 0 && !isAsked;
  return mayBe && now.getTime() - wholeAt >= apartMs ? "RECONCILE" : "INCREMENTAL";
}
