/** What a clock may be off without anything false being said: also what an answer may take. */
const TOLERATED_MS = 600_000;

let aheadMs = 0;

/** Now, as the service has it: by a browser's clock that is a day ahead fresh data would be called old. */
export const now = (): number => Date.now() - aheadMs;

/** Each answer tells the service's time. */
export function hearTime({ headers }: Response): void {
  const difference = Date.now() - Date.parse(headers.get("date") ?? "");
  aheadMs = Math.abs(difference) > TOLERATED_MS ? difference : 0;
}
