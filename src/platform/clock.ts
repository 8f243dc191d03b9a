/** The instant now. Passed in, so that a test can set it and no module reads the time by itself. */
export type Clock = () => Date;

export const systemClock: Clock = () => new Date();

/**
 * Whether `ms` have passed since `from`. Asked right before what may only be done in time: a process may be frozen between
 * any two of its statements. By the clock of the wall, because in a machine that sleeps the steady one stands still.
 */
export function timeLimit(clock: Clock, ms: number, from = clock()): () => boolean {
  return () => clock().getTime() >= from.getTime() + ms;
}

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
