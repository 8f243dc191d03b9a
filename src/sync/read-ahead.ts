/**
 * Reads one piece ahead while the caller commits the one before, never more: two pieces are in memory at most. What
 * was read ahead of a commit that fails is dropped, and `left` tells the reader to begin no further request.
 */
export async function* oneAhead<T>(read: (left: AbortSignal) => AsyncGenerator<T>): AsyncGenerator<T> {
  const leaving = new AbortController();
  const pieces = read(leaving.signal);
  const ask = () => {
    const asked = pieces.next();
    // It may fail while the piece before is being committed: whoever awaits it hears of it when its turn comes.
    asked.catch(() => undefined);
    return asked;
  };
  try {
    let next = ask();
    for (let piece = await next; !piece.done; piece = await next) {
      next = ask();
      yield piece.value;
    }
  } finally {
    leaving.abort();
  }
}
