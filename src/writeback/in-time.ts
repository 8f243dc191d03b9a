import { type Clock, timeLimit } from "../platform/clock";
import { BEGIN_WITHIN_MS } from "./look-up-plan";
import { NotSentInTimeError } from "./write-failure";

/**
 * Looked at right before a write goes on the wire. Waiting for a token or for a socket may take long, and a frozen process
 * does not know for how long it was one: what is sent after its receipt counts as abandoned could come to light too late.
 */
export function inTime(requestedAt: Date, clock: Clock): () => void {
  const isOver = timeLimit(clock, BEGIN_WITHIN_MS, requestedAt);
  return () => {
    if (isOver()) throw new NotSentInTimeError("It was not sent within a minute of its receipt.");
  };
}
