const DATE_AND_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
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
