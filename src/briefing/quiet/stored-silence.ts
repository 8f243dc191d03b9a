import type { CopyScope } from "../../database/database";
import { CONNECTION_CHANGED, notify } from "../../database/notifications";
import type { Shape } from "../../database/reads";
import { jsonRows } from "../../database/upsert";
import { JudgedCopyRow } from "../../entities/judged-copy";
import type { SyncResource } from "../../entities/sync-run";
import { SyncedCopyRow } from "../../entities/synced-copy";
import type { DealFacts } from "./facts";
import { type BegunPhase, flipsOf, tellFlips } from "./flips";
import { ms, readFacts } from "./read-quiet";
import { storeSnoozeEnds } from "./snooze";
import { type Phase, scheduleOf } from "./verdict";

/**
 * The schedules of the matched deals, which are all that anybody may read: whoever changes what a deal is judged by judges
 * it anew in the same transaction (decision 0079).
 */

/** Raised with each change of the rules: what was judged by earlier ones is judged anew by the next run. */
const RULES = 1;
/**
 * How it is told what judging changes: of each deal whose verdict flips; or as a whole, by whoever judges a new copy or by
 * other rules. What time alone has changed before is told of each deal either way.
 */
export type Telling = "EACH" | "AS_A_WHOLE";

/** Deals judged by one statement where many are. */
const BATCH = 500;

/** SQL: the deals that hang on records whose ids are $5, of the copy $2. What is not here changes no verdict. */
const HANGING_ON: Partial<Record<SyncResource, string>> = {
  DEALS: "SELECT x.id, x.id AS deal_id FROM unnest($5::bigint[]) AS x (id)",
  PERSONS: `SELECT x.person_id AS id, x.crm_id AS deal_id FROM deal x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.person_id = ANY ($5)
    UNION
    SELECT x.person_id, x.deal_id FROM deal_participant x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.person_id = ANY ($5)`,
  ACTIVITIES: `SELECT x.crm_id AS id, x.deal_id FROM activity x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.crm_id = ANY ($5)`,
  NOTES: `SELECT x.crm_id AS id, x.deal_id FROM note x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.crm_id = ANY ($5)`,
  STAGES: `SELECT x.stage_id AS id, x.crm_id AS deal_id FROM deal x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.stage_id = ANY ($5)`,
  DEAL_PARTICIPANTS: "SELECT x.id, x.id AS deal_id FROM unnest($5::bigint[]) AS x (id)",
};

const isMatched = (dealId: string) => `EXISTS (SELECT 1 FROM matched_record m
  WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = 'DEAL' AND m.crm_id = ${dealId})`;

/** A record and a deal that hangs on it. */
export interface Hanging {
  id: number;
  dealId: number;
}

/** The matched deals that hang on records, as the copy holds them now: before they go, or move to another deal. */
export async function hangingOn(
  { tenantId, copyId, rows }: CopyScope,
  resource: SyncResource,
  ids: readonly number[],
): Promise<Hanging[]> {
  const sql = HANGING_ON[resource];
  if (!sql || ids.length === 0) return [];
  return rows<Hanging>(
    `SELECT h.id, h.deal_id AS "dealId" FROM (${sql.replaceAll("$5", "$3")}) h WHERE ${isMatched("h.deal_id")}`,
    [tenantId, copyId, ids],
    { id: "number", dealId: "number" },
  );
}

/**
 * Judges the matched deals anew that hang on records, and others. Within the transaction that changed them, which holds the
 * copy for it: of two that judge one deal the later sees what the earlier did.
 */
export async function judgeChanged(
  copy: CopyScope,
  resource: SyncResource,
  ids: readonly number[],
  others: readonly number[],
  now: Date,
): Promise<void> {
  const sql = HANGING_ON[resource];
  if (!sql || ids.length + others.length === 0) return;
  // A stage may have all deals of a tenant.
  if (resource === "STAGES") {
    const deals = await hangingOn(copy, resource, ids);
    return judgeDeals(copy, distinct(deals.map(({ dealId }) => dealId)), now);
  }
  await judgeThose(copy, `SELECT unnest($4::bigint[]) UNION SELECT h.deal_id FROM (${sql}) h`, [others, ids], now);
}

/**
 * Judges those of these deals anew that are matched. The caller's transaction holds the copy for it, and tells of what it
 * wants to be told as a whole.
 */
export async function judgeDeals(
  copy: CopyScope,
  dealIds: readonly number[],
  now: Date,
  telling: Telling = "EACH",
): Promise<void> {
  for (let begin = 0; begin < dealIds.length; begin += BATCH)
    await judgeThose(copy, "SELECT unnest($4::bigint[])", [dealIds.slice(begin, begin + BATCH)], now, telling);
}

/**
 * Judges all deals of a copy anew where they were judged by other rules, or in another zone than its user's is by now. Until
 * that is committed every answer counts in the zone before.
 */
export async function judgeByPresentRules(copy: CopyScope, now: Date): Promise<void> {
  const { tenantId, copyId, rows, typed } = copy;
  const present = await typed((orm) => orm.findOneByOrFail(SyncedCopyRow, { tenantId, id: copyId }));
  const judged = await typed((orm) => orm.findOneBy(JudgedCopyRow, { tenantId, copyId }));
  const { timeZone } = present;
  if (judged?.timeZone === timeZone && judged.rules === RULES) return;
  await typed((orm) => orm.upsert(JudgedCopyRow, { tenantId, copyId, timeZone, rules: RULES }, ["tenantId", "copyId"]));
  const matched = await rows<{ id: number }>(
    "SELECT DISTINCT crm_id AS id FROM matched_record WHERE tenant_id = $1 AND copy_id = $2 AND entity = 'DEAL'",
    [tenantId, copyId],
    { id: "number" },
  );
  if (matched.length === 0) return;
  const ids = matched.map(({ id }) => id);
  await judgeDeals(copy, ids, now, "AS_A_WHOLE");
  await notify(copy, CONNECTION_CHANGED);
}

const distinct = (ids: readonly number[]) => [...new Set(ids)];

/** @param those SQL that selects ids of deals, with parameters from $4 on */
async function judgeThose(
  copy: CopyScope,
  those: string,
  parameters: readonly unknown[],
  now: Date,
  telling: Telling = "EACH",
): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  const begun = await rows<BegunOfDeal>(takeStored(those), [tenantId, copyId, now, ...parameters], BEGUN);
  const found = await readFacts(copy, `d.crm_id IN (${those}) AND ${isMatched("d.crm_id")}`, parameters, now);
  if (!found) return;
  const schedules = found.deals.map((facts) => ({
    dealId: facts.dealId,
    schedule: scheduleOf(facts, found.copy.rules, now.getTime()),
  }));
  await rows(STORE, [tenantId, copyId, jsonRows(schedules.flatMap(phasesOf))]);
  const first = found.deals.flatMap(firstMailOf);
  if (first.length > 0) await rows(KEEP_FIRST_MAIL, [tenantId, copyId, jsonRows(first)]);
  await storeSnoozeEnds(copy, found.deals, found.copy.rules, now);
  await tell(copy, schedules, begun, now, telling);
}

interface DealSchedule {
  dealId: number;
  schedule: readonly Phase[];
}

type BegunOfDeal = BegunPhase & { dealId: number };
const BEGUN: Shape<BegunOfDeal> = { dealId: "number", verdict: "text", from: "number", isTold: "flag" };

/**
 * SQL: what was stored goes, and of it is given what has begun by $3. A phase that a worker claims at this moment is waited
 * for, and comes as told.
 */
const takeStored = (those: string) => `
  WITH gone AS (
    DELETE FROM deal_silence s WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id IN (${those})
    RETURNING s.deal_id, s.phase, s.verdict, s.holds_from, s.is_told)
  SELECT g.deal_id AS "dealId", g.verdict, CASE WHEN g.phase > 0 THEN ${ms("g.holds_from")} END AS "from", g.is_told AS "isTold"
  FROM (SELECT gone.*, bool_and(is_told OR holds_from <= $3) OVER (PARTITION BY deal_id ORDER BY phase) AS has_begun FROM gone) g
  WHERE g.has_begun ORDER BY g.deal_id, g.phase`;

/** Tells of flips each by its deal, and of deals that are judged for the first time by one word for the connection. */
async function tell(
  copy: CopyScope,
  schedules: readonly DealSchedule[],
  stored: readonly BegunOfDeal[],
  now: Date,
  telling: Telling,
): Promise<void> {
  const begun = new Map<number, BegunPhase[]>();
  for (const phase of stored) begun.set(phase.dealId, [...(begun.get(phase.dealId) ?? []), phase]);
  const flips = schedules.flatMap(({ dealId, schedule: [present] }) => {
    const judged = telling === "EACH" && present ? present.verdict : null;
    return flipsOf(dealId, begun.get(dealId) ?? [], judged, now.getTime());
  });
  await tellFlips(copy, flips);
  if (telling === "EACH" && schedules.some(({ dealId }) => !begun.has(dealId))) await notify(copy, CONNECTION_CHANGED);
}

const text = (at: number | null | undefined) => (at == null ? null : new Date(at).toISOString());

function phasesOf({ dealId, schedule }: DealSchedule): object[] {
  return schedule.map(({ from, verdict, since }, phase) => ({
    ...{ dealId, phase, verdict, since: text(since) },
    from: phase === 0 ? null : text(from),
    until: text(schedule[phase + 1]?.from),
    isTold: phase === 0 || schedule[phase - 1]?.verdict === verdict,
  }));
}

const STORE = `
  INSERT INTO deal_silence (tenant_id, copy_id, deal_id, phase, holds_from, holds_until, verdict, quiet_since, is_told)
  SELECT $1, $2, r."dealId", r.phase, coalesce(r."from", '-infinity'::timestamptz), coalesce(r.until, 'infinity'::timestamptz), r.verdict, r.since, r."isTold"
  FROM jsonb_to_recordset($3::jsonb)
    AS r ("dealId" bigint, phase integer, "from" timestamptz, until timestamptz, verdict text, since timestamptz, "isTold" boolean)
  RETURNING 1 AS stored`;

/** The CRM moves the time of our latest mail with each one: the first that was seen is kept. */
function firstMailOf({ dealId, addedAt, hasFirstMail, contacts }: DealFacts): object[] {
  if (hasFirstMail) return [];
  const mails = contacts.filter(({ kind, at }) => kind === "OUTGOING_MAIL" && (addedAt === null || at >= addedAt));
  const [first] = mails.sort((a, b) => a.at - b.at || a.crmId - b.crmId);
  return first ? [{ dealId, at: text(first.at), personId: first.crmId }] : [];
}

const KEEP_FIRST_MAIL = `
  UPDATE deal d SET first_mail_at = r.at, first_mail_person_id = r."personId"
  FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, at timestamptz, "personId" bigint)
  WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = r."dealId"`;
