import { setImmediate as nextTurn } from "node:timers/promises";
import pLimit from "p-limit";

const oneAtATime = pLimit(1);

/**
 * A piece of long work, in a turn of the event loop of its own: of all pieces that the process has to do, one a turn,
 * and requests, timers and the database are served in between. What is bounded is the piece; how many wait is not.
 */
export function inSlice<T>(work: () => T): Promise<T> {
  return oneAtATime(async () => {
    await nextTurn();
    return work();
  });
}
