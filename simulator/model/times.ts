export const DAY = 86_400;
export const HOUR = 3_600;
/** A deleted record is purged this long after its deletion. */
export const PURGE_AFTER_SECONDS = 30 * DAY;

const buffer = Buffer.from("YYYY-MM-DDTHH:MM:SSZ", "latin1");
const dayTexts = new Map<number, string>();

/**
 * Version 2 of the API: RFC 3339 in UTC without a fraction. Written through one buffer: a large company holds millions
 * of these, and texts cut out of toISOString() keep the longer text alive and take three times the memory.
 */
export function v2Time(seconds: number): string {
  const day = Math.floor(seconds / DAY);
  buffer.write(dayText(day), 0, "latin1");
  const second = seconds - day * DAY;
  writeTwoDigits(11, Math.floor(second / HOUR));
  writeTwoDigits(14, Math.floor(second / 60) % 60);
  writeTwoDigits(17, second % 60);
  return buffer.toString("latin1");
}

function dayText(day: number): string {
  const known = dayTexts.get(day);
  if (known !== undefined) return known;
  const text = new Date(day * DAY * 1000).toISOString().slice(0, 10);
  dayTexts.set(day, text);
  return text;
}

const ZERO = 48;

function writeTwoDigits(position: number, value: number): void {
  buffer[position] = ZERO + Math.floor(value / 10);
  buffer[position + 1] = ZERO + (value % 10);
}

/** Version 1 of the API: UTC without a zone. */
export function v1Time(seconds: number): string {
  return toV1(v2Time(seconds));
}

export function toV1(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 19)}`;
}

export function dateOnly(seconds: number): string {
  return dayText(Math.floor(seconds / DAY));
}

/** The simulator's own time: that of whoever started it, moved on as far as it was told. */
export class Clock {
  private aheadMs = 0;

  constructor(private readonly base: () => Date) {}

  readonly now = () => new Date(this.base().getTime() + this.aheadMs);

  advance(by: number): void {
    this.aheadMs += by * 1_000;
  }
}

export function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
