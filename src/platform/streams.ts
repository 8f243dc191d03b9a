import { EventsMissedError } from "./errors";
import { once } from "./work";

/** Tells a reader of a change; with the state where that is known already. */
type Wake<T> = (state?: T | null) => void;

/** A value that changes: it wakes who listens, and is read. Iterated, it gives its states to one reader. */
export class StateStream<T> implements AsyncIterable<T> {
  /**
   * @param listen calls `wake` at each change; returns what ends that
   * @param read what the one who is woken so reads for itself; null: there is no value yet
   */
  constructor(
    readonly listen: (wake: Wake<T>) => () => void,
    readonly read: (reader: Wake<T>) => Promise<T | null>,
    /** Whether there is more to read without a further wake-up. */
    readonly hasMore: () => boolean = () => false,
  ) {}

  [Symbol.asyncIterator](): States<T> {
    return new States(this);
  }
}

/**
 * The present state of a value, and the newest after each change. Holds at most one wake-up: a reader that is slow or
 * stops reading misses intermediate states, never the last one, and costs one bit. It listens before it reads, so no
 * change is lost between the first state and the next.
 */
class States<T> implements AsyncIterableIterator<T> {
  #pending = true;
  #ended = false;
  #waiting: ((next: IteratorResult<T> | Promise<IteratorResult<T>>) => void) | null = null;
  readonly #wake: Wake<T> = (state = null) => {
    if (!this.#waiting) this.#pending = true;
    else this.#give(state === null ? this.#read() : { done: false, value: state });
  };
  readonly #unlisten: () => void;

  constructor(private readonly value: StateStream<T>) {
    this.#unlisten = value.listen(this.#wake);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#pending || this.#ended) return this.#read();
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Ends at once, also while `next` waits: an async generator would hang here until the next change. */
  async return(): Promise<IteratorResult<T>> {
    this.#ended = true;
    this.#unlisten();
    this.#give(DONE);
    return DONE;
  }

  async #read(): Promise<IteratorResult<T>> {
    if (this.#ended) return DONE;
    this.#pending = false;
    const state = await this.value.read(this.#wake);
    this.#pending ||= this.value.hasMore();
    return state === null ? this.next() : { done: false, value: state };
  }

  #give(next: IteratorResult<T> | Promise<IteratorResult<T>>): void {
    this.#waiting?.(next);
    this.#waiting = null;
  }
}

export const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Goes on with each of the readers; with ten thousand in several turns of the event loop. */
export type HandOver = <R>(readers: readonly R[], tell?: (reader: R) => void) => Promise<void>;

/**
 * A value that is listened to once and read once for each change, however many listen to it.
 * @param freshMs what was read is shared so long at most, for changes that wake nobody
 * @param ended the last one has left; whoever listens later begins anew
 */
export function share<T>(
  value: StateStream<T>,
  freshMs: number,
  ended: () => void,
  handOver: HandOver,
): StateStream<T> {
  // Who listens, and the number of the last change that each knows.
  const known = new Map<Wake<T>, number>();
  let [changes, isTelling, unlisten] = [0, false, () => {}];
  let newest: { state: Promise<T | null>; readAt: number } | null = null;
  const readNewest = () => {
    const now = performance.now();
    if (!newest || now - newest.readAt >= freshMs) newest = { state: value.read(changed), readAt: now };
    return newest.state;
  };
  const tell = async () => {
    const change = changes;
    // Where that fails, each reads for itself and is told so.
    const state = await readNewest().catch(() => null);
    await handOver([...known.keys()], (wake) => {
      if ((known.get(wake) ?? change) >= change) return;
      known.set(wake, change);
      wake(state);
    });
    // What has changed meanwhile is told in one more round, so that rounds never pile up.
    isTelling = changes > change;
    if (isTelling) queueMicrotask(tell);
  };
  const changed = () => {
    newest = null;
    changes += 1;
    // Not at once: changes that come together are read once.
    if (!isTelling) queueMicrotask(tell);
    isTelling = true;
  };
  const read = (reader: Wake<T>) => {
    // At least as new as what it was to be told, which must not come after it.
    known.set(reader, changes);
    return readNewest().finally(() => handOver([reader]));
  };
  const leave = (wake: Wake<T>) => {
    if (!known.delete(wake) || known.size > 0) return;
    newest = null;
    unlisten();
    ended();
  };
  const listen = (wake: Wake<T>) => {
    if (known.size === 0) unlisten = value.listen(changed);
    known.set(wake, changes);
    return () => leave(wake);
  };
  return new StateStream(listen, read);
}

/** Happenings that wait for one reader: all that a page of a sync can bring at once. One this far behind is told that it missed some. */
const MOST_WAITING = 1_000;

/** The answer to one event, read when its first reader comes to it, once for all readers; null: there is none any more. */
type Told<T> = () => Promise<T | null>;

/** Told in place of what nobody can tell any more. */
export const missed: Told<never> = () => Promise.reject(new EventsMissedError());

/** Things that happen, each told to every reader once and in their order, from when it begins to read. */
export class EventStream<T> implements AsyncIterable<T> {
  /**
   * @param listen calls `happened` at each; returns what ends that
   * @param addressee the one reader whom it is told, and nobody else; null: every reader
   * @param isBehind told to a reader in place of all that waits
   */
  constructor(
    readonly listen: (happened: (told: Told<T>) => void) => () => void,
    private readonly addressee: (one: T) => string | null = () => null,
    private readonly isBehind: Told<T> = missed,
  ) {}

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    const waiting: Told<T>[] = [];
    const listen = (wake: () => void) =>
      this.listen((told) => {
        if (waiting.push(told) > MOST_WAITING) waiting.splice(0, waiting.length, this.isBehind);
        wake();
      });
    const read = async () => {
      for (let told = waiting.shift(); told; told = waiting.shift()) {
        const one = await told();
        if (one !== null) return one;
      }
      return null;
    };
    return new States(new StateStream(listen, read, () => waiting.length > 0));
  }

  /**
   * The same, for each reader by its name, with something done to each thing once for all who are told of it. What is for
   * none of them is read, and nothing is done to it.
   * @param tell reads the thing, and makes an answer of what fails as well
   * @param ended the last reader has left
   */
  shared<U>(
    tell: (read: Told<T>) => Promise<U | null>,
    ended: () => void,
    handOver: HandOver,
  ): (reader: string) => EventStream<U> {
    const readers = new Set<(told: (reader: string) => Promise<U | null>) => void>();
    let unlisten = () => {};
    const happened = (told: Told<T>) => {
      const read = once(told);
      const answer = once(() => tell(read));
      const answerTo = async (reader: string) => {
        // What could not be read may be for anybody.
        const one = await read().catch(() => null);
        const only = one === null ? null : this.addressee(one);
        return only === null || only === reader ? answer() : null;
      };
      for (const hear of readers) hear(answerTo);
    };
    const listenAs = (reader: string) => (hear: (told: Told<U>) => void) => {
      const heard = (told: (reader: string) => Promise<U | null>) =>
        hear(() => told(reader).finally(() => handOver([reader])));
      if (readers.size === 0) unlisten = this.listen(happened);
      readers.add(heard);
      return () => {
        if (!readers.delete(heard) || readers.size > 0) return;
        unlisten();
        ended();
      };
    };
    return (reader) => new EventStream(listenAs(reader), undefined, () => tell(missed));
  }
}
