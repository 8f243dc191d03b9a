import type { CopyScope } from "../../database/database";
import { jsonRows } from "../../database/upsert";
import type { DealFacts, QuietRules } from "./facts";
import { situationAt } from "./situation";

/**
 * When a snooze that holds at an instant ends: at its date, or with the buyer's next contact after it was begun. A meeting
 * with the buyer is one at its end; another contact when it is known of.
 */
export function snoozeEnd(facts: DealFacts, rules: QuietRules, now: number): number | null {
  const { snooze, meetings } = facts;
  if (!snooze) return null;
  const { inbound } = situationAt(facts, rules, now);
  if (inbound && inbound.at > snooze.at) return now;
  const held = meetings.filter(({ withBuyer, endsAt }) => withBuyer && endsAt > now).map(({ endsAt }) => endsAt);
  return Math.min(snooze.until, ...held);
}

/** Who judges a deal stores when its snooze ends: lists compare one instant. One that has ended is not taken up again. */
export async function storeSnoozeEnds(
  { tenantId, copyId, rows }: CopyScope,
  deals: readonly DealFacts[],
  rules: QuietRules,
  now: Date,
): Promise<void> {
  const ends = deals.flatMap((facts) => {
    const end = snoozeEnd(facts, rules, now.getTime());
    return end === null ? [] : [{ dealId: facts.dealId, at: new Date(end).toISOString() }];
  });
  if (ends.length > 0) await rows(STORE, [tenantId, copyId, jsonRows(ends)]);
}

const STORE = `
  UPDATE deal d SET snooze_ends_at = r.at
  FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, at timestamptz)
  WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = r."dealId"`;

/** SQL: the deals that are snoozed at an instant, of the copy $2 of the tenant $1. They are few. */
export const snoozedDeals = (at: string) =>
  `SELECT z.crm_id FROM deal z WHERE z.tenant_id = $1 AND z.copy_id = $2 AND z.snooze_ends_at > ${at}`;
