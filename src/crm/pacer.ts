import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, SECOND_MS } from "../platform/clock";

/** Requests that are left to others of the same window: those of ours that are in flight, and a few besides. */
const RESERVE = 10;
/** The documented window is two seconds; whatever a header says, nobody waits longer. */
const LONGEST_WAIT_MS = 10 * SECOND_MS;
/** Above this an `x-ratelimit-reset` is an instant in epoch seconds, not a number of seconds. */
const EPOCH_FROM = 1_000_000;

/**
 * Slows one connection down before it reaches the CRM's burst limit, by what the answers' headers say is left. That
 * is not back-off: nothing is repeated, and a 429 that comes all the same is final.
 */
export class Pacer {
  #waitUntil = 0;

  constructor(private readonly clock: Clock) {}

  /** @param headers the `x-ratelimit-*` headers of an answer, as numbers; null where they were missing */
  note({ remaining, reset }: { remaining: number | null; reset: number | null }): void {
    if (remaining === null || reset === null || remaining > RESERVE) return;
    const now = this.clock().getTime();
    const resetAt = reset > EPOCH_FROM ? reset * SECOND_MS : now + reset * SECOND_MS;
    this.#waitUntil = Math.max(this.#waitUntil, Math.min(resetAt, now + LONGEST_WAIT_MS));
  }

  async ready(): Promise<void> {
    const wait = this.#waitUntil - this.clock().getTime();
    if (wait > 0) await sleep(wait);
  }
}
