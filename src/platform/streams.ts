/** A value that changes: it wakes who listens, and is read. Iterated, it gives its states to one reader. */
export class StateStream<T> implements AsyncIterable<T> {
  /**
   * @param listen calls `wake` at each change; returns what ends that
   * @param read null: there is no value yet
   */
  constructor(
    readonly listen: (wake: () => void) => () => void,
    readonly read: () => Promise<T | null>,
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
  #waiting: (() => void) | null = null;
  readonly #unlisten: () => void;

  constructor(private readonly value: StateStream<T>) {
    this.#unlisten = value.listen(() => this.#wake());
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T>> {
    while (!this.#ended) {
      if (!this.#pending) await this.#change();
      else {
        this.#pending = false;
        const state = await this.value.read();
        this.#pending ||= this.value.hasMore();
        if (state !== null) return { done: false, value: state };
      }
    }
    return { done: true, value: undefined };
  }

  /** Ends at once, also while `next` waits: an async generator would hang here until the next change. */
  async return(): Promise<IteratorResult<T>> {
    this.#ended = true;
    this.#unlisten();
    this.#waiting?.();
    return { done: true, value: undefined };
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  #wake(): void {
    this.#pending = true;
    this.#waiting?.();
    this.#waiting = null;
  }
}

/** Hands a thing over to one of its readers. Ten thousand readers go on with it in several turns of the event loop. */
export type HandOver = <T>(thing: T) => Promise<T>;

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
  const wakes = new Set<() => void>();
  let unlisten = () => {};
  let known: { state: Promise<T | null>; readAt: number } | null = null;
  const changed = () => {
    known = null;
    for (const wake of wakes) wake();
  };
  const leave = (wake: () => void) => {
    if (!wakes.delete(wake) || wakes.size > 0) return;
    known = null;
    unlisten();
    ended();
  };
  const listen = (wake: () => void) => {
    if (wakes.size === 0) unlisten = value.listen(changed);
    wakes.add(wake);
    return () => leave(wake);
  };
  const read = () => {
    const now = performance.now();
    if (!known || now - known.readAt >= freshMs) known = { state: value.read(), readAt: now };
    return known.state;
  };
  return new StateStream(listen, async () => handOver(await read()));
}

/**
 * Happenings that wait for one reader: all that a page of a sync can bring at once. A reader that is this far behind misses
 * the oldest, and reads anew what it shows.
 */
const MOST_WAITING = 1_000;

/** The answer to one event, read when its first reader comes to it, once for all readers; null: there is none any more. */
type Told<T> = () => Promise<T | null>;

/** Things that happen, each told to every reader once and in their order, from when it begins to read. */
export class EventStream<T> implements AsyncIterable<T> {
  /**
   * @param listen calls `happened` at each; returns what ends that
   * @param addressee the one reader whom it is told, and nobody else; null: every reader
   */
  constructor(
    readonly listen: (happened: (told: Told<T>) => void) => () => void,
    private readonly addressee: (one: T) => string | null = () => null,
  ) {}

  [Symbol.asyncIterator](): AsyncIterableIterator<T> {
    const waiting: Told<T>[] = [];
    const states = new States(
      new StateStream<T>(
        (wake) =>
          this.listen((told) => {
            if (waiting.push(told) > MOST_WAITING) waiting.shift();
            wake();
          }),
        async () => {
          for (let told = waiting.shift(); told; told = waiting.shift()) {
            const one = await told();
            if (one !== null) return one;
          }
          return null;
        },
        () => waiting.length > 0,
      ),
    );
    return states;
  }

  /**
   * The same, for each reader by its name, with something done to each thing once for all who are told of it. What is for
   * none of them is read, and nothing is done to it.
   * @param ended the last reader has left
   */
  shared<U>(
    tell: (one: T) => Promise<U | null>,
    ended: () => void,
    handOver: HandOver,
  ): (reader: string) => EventStream<U> {
    const readers = new Set<(told: (reader: string) => Promise<U | null>) => void>();
    let unlisten = () => {};
    const happened = (told: Told<T>) => {
      const read = once(told);
      const answer = once(async () => {
        const one = await read();
        return one === null ? null : tell(one);
      });
      const answerTo = async (reader: string) => {
        const one = await read();
        const only = one === null ? null : this.addressee(one);
        return only === null || only === reader ? answer() : null;
      };
      for (const hear of readers) hear(answerTo);
    };
    return (reader) =>
      new EventStream((hear) => {
        const heard = (told: (reader: string) => Promise<U | null>) => hear(async () => handOver(await told(reader)));
        if (readers.size === 0) unlisten = this.listen(happened);
        readers.add(heard);
        return () => {
          if (!readers.delete(heard) || readers.size > 0) return;
          unlisten();
          ended();
        };
      });
  }
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | null = null;
  return () => {
    known ??= read();
    return known;
  };
}
