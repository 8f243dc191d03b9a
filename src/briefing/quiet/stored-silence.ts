import { CONNECTION_CHANGED, notify } from "../../database/between-processes";
import { type CopyScope } from "../../database/database";
import { rowsOf } from "../../database/rows";
import { jsonRows } from "../../database/upsert";
import type { Standards } from "../../entities/silence";
import type { SyncResource } from "../../entities/sync-run";
import type { DealFacts } from "./facts";
import { type QuietFacts, readKeptFacts, readQuietFacts } from "./read-quiet";
import { byStandards, RULES, rulesOf, staleFrom } from "./rules";
import {
  isMatchedDeal,
  JUDGED,
  KEEP_FIRST_MAIL,
  KEEP_LISTED,
  KEEP_SNOOZE_END,
  LET_GO,
  MARK_HOLDING,
  phasesOf,
  STORE,
  STORE_LET_GO,
} from "./silence-rows";
import { firstMailOf, type OfOthers } from "./situation";
import { flipsOf, type Phase, scheduleOf, snoozeEnd, type TakenPhase, tellFlips } from "./verdict";

/** Schedules of the matched deals: who changes what one is judged by judges it anew in that transaction (decision 0079). */

/**
 * What judging changes is told of each deal whose verdict flips, or as a whole by whoever judges a new copy. What time alone
 * has changed before is told of each deal either way.
 */
export type Telling = "EACH" | "AS_A_WHOLE";

/** Deals judged by one statement. */
const BATCH = 500;

/** SQL: the deals that hang on a record `one.id` of the copy $2. What is not here changes no verdict. */
const HANGING_ON: Partial<Record<SyncResource, string>> = {
  DEALS: "SELECT one.id",
  DEAL_PARTICIPANTS: "SELECT one.id",
  PERSONS: `SELECT x.crm_id FROM ${rowsOf("deal", "person_id", "one.id")} x
    UNION SELECT x.deal_id FROM ${rowsOf("deal_participant", "person_id", "one.id")} x`,
  ACTIVITIES: `SELECT x.deal_id FROM ${rowsOf("activity", "crm_id", "one.id")} x`,
  NOTES: `SELECT x.deal_id FROM ${rowsOf("note", "crm_id", "one.id")} x`,
};

/** A record and a deal that hangs on it. */
export interface Hanging {
  id: number;
  dealId: number;
}

/**
 * The matched deals that hang on records, as the copy holds them now: before they go, or move to another deal. They are looked
 * up record by record: pages of a first sync come before PostgreSQL knows anything of the tables.
 */
export async function hangingOn(
  { tenantId, copyId, rows }: CopyScope,
  resource: SyncResource,
  ids: readonly number[],
): Promise<Hanging[]> {
  const deals = HANGING_ON[resource];
  if (!deals || ids.length === 0) return [];
  return rows<Hanging>(
    `SELECT one.id, h.deal_id AS "dealId" FROM unnest($3::bigint[]) AS one (id) CROSS JOIN LATERAL (${deals}) h (deal_id)
     WHERE ${isMatchedDeal("h.deal_id")}`,
    [tenantId, copyId, ids],
    { id: "number", dealId: "number" },
  );
}

/**
 * Judges the matched deals anew that hang on records, and others. In the transaction that changed them, which holds the copy:
 * of two that judge one deal the later sees what the earlier did.
 */
export async function judgeChanged(
  copy: CopyScope,
  resource: SyncResource,
  ids: readonly number[],
  others: readonly number[],
  now: Date,
): Promise<void> {
  const changed = new Set((await hangingOn(copy, resource, ids)).map(({ dealId }) => dealId));
  for (const dealId of others) changed.delete(dealId);
  if (resource === "DEALS" && changed.size > 0) {
    // To judge 500 for nothing took several times as long as to write them.
    const { tenantId, copyId, rows } = copy;
    const kept = await rows<{ id: number }>(KEEP_LISTED, [tenantId, copyId, [...changed]], { id: "number" });
    for (const { id } of kept) changed.delete(id);
  }
  // Of one that is matched no more would be forgotten what was told of it last.
  const left = await hangingOn(copy, "DEALS", [...new Set(others)]);
  const leftIds = left.map(({ dealId }) => dealId);
  await judgeDeals(copy, leftIds, now);
  // Of the records that hang on a deal its own row says nothing.
  const read = resource === "DEALS" ? readKeptFacts : readQuietFacts;
  await judgeDeals(copy, [...changed], now, "EACH", read);
}

/**
 * Of deals that a meeting has left those are let go that no other matches; the changed ones are judged anew, or for the first
 * time. What changes while a deal is not matched is told as one flip when it is again.
 */
export async function judgeMatched(
  copy: CopyScope,
  { left, changed }: { left: readonly number[]; changed: readonly number[] },
  now: Date,
  telling: Telling,
): Promise<void> {
  const judged = new Set(changed);
  for (const dealId of await letGo(copy, left)) judged.delete(dealId);
  await judgeDeals(copy, [...judged], now, telling);
}

/** @returns those of the deals that are matched no more and of which something was told */
async function letGo({ tenantId, copyId, rows }: CopyScope, left: readonly number[]): Promise<number[]> {
  if (left.length === 0) return [];
  const shape = { dealId: "number", last: "json" } as const;
  const told = await rows<{ dealId: number; last: object }>(LET_GO, [tenantId, copyId, "-infinity", left], shape);
  if (told.length > 0) await rows(STORE_LET_GO, [tenantId, copyId, jsonRows(told.map(({ last }) => last))]);
  return told.map(({ dealId }) => dealId);
}

/** Judges those of these deals anew that are matched. The caller's transaction holds the copy, and tells of what is told as a whole. */
export async function judgeDeals(
  copy: CopyScope,
  dealIds: readonly number[],
  now: Date,
  telling: Telling = "EACH",
  read = readQuietFacts,
): Promise<void> {
  for (let begin = 0; begin < dealIds.length; begin += BATCH) {
    const found = await read(copy, dealIds.slice(begin, begin + BATCH), now, JUDGED);
    if (found) await judgeFound(copy, found, now, telling);
  }
}

async function judgeFound(copy: CopyScope, found: QuietFacts, now: Date, telling: Telling): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  const schedules = found.deals.map((facts) => ({
    ...facts,
    schedule: scheduleOf(facts, found.copy.rules, now.getTime()),
    begun: found.begun[facts.dealId] ?? [],
  }));
  // Who judges next finds our first mail kept.
  const kept = { hasFirstMail: true, firstMailLeft: false };
  const phases = schedules.flatMap((deal) => phasesOf(deal, deal.schedule, found.generation, kept));
  await rows(STORE, [tenantId, copyId, jsonRows([...phases, ...comingPhases(found, now, kept)])]);
  await keepOfDeals(copy, KEEP_FIRST_MAIL, found.deals, firstMailOf);
  await keepSnoozeEnds(copy, found, now);
  const isJudgedBy = ({ version }: Standards) => version === RULES || version === RULES_OF_SEVERAL;
  if (!isJudgedBy(found.standards) || (found.coming && !isJudgedBy(found.coming)))
    await rows(NOTE_OTHER_RULES, [tenantId, copyId, Math.min(...found.deals.map(({ dealId }) => dealId)) - 1]);
  await tell(copy, schedules, staleFrom(found.copy), now, telling);
}

export const keepSnoozeEnds = (copy: CopyScope, { deals, copy: { rules } }: QuietFacts, now: Date): Promise<void> =>
  keepOfDeals(copy, KEEP_SNOOZE_END, deals, (deal) => deal.snooze && { at: snoozeEnd(deal, rules, +now) });

/** Keeps in the rows of deals the instant that {@link of} says, and what belongs to it; of most it is none. */
async function keepOfDeals(
  { tenantId, copyId, rows }: CopyScope,
  sql: string,
  deals: readonly DealFacts[],
  of: (facts: DealFacts) => { at: number | null } | null | undefined,
): Promise<void> {
  const kept = deals.map((facts) => [facts.dealId, of(facts)] as const).filter(([, what]) => what);
  if (kept.length === 0) return;
  await rows(sql, [tenantId, copyId, JSON.stringify(Object.fromEntries(kept)), kept.map(([id]) => id)]);
}

/** A deal, and the phases that had begun of what was stored of it. */
interface Taken {
  dealId: number;
  begun: TakenPhase[];
}

/** Tells of flips each by its deal, and of deals that are new to lists by one word for the connection. */
async function tell(
  copy: CopyScope,
  schedules: readonly (Taken & { schedule: readonly Phase[] })[],
  stale: number | null,
  now: Date,
  telling: Telling,
): Promise<void> {
  const flips = schedules.flatMap(({ dealId, begun, schedule: [present] }) => {
    const judged = telling === "EACH" && present ? present.verdict : null;
    return flipsOf(dealId, begun, judged, now.getTime());
  });
  await tellFlips(copy, flips, stale, now);
  const isNew = ({ begun }: Taken) => !begun.some(({ isListed }) => isListed);
  if (telling === "EACH" && schedules.some(isNew)) await notify(copy, CONNECTION_CHANGED);
}

/** No release's: a sweep finds it and has all deals judged anew. A walk by the rules of another one goes back to what it has passed. */
const RULES_OF_SEVERAL = 0;
const NOTE_OTHER_RULES = `
  UPDATE judged_copy j SET standards = j.standards || '{"version": ${RULES_OF_SEVERAL}}'::jsonb, walked_to = least(j.walked_to, $3::bigint)
  WHERE j.tenant_id = $1 AND j.copy_id = $2`;

/** Of the deals the schedules by the standards that are coming: they are of the next generation. */
export function comingPhases({ deals, generation, coming }: QuietFacts, now: Date, kept?: Partial<OfOthers>): object[] {
  if (!coming) return [];
  const rules = rulesOf(coming);
  return byStandards(deals, coming).flatMap((facts) =>
    phasesOf(facts, scheduleOf(facts, rules, now.getTime()), generation + 1, kept),
  );
}

/** Keeps those few whose mark is behind: lists look their phases up. The caller's transaction holds the copy to judge. */
export async function markHolding({ tenantId, copyId, rows }: CopyScope, now: Date): Promise<void> {
  await rows(MARK_HOLDING, [tenantId, copyId, now]);
}
