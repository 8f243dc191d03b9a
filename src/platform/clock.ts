import { LRUCache } from "lru-cache";

/** The instant now. Passed in, so that a test can set it and no module reads the time by itself. */
export type Clock = () => Date;

export const systemClock: Clock = () => new Date();

/**
 * Whether `ms` have passed since `from`. Asked right before what may only be done in time: a process may be frozen between
 * any two of its statements. By either clock: in a machine that sleeps the steady one stands still, and the wall's may be put back.
 */
export function timeLimit(clock: Clock, ms: number, from = clock()): () => boolean {
  const end = from.getTime() + ms;
  const steadyEnd = performance.now() + end - clock().getTime();
  return () => clock().getTime() >= end || performance.now() >= steadyEnd;
}

/** How far another's clock is ahead of this one: it was read amid the asking, so give or take half of that. In milliseconds. */
export async function aheadOf(
  clock: Clock,
  read: () => Promise<Date | undefined>,
): Promise<{ ms: number; give: number }> {
  const asked = clock().getTime();
  const theirs = await read();
  const answered = clock().getTime();
  return { ms: (theirs?.getTime() ?? 0) - (asked + answered) / 2, give: (answered - asked) / 2 };
}

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Milliseconds between them. As the age of what was noted: a time that has not come is of a clock that was wrong. */
export const msApart = (at: Date, now: Date): number => Math.abs(now.getTime() - at.getTime());
/** What takes much memory is remembered of so many, and no longer than an hour. */
const LATELY = { max: 100, ttl: HOUR_MS, ttlAutopurge: true };

/** What this process has read lately, for as long as its answer holds; who asks while it is being read waits for the same. */
export class Lately<T> {
  readonly #read = new LRUCache<string, { at: Date; holdsMs: number; answer: Promise<T> }>(LATELY);

  constructor(private readonly holdsMs: (answer: T) => number) {}

  /** @param newest when it was last read by anybody: what was read before is old */
  async read(what: string, now: Date, newest: Date | null | undefined, ask: (at: Date) => Promise<T>): Promise<T> {
    const before = this.#read.get(what);
    const isOld = !before || msApart(before.at, now) >= before.holdsMs || (newest && newest > before.at);
    if (!isOld) return before.answer;
    const reading = { at: now, holdsMs: Number.POSITIVE_INFINITY, answer: ask(now) };
    this.#read.set(what, reading);
    const answer = await reading.answer.catch((error: unknown) => {
      reading.holdsMs = 0;
      throw error;
    });
    reading.holdsMs = this.holdsMs(answer);
    return answer;
  }
}

/** How days are counted: in whose time zone, and whether Saturdays and Sundays count. */
export interface Calendar {
  /** A name of the IANA data base. */
  zone: string;
  businessDays: boolean;
}

/** Zones, and years of them, whose offsets are remembered: a year of one is found in some milliseconds. */
const MOST_KNOWN_YEARS = 4_000;
/** Offsets of a zone, each from an instant on, through one year of UTC. */
type Offsets = readonly { from: number; offset: number }[];
const known = new LRUCache<string, Offsets>({ max: MOST_KNOWN_YEARS });
/** Of each zone the span of one offset that was asked for last: the next instant is mostly within it. */
const spans = new LRUCache<string, { from: number; until: number; offset: number }>({ max: MOST_KNOWN_YEARS });
const formats = new Map<string, Intl.DateTimeFormat>();

export const isTimeZone = (name: string): boolean => zoneNamed(name) !== null;

/** The zone as its data base spells it; a name that it keeps for old times' sake stays as it is. null: it is none. */
export function zoneNamed(name: string): string | null {
  // An offset is none: it knows no change of the clock.
  if (/^[+-]/.test(name)) return null;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en-US", { timeZone: name }).resolvedOptions();
    return timeZone.toLowerCase() === name.toLowerCase() ? timeZone : name;
  } catch {
    return null;
  }
}

/**
 * The same time of day so many days later; a part of a day is that part of the next one. A time that a change of the
 * clock skips is as much later, and of one that comes twice the first counts. Of business days only their hours pass: from
 * a weekend on it is counted from Monday's beginning, and what of a part is left on Friday night passes on Monday.
 */
export function plusDays(calendar: Calendar, at: number, days: number): number {
  const whole = Math.floor(days);
  const reached = plusWhole(calendar, at, whole);
  const part = days - whole;
  if (part === 0) return reached;
  const next = plusWhole(calendar, at, whole + 1);
  const weekend = calendar.businessDays ? weekendBetween(calendar, reached, next) : null;
  if (!weekend) return reached + Math.round(part * (next - reached));
  const passed = Math.round(part * (next - reached - (weekend.to - weekend.from)));
  const until = reached + passed;
  return until < weekend.from ? until : until + (weekend.to - weekend.from);
}

/** Saturday and Sunday, where they lie between two instants that are a business day apart. */
function weekendBetween({ zone }: Calendar, from: number, to: number): { from: number; to: number } | null {
  const day = Math.floor((from + offsetAt(zone, from)) / DAY_MS);
  const saturday = day + BUSINESS_DAYS - weekday(day);
  const weekend = { from: instantOf(zone, saturday * DAY_MS), to: instantOf(zone, (saturday + 2) * DAY_MS) };
  return weekend.to <= to ? { ...weekend, from: Math.max(from, weekend.from) } : null;
}

function plusWhole({ zone, businessDays }: Calendar, at: number, days: number): number {
  if (days === 0) return at;
  const wall = at + offsetAt(zone, at);
  return instantOf(zone, businessDays ? plusBusinessDays(wall, days) : wall + days * DAY_MS);
}

/** How many whole days have passed; none before `from`. */
export function daysBetween(calendar: Calendar, from: number, to: number): number {
  // Never more than there are by the clock: a day may be some hours short, and a business day may begin at once.
  let days = Math.max(0, Math.floor((to - from) / DAY_MS) + 1);
  if (calendar.businessDays) days = Math.min(days, Math.floor((days * BUSINESS_DAYS) / WEEK_DAYS) + BUSINESS_DAYS);
  while (days > 0 && plusDays(calendar, from, days) > to) days -= 1;
  return days;
}

/** The day on which an instant lies, as YYYY-MM-DD. */
export const dayOf = ({ zone }: Calendar, at: number) => new Date(at + offsetAt(zone, at)).toISOString().slice(0, 10);

/** @param day its midnight in UTC */
export const startOfDay = ({ zone }: Calendar, day: number) => instantOf(zone, day);

const WEEK_DAYS = 7;
const BUSINESS_DAYS = 5;

/** Days since Monday; 1970 began with a Thursday. */
const weekday = (day: number) => (((day + 3) % WEEK_DAYS) + WEEK_DAYS) % WEEK_DAYS;

function plusBusinessDays(wall: number, days: number): number {
  let day = Math.floor(wall / DAY_MS);
  let time = wall - day * DAY_MS;
  if (weekday(day) >= BUSINESS_DAYS) {
    day += WEEK_DAYS - weekday(day);
    time = 0;
  }
  const passed = weekday(day) + days;
  const weeks = Math.floor(passed / BUSINESS_DAYS);
  return (day - weekday(day) + weeks * WEEK_DAYS + passed - weeks * BUSINESS_DAYS) * DAY_MS + time;
}

/** The instant at which the clocks of a zone show a time, which is written as if it were UTC. */
function instantOf(zone: string, wall: number): number {
  const before = offsetAt(zone, wall - DAY_MS);
  const after = offsetAt(zone, wall + DAY_MS);
  const isShown = offsetAt(zone, wall - before) === before || offsetAt(zone, wall - after) !== after;
  return wall - (isShown ? before : after);
}

/** How far the clocks of a zone are ahead of UTC. `Intl` says it, and is too slow to be asked for each contact of each deal. */
function offsetAt(zone: string, at: number): number {
  const span = spans.get(zone);
  if (span && span.from <= at && at < span.until) return span.offset;
  const year = new Date(at).getUTCFullYear();
  const offsets = known.get(`${zone} ${year}`) ?? offsetsOf(zone, year);
  known.set(`${zone} ${year}`, offsets);
  const index = offsets.findLastIndex(({ from }) => from <= at);
  const { from = 0, offset = 0 } = offsets[index] ?? {};
  spans.set(zone, { from, until: offsets[index + 1]?.from ?? Date.UTC(year + 1, 0, 1), offset });
  return offset;
}

/** No zone changes its clock twice within a day. */
function offsetsOf(zone: string, year: number): Offsets {
  const begin = Date.UTC(year, 0, 1);
  const offsets = [{ from: begin, offset: askOffset(zone, begin) }];
  for (let day = begin; day < Date.UTC(year + 1, 0, 1); day += DAY_MS) {
    const offset = askOffset(zone, day + DAY_MS);
    if (offset !== offsets.at(-1)?.offset) offsets.push({ from: changeWithin(zone, day, day + DAY_MS), offset });
  }
  return offsets;
}

/** Clocks are changed at full minutes. @returns the first instant with the offset of `end` */
function changeWithin(zone: string, begin: number, end: number): number {
  const offset = askOffset(zone, end);
  let [before, after] = [begin, end];
  while (after - before > MINUTE_MS) {
    const middle = before + Math.floor((after - before) / 2 / MINUTE_MS) * MINUTE_MS;
    if (askOffset(zone, middle) === offset) after = middle;
    else before = middle;
  }
  return after;
}

function askOffset(zone: string, at: number): number {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 1, day, hour, minute, second } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - at;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const numeric = "numeric" as const;
  const time = { hour: numeric, minute: numeric, second: numeric, hourCycle: "h23" } as const;
  const format =
    formats.get(timeZone) ??
    new Intl.DateTimeFormat("en-US", { timeZone, year: numeric, month: numeric, day: numeric, ...time });
  formats.set(timeZone, format);
  return format;
}
