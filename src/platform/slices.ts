import { workTenant } from "./work";

/** UTF-16 units that are worked through in one turn of the event loop: ten milliseconds at the worst. */
const SLICE = 20_000;
/** The size of a piece that has a turn of the event loop to itself. */
export const ALONE = SLICE;

interface Piece {
  size: number;
  work(): void;
}

/** By who asked, in the order of their turns: who was served goes to the end. */
const waiting = new Map<number | null, Piece[]>();

/**
 * A piece of long work in a later turn of the event loop. Of all that the process has to do there is one slice a turn,
 * small pieces together and a large one alone: requests, timers and the database are served in between. Who asks for
 * many pieces waits behind their own: tenants take turns, and what is asked for outside of any operation or job is one.
 * @param size what the work grows with
 */
export function inSlice<T>(size: number, work: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    if (waiting.size === 0) setImmediate(doSlice);
    const settle = () => {
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      }
    };
    const tenantId = workTenant();
    const theirs = waiting.get(tenantId) ?? [];
    theirs.push({ size, work: settle });
    waiting.set(tenantId, theirs);
  });
}

function doSlice(): void {
  let size = 0;
  for (const [tenantId, theirs] of waiting) {
    const [next] = theirs;
    if (!next || (size > 0 && size + next.size > SLICE)) break;
    theirs.shift();
    waiting.delete(tenantId);
    if (theirs.length > 0) waiting.set(tenantId, theirs);
    size += Math.max(1, next.size);
    next.work();
  }
  if (waiting.size > 0) setImmediate(doSlice);
}
