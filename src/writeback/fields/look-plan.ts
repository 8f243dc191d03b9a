import { MINUTE_MS, SECOND_MS } from "../../platform/clock";
import { SETTLED_AFTER_MS } from "../look-up-plan";

/** What was taken in late mostly shows by then. */
const SOON_MS = 5 * SECOND_MS;
const LONGEST_PAUSE_MS = 360 * MINUTE_MS;

/**
 * When an UNKNOWN value is looked at next: soon, then when a look can prove that it is not there, then after pauses as
 * long as the time since the sending.
 */
export function nextLook(sentAt: Date, now: Date): Date {
  const age = now.getTime() - sentAt.getTime();
  if (age < SOON_MS) return new Date(sentAt.getTime() + SOON_MS);
  if (age < SETTLED_AFTER_MS) return new Date(sentAt.getTime() + SETTLED_AFTER_MS + SOON_MS);
  return new Date(now.getTime() + Math.min(age, LONGEST_PAUSE_MS));
}

/** @param holds whether the record held the value in a look begun at `begunAt` */
export function verdictOf(sentAt: Date, begunAt: Date, holds: boolean): "WRITTEN" | "FAILED" | "UNKNOWN" {
  if (holds) return "WRITTEN";
  return begunAt.getTime() >= sentAt.getTime() + SETTLED_AFTER_MS ? "FAILED" : "UNKNOWN";
}
