export const say = (line = "") => process.stdout.write(`${line}\n`);
export const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(0)} MB`;
export const ratio = (one: number, other: number) => (one / other).toFixed(2);
export const whole = (count: number) => Math.round(count).toLocaleString("en-US");
export const column = (text: string | number, width = 10) =>
  (typeof text === "number" ? whole(text) : text).padStart(width);

/** @throws where an option is no whole number in its range */
export function wholeOption(name: string, text: string, low: number, high: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < low || value > high) {
    throw new Error(`--${name} must be a whole number from ${low} to ${high}`);
  }
  return value;
}

export function failed(error: unknown): void {
  process.stderr.write(`\nThe benchmark failed: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
