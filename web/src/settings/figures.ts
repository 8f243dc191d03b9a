import { counted } from "../ui/words";

const MINUTE_S = 60;
const HOUR_S = 3_600;

/** "less than a second", "41 seconds", "3 minutes", "2 hours". */
export function duration(from: string, to: string): string {
  const seconds = Math.max(0, Math.round((new Date(to).getTime() - new Date(from).getTime()) / 1000));
  if (seconds === 0) return "less than a second";
  if (seconds < 2 * MINUTE_S) return counted(seconds, "second");
  if (seconds < 2 * HOUR_S) return counted(Math.round(seconds / MINUTE_S), "minute");
  return counted(Math.round(seconds / HOUR_S), "hour");
}

/** Never told as done before it is. */
export const percentOf = ({ progress }: { progress: number }): number => Math.floor(progress * 100);

/** What is typed may stand anywhere in a name, in whatever case; the names that begin with it come first. */
export function found<T extends { name: string }>(all: readonly T[], typed: string): T[] {
  const wanted = typed.trim().toLocaleLowerCase();
  const place = ({ name }: T) => name.toLocaleLowerCase().indexOf(wanted);
  return all.filter((one) => place(one) >= 0).sort((a, b) => Number(place(a) > 0) - Number(place(b) > 0));
}
