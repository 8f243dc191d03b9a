/** Version 2 of the API: RFC 3339 in UTC without a fraction. */
export function v2Time(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z");
}

/** Version 1 of the API: UTC without a zone. */
export function v1Time(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
}

export function dateOnly(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

export function toV1(time: string): string {
  return time.slice(0, 19).replace("T", " ");
}

export function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

export const DAY = 86_400;
export const HOUR = 3_600;
/** A deleted record is purged this long after its deletion. */
export const PURGE_AFTER_SECONDS = 30 * DAY;
