import { DAY_MS } from "../../platform/clock";
import type { DealFact } from "./facts";

/** A deal opened after the meeting, or closed before it, may still be what the meeting was about for this long. */
export const WINDOW_MS = 14 * DAY_MS;

type Times = Pick<DealFact, "isOpen" | "addTime" | "wonTime" | "lostTime" | "closeTime">;

/**
 * How a deal stood when the meeting began. Judged by its own time stamps and not by its status today: a meeting of last
 * month stays about its deal. CLOSED_SOMETIME: it is closed by now, and the CRM does not say since when.
 */
export type Standing = "OPEN" | "CLOSED" | "CLOSED_SOMETIME" | "OPENED_LATER";

/** null: it is open now, whatever it was before, or the CRM does not say. */
export function closedAt({ isOpen, wonTime, lostTime, closeTime }: Times): Date | null {
  if (isOpen) return null;
  const times = [wonTime, lostTime].filter((time) => time !== null).sort((a, b) => a.getTime() - b.getTime());
  return times.at(-1) ?? closeTime;
}

/** null: it was opened too late, or had been closed for too long, for the meeting to be about it. */
export function standingAt(deal: Times, startsAt: Date): Standing | null {
  const start = startsAt.getTime();
  const opened = deal.addTime?.getTime() ?? start;
  const closed = closedAt(deal)?.getTime() ?? null;
  if (opened > start + WINDOW_MS || (closed !== null && closed < start - WINDOW_MS)) return null;
  if (opened > start) return "OPENED_LATER";
  if (closed === null) return deal.isOpen ? "OPEN" : "CLOSED_SOMETIME";
  return closed <= start ? "CLOSED" : "OPEN";
}
