import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, SECOND_MS } from "../platform/clock";
import type { CrmAnswer } from "./http";

/** Requests of a window that are left to others. */
const RESERVE = 2;
/** The documented window is two seconds; whatever a header says, nobody waits longer. */
const LONGEST_WAIT_MS = 10 * SECOND_MS;
/** Above this an `x-ratelimit-reset` is an instant in epoch seconds, not a number of seconds. */
const EPOCH_FROM = 1_000_000;

/**
 * Slows one connection down before it reaches the CRM's burst limit, by what the answers' headers say is left. That
 * is not back-off: nothing is repeated, and a 429 that comes all the same is final.
 *
 * The window rolls: when it is said to end, only its oldest requests leave it. So one request goes first then, and
 * the others wait for what its answer says.
 */
export class Pacer {
  /** What the window had left at least, and until when that holds, by a clock that nobody sets. */
  #left = Number.POSITIVE_INFINITY;
  #until = 0;
  #inFlight = 0;
  readonly #waiting = new Set<() => void>();

  constructor(private readonly clock: Clock) {}

  /** Sends when there is room for it. */
  async paced(send: () => Promise<CrmAnswer>): Promise<CrmAnswer> {
    while (!this.#mayBegin()) await this.#change();
    this.#inFlight += 1;
    try {
      const answer = await send();
      // What a refusal says is no reason to wait: that would be back-off (specification 8).
      if (answer.status !== 429) this.#note(answer.limit);
      return answer;
    } finally {
      this.#inFlight -= 1;
      for (const wake of this.#waiting) wake();
      this.#waiting.clear();
    }
  }

  /** Those in flight may not be counted yet in what was left. */
  #mayBegin(): boolean {
    if (this.#left - this.#inFlight > RESERVE) return true;
    return this.#inFlight === 0 && performance.now() >= this.#until;
  }

  /** Until the next answer, or until what is known of the window is over. */
  #change(): Promise<unknown> {
    if (this.#inFlight === 0) return sleep(this.#until - performance.now());
    return new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Answers arrive in any order: within a window the lowest counts. */
  #note({ remaining, reset }: CrmAnswer["limit"]): void {
    if (remaining === null || reset === null) {
      this.#left = Number.POSITIVE_INFINITY;
      return;
    }
    const now = performance.now();
    if (now < this.#until && remaining >= this.#left) return;
    const seconds = reset > EPOCH_FROM ? reset - this.clock().getTime() / SECOND_MS : reset;
    this.#left = remaining;
    this.#until = now + Math.min(seconds * SECOND_MS, LONGEST_WAIT_MS);
  }
}
