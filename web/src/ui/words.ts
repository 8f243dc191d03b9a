import { now } from "../api/clock";
import type { SyncResource } from "../api/operations.generated";

/**
 * All numbers, amounts, days and instants of the page, as the browser's language writes them and in its zone.
 */
const THE_BROWSERS = undefined;

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;
const CALENDAR = { day: "numeric", month: "short", year: "numeric" } as const;

const NUMBER = new Intl.NumberFormat(THE_BROWSERS);
const PRECISE = new Intl.NumberFormat(THE_BROWSERS, { maximumFractionDigits: 4 });
const DATE_AND_TIME = new Intl.DateTimeFormat(THE_BROWSERS, { ...CALENDAR, ...CLOCK, timeZoneName: "short" });
const TIME = new Intl.DateTimeFormat(THE_BROWSERS, CLOCK);
const TIME_AND_ZONE = new Intl.DateTimeFormat(THE_BROWSERS, { ...CLOCK, timeZoneName: "short" });
const LOCAL_DAY = new Intl.DateTimeFormat(THE_BROWSERS, { weekday: "short", ...CALENDAR });
const CALENDAR_DAY = new Intl.DateTimeFormat(THE_BROWSERS, { ...CALENDAR, timeZone: "UTC" });

/** What is written from right to left keeps its place in a sentence of the page, and its parts their order. */
export const apart = (text: string): string => (/[\u0590-\u08ff\u200f]/.test(text) ? `\u2068${text}\u2069` : text);

/** Words are the page's: English, without a comma before the last. */
const PAGES = "en-GB";
const RELATIVE = new Intl.RelativeTimeFormat(PAGES);
const AND = new Intl.ListFormat(PAGES);
const OR = new Intl.ListFormat(PAGES, { type: "disjunction" });

const STEPS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** "20 Nov 2026, 17:58 CET": the zone is never left to be guessed. */
export const dateAndTime = (instant: string): string => apart(DATE_AND_TIME.format(new Date(instant)));
/** "17:58", where the zone is said beside it. */
const time = (instant: string): string => apart(TIME.format(new Date(instant)));
/** "17:58 CET". */
const timeAndZone = (instant: string): string => apart(TIME_AND_ZONE.format(new Date(instant)));
/** "Fri, 20 Nov 2026": the reader's day of an instant. */
export const dayOf = (instant: string): string => apart(LOCAL_DAY.format(new Date(instant)));
/** "14:00–15:00 CET", and where it ends on another day of the reader's, that day as well. */
export function span(from: string, to: string | null): string {
  if (to === null) return timeAndZone(from);
  return dayOf(from) === dayOf(to) ? `${time(from)}–${timeAndZone(to)}` : `${time(from)} – ${dateAndTime(to)}`;
}
/** A calendar day, YYYY-MM-DD, wherever the reader is. */
export const day = (date: string): string => apart(CALENDAR_DAY.format(new Date(`${date}T00:00:00Z`)));
/** "20 Nov 2026" where it has no time, else as an instant. A day is none: it began in another zone than the reader's. */
export const dayOrTime = (instant: string, date: string | null): string => (date ? day(date) : dateAndTime(instant));
export const number = (value: number): string => NUMBER.format(value);

/** "Europe/Berlin", as the browser has it. */
export const zone = (): string => DATE_AND_TIME.resolvedOptions().timeZone;

/** "2 hours ago", "in 14 minutes". What has passed is counted in whole days and hours, as the service counts silence. */
export function relative(instant: string): string {
  const seconds = (new Date(instant).getTime() - now()) / 1000;
  const [unit, size] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  const count = seconds < 0 ? Math.ceil(seconds / size) : Math.round(seconds / size);
  return Math.abs(seconds) < 5 ? "just now" : RELATIVE.format(count, unit);
}

/** "1 deal", "1,204 deals". */
export const counted = (count: number, one: string): string => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

/** What the service counted silence in. */
export const dayUnit = (businessDays: boolean): string => (businessDays ? "business day" : "day");

/** "€1,200, £30 and $4". */
export const allOf = (parts: readonly string[]): string => AND.format(parts);
/** "7, 21 or 30". */
export const oneOf = (parts: readonly string[]): string => OR.format(parts);

const separator = (type: "group" | "decimal") =>
  NUMBER.formatToParts(1_234_567.8).find((part) => part.type === type)?.value;
const GROUP = separator("group") ?? "'";
const DECIMAL = separator("decimal") ?? ".";
const DIGITS = [...new Intl.NumberFormat(THE_BROWSERS, { useGrouping: false }).format(9_876_543_210)].reverse();
export const AMOUNT = /^\d{1,15}(\.\d{1,4})?$/;

/** With the digits 0 to 9, in whichever the browser's language writes them. */
export const inDigits = (typed: string): string =>
  typed.replace(/\p{Nd}/gu, (digit) => (DIGITS.includes(digit) ? String(DIGITS.indexOf(digit)) : digit));

/** "-1,200.5" as the browser's language writes it, or without thousands in any: decimal text; null: no number. */
export function decimalOf(typed: string): string | null {
  const text = inDigits(typed).replace(/[\s\u061c\u200e\u200f]/g, "");
  const [, sign, digits = ""] = /^([-\u2212]?)(.*)$/.exec(text) ?? [];
  const [whole = "", ...parts] = digits.split(DECIMAL);
  const [first = "", ...thousands] = whole.split(GROUP);
  // India has two digits in all groups but the last.
  const isGrouped = /^\d{1,3}$/.test(first) && /^(|(\d{2,3} )*\d{3})$/.test(thousands.join(" "));
  const decimal = isGrouped
    ? [first + thousands.join(""), ...parts].join(".")
    : digits.replace(DECIMAL, ".").replace(",", ".");
  return /^\d+(\.\d+)?$/.test(decimal) ? `${sign && "-"}${decimal}` : null;
}

/** "1,200.5" as the browser's language writes it: decimal text; null: no amount. */
export function amountOf(typed: string): string | null {
  const amount = decimalOf(typed);
  return amount !== null && AMOUNT.test(amount) ? amount : null;
}

/** An amount as it may be typed: "1,200.5". */
export const typedAmount = (amount: string): string => PRECISE.format(amount as Intl.StringNumericLiteral);

/** What every browser's `Intl` takes; a small amount of a currency without coins must not be shown as none. */
const MOST_DECIMALS = 20;

/** Exact: the amount is decimal text and never becomes a float. */
export function money({ amount, currency }: { amount: string; currency: string }): string {
  if (!/^[A-Z]{3}$/.test(currency)) return `${amount} ${currency}`;
  const style = {
    style: "currency",
    currency,
    trailingZeroDisplay: "stripIfInteger",
    maximumFractionDigits: MOST_DECIMALS,
  } as const;
  return apart(new Intl.NumberFormat(THE_BROWSERS, style).format(amount as Intl.StringNumericLiteral));
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
