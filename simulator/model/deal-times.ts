import type { Deal } from "./records";
import { dateOnly, v2Time } from "./times";

/** The times that belong to a new stage or status of a deal. */
export function dealTimes(deal: Deal, patch: Partial<Deal>, nowSeconds: number): Partial<Deal> {
  const now = v2Time(nowSeconds);
  const today = dateOnly(nowSeconds);
  const times: Partial<Deal> = {};
  if (patch.stage_id !== undefined && patch.stage_id !== deal.stage_id) times.stage_change_time = now;
  if (patch.status === "won") Object.assign(times, { won_time: now, local_won_date: today });
  if (patch.status === "lost") Object.assign(times, { lost_time: now, local_lost_date: today });
  if (times.won_time || times.lost_time) Object.assign(times, { close_time: now, local_close_date: today });
  return times;
}
