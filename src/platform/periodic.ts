import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "./logger";

/** What a worker does besides its jobs, by a name for the log. It must be harmless when several workers do it. */
export type PeriodicTasks = Readonly<Record<string, () => Promise<void>>>;

/**
 * Does the tasks one after the other, now and again and again. One that fails is logged and holds up none of the others.
 * @returns ends them, when the round in hand has ended
 */
export async function startPeriodic(
  tasks: PeriodicTasks,
  everyMs: number,
  logger: Logger,
): Promise<() => Promise<void>> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const round = async () => {
    for (const [task, work] of Object.entries(tasks)) {
      if (signal.aborted) return;
      await work().catch((error: unknown) =>
        logger.warn({ err: error, task }, "a periodic task failed and is tried again"),
      );
    }
  };
  await round();
  const rounds = (async () => {
    for (;;) {
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await round();
    }
  })();
  return async () => {
    stopping.abort();
    await rounds;
  };
}

/** Does something for each of many things found. One that fails is logged by what it is, and holds up none behind it. */
export async function forEachLogged<T extends object>(
  found: readonly T[],
  work: (one: T) => Promise<unknown>,
  logger: Logger,
): Promise<void> {
  const failed = (one: T, error: unknown) => {
    const fields: object = { ...one, err: error };
    logger.error(fields, "one of many failed, and is left to the next time");
  };
  for (const one of found) await work(one).catch((error: unknown) => failed(one, error));
}
