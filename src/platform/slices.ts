/** UTF-16 units that are worked through in one turn of the event loop: ten milliseconds at the worst. */
const SLICE = 20_000;

interface Piece {
  size: number;
  work(): void;
}

const waiting: Piece[] = [];

/**
 * A piece of long work in a later turn of the event loop. Of all that the process has to do there is one slice a turn,
 * small pieces together and a large one alone, whoever asked: requests, timers and the database are served in between.
 * @param size what the work grows with
 */
export function inSlice<T>(size: number, work: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    if (waiting.length === 0) setImmediate(doSlice);
    const settle = () => {
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      }
    };
    waiting.push({ size, work: settle });
  });
}

function doSlice(): void {
  let size = 0;
  let pieces = 0;
  for (const piece of waiting) {
    if (pieces > 0 && size + piece.size > SLICE) break;
    piece.work();
    size += piece.size;
    pieces += 1;
  }
  waiting.splice(0, pieces);
  if (waiting.length > 0) setImmediate(doSlice);
}
