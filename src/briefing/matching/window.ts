import { DAY_MS } from "../../platform/clock";
import type { DealFact } from "./facts";

/** A deal opened after the meeting, or closed before it, may still be what the meeting was about for this long. */
export const WINDOW_MS = 14 * DAY_MS;

type Times = Pick<DealFact, "addTime" | "wonTime" | "lostTime">;

const closedAt = ({ wonTime, lostTime }: Times): number | null =>
  Math.max(wonTime?.getTime() ?? 0, lostTime?.getTime() ?? 0) || null;

/** Judged by the deal's own time stamps, never by its status today: a meeting of last month stays about its deal. */
export function isInWindow(deal: Times, startsAt: Date): boolean {
  const closed = closedAt(deal);
  const openedInTime = deal.addTime === null || deal.addTime.getTime() <= startsAt.getTime() + WINDOW_MS;
  return openedInTime && (closed === null || closed >= startsAt.getTime() - WINDOW_MS);
}

/** Whether the deal had been won or lost when the meeting began. */
export function wasClosed(deal: Times, startsAt: Date): boolean {
  const closed = closedAt(deal);
  return closed !== null && closed <= startsAt.getTime();
}
