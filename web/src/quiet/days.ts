const two = (value: number) => String(value).padStart(2, "0");

/** The reader's day, YYYY-MM-DD, so many days from now. */
export function inDays(days: number, now: Date): string {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** The last instant of a day of the reader's. */
export const endOfDay = (day: string): string => new Date(`${day}T23:59:59`).toISOString();
