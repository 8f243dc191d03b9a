import { setTimeout as sleep } from "node:timers/promises";
import { SECOND_MS } from "../platform/clock";

const POLL_MS = 200;
/** Another caller's process may be frozen: its receipt is shown as it is before anyone has waited half a minute. */
const WAIT_MS = 25 * SECOND_MS;

/** Sendings under way: our own, and those of other callers with the same idempotency key. */
export class Sendings<Receipt> {
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #awaited = new Map<string, Promise<Receipt>>();

  constructor(
    private readonly isSending: (receipt: Receipt) => boolean,
    private readonly waitMs = WAIT_MS,
  ) {}

  track<T>(sending: Promise<T>): Promise<T> {
    this.#underWay.add(sending);
    return sending.finally(() => this.#underWay.delete(sending));
  }

  /**
   * The same answer as the caller's who sends; where that takes too long, what is known now.
   * @param id of the receipt: all who wait for it look together
   */
  async settled(receipt: Receipt, id: string, look: () => Promise<Receipt>): Promise<Receipt> {
    if (!this.isSending(receipt)) return receipt;
    const awaited = this.#awaited.get(id) ?? this.#poll(look).finally(() => this.#awaited.delete(id));
    this.#awaited.set(id, awaited);
    return awaited;
  }

  /** Ours end by themselves; a process that stops waits for them, so that no receipt is left behind. */
  async end(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  async #poll(look: () => Promise<Receipt>): Promise<Receipt> {
    let now = await look();
    for (let waited = 0; waited < this.waitMs && this.isSending(now); waited += POLL_MS) {
      await sleep(POLL_MS);
      now = await look();
    }
    return now;
  }
}
