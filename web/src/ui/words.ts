import type { SyncResource } from "../api/operations.generated";

const DATE_AND_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const RELATIVE = new Intl.RelativeTimeFormat("en-GB", { numeric: "auto" });
const NUMBER = new Intl.NumberFormat("en-GB");

const STEPS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

export const dateAndTime = (instant: string): string => DATE_AND_TIME.format(new Date(instant));
export const number = (value: number): string => NUMBER.format(value);

/** "2 hours ago", "in 14 minutes". */
export function relative(instant: string, now: number = Date.now()): string {
  const seconds = (new Date(instant).getTime() - now) / 1000;
  const [unit, size] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return Math.abs(seconds) < 5 ? "just now" : RELATIVE.format(Math.round(seconds / size), unit);
}

/** "1 deal", "1,204 deals". */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`;

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

/** A calendar day, YYYY-MM-DD, wherever the reader is. */
export const day = (date: string): string => DAY.format(new Date(`${date}T00:00:00Z`));

/** Exact: the amount is decimal text and never becomes a float. */
export function money({ amount, currency }: { amount: string; currency: string }): string {
  if (!/^[A-Z]{3}$/.test(currency)) return `${amount} ${currency}`;
  const format = new Intl.NumberFormat("en-GB", { style: "currency", currency, trailingZeroDisplay: "stripIfInteger" });
  return format.format(amount as Intl.StringNumericLiteral);
}
