import type { SyncResource } from "../api/operations.generated";

/**
 * All numbers, amounts, days and instants of the page, as the browser's language writes them and in its zone. The words
 * around them are the page's own, in English.
 */
const THE_BROWSERS = undefined;

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;
const CALENDAR = { day: "numeric", month: "short", year: "numeric" } as const;

const NUMBER = new Intl.NumberFormat(THE_BROWSERS);
const DATE_AND_TIME = new Intl.DateTimeFormat(THE_BROWSERS, { ...CALENDAR, ...CLOCK, timeZoneName: "short" });
const TIME = new Intl.DateTimeFormat(THE_BROWSERS, CLOCK);
const TIME_AND_ZONE = new Intl.DateTimeFormat(THE_BROWSERS, { ...CLOCK, timeZoneName: "short" });
const LOCAL_DAY = new Intl.DateTimeFormat(THE_BROWSERS, { weekday: "short", ...CALENDAR });
const CALENDAR_DAY = new Intl.DateTimeFormat(THE_BROWSERS, { ...CALENDAR, timeZone: "UTC" });
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

const STEPS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** "20 Nov 2026, 17:58 CET": the zone is never left to be guessed. */
export const dateAndTime = (instant: string): string => DATE_AND_TIME.format(new Date(instant));
/** "17:58", where the zone is said beside it. */
export const time = (instant: string): string => TIME.format(new Date(instant));
/** "17:58 CET". */
export const timeAndZone = (instant: string): string => TIME_AND_ZONE.format(new Date(instant));
/** "Fri, 20 Nov 2026": the reader's day of an instant. */
export const dayOf = (instant: string): string => LOCAL_DAY.format(new Date(instant));
/** A calendar day, YYYY-MM-DD, wherever the reader is. */
export const day = (date: string): string => CALENDAR_DAY.format(new Date(`${date}T00:00:00Z`));
export const number = (value: number): string => NUMBER.format(value);

/** "Europe/Berlin", as the browser has it. */
export const zone = (): string => DATE_AND_TIME.resolvedOptions().timeZone;

/** "2 hours ago", "in 14 minutes". */
export function relative(instant: string, now: number = Date.now()): string {
  const seconds = (new Date(instant).getTime() - now) / 1000;
  const [unit, size] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return Math.abs(seconds) < 5 ? "just now" : RELATIVE.format(Math.round(seconds / size), unit);
}

/** "1 deal", "1,204 deals". */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`;

/** Exact: the amount is decimal text and never becomes a float. */
export function money({ amount, currency }: { amount: string; currency: string }): string {
  if (!/^[A-Z]{3}$/.test(currency)) return `${amount} ${currency}`;
  const style = { style: "currency", currency, trailingZeroDisplay: "stripIfInteger" } as const;
  return new Intl.NumberFormat(THE_BROWSERS, style).format(amount as Intl.StringNumericLiteral);
}

export const RESOURCE: Record<SyncResource, string> = {
  USERS: "Users",
  PIPELINES: "Pipelines",
  STAGES: "Stages",
  ORGANIZATIONS: "Organizations",
  PERSONS: "People",
  DEALS: "Deals",
  DEAL_PARTICIPANTS: "Deal participants",
  ACTIVITIES: "Activities",
  NOTES: "Notes",
};
