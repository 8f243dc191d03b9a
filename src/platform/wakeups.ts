/**
 * Turns "something changed" into an async iterator that holds at most one of them: a reader that is slow or stops
 * reading misses intermediate changes, never the last one, and costs one bit. Wakes once at the start, so that the
 * reader sees the present state first.
 */
export class Wakeups implements AsyncIterableIterator<true> {
  #pending = true;
  #ended = false;
  #waiting: ((result: IteratorResult<true>) => void) | null = null;
  readonly #unsubscribe: () => void;

  constructor(subscribe: (wake: () => void) => () => void) {
    this.#unsubscribe = subscribe(() => this.#wake());
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<true>> {
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    if (this.#pending) {
      this.#pending = false;
      return Promise.resolve({ done: false, value: true });
    }
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Ends at once, also while `next` waits: an async generator would hang here until the next change. */
  return(): Promise<IteratorResult<true>> {
    this.#ended = true;
    this.#unsubscribe();
    this.#waiting?.({ done: true, value: undefined });
    this.#waiting = null;
    return Promise.resolve({ done: true, value: undefined });
  }

  #wake(): void {
    if (!this.#waiting) {
      this.#pending = true;
      return;
    }
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting({ done: false, value: true });
  }
}

/** Reads a value at each wake-up; where there is none yet, the reader waits for the next. */
export class LatestValues<T> implements AsyncIterableIterator<T> {
  constructor(
    private readonly wakeups: Wakeups,
    private readonly read: () => Promise<T | null>,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T>> {
    while (!(await this.wakeups.next()).done) {
      const value = await this.read();
      if (value !== null) return { done: false, value };
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<T>> {
    await this.wakeups.return();
    return { done: true, value: undefined };
  }
}
