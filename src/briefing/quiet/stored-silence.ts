import type { CopyScope } from "../../database/database";
import { jsonRows } from "../../database/upsert";
import { JudgedCopyRow } from "../../entities/judged-copy";
import type { SyncResource } from "../../entities/sync-run";
import { SyncedCopyRow } from "../../entities/synced-copy";
import type { DealFacts } from "./facts";
import { type QuietFacts, readFacts } from "./read-quiet";
import { scheduleOf } from "./verdict";

/**
 * The schedules of the matched deals, which are all that anybody may read: whoever changes what a deal is judged by judges
 * it anew in the same transaction (decision 0079).
 */

/** Raised with each change of the rules: what was judged by earlier ones is judged anew by the next run. */
const RULES = 1;
/** Deals judged by one statement where many are. */
const BATCH = 500;

/** SQL: what of a row of `deal` a verdict hangs on. */
const judgedAs = (
  d: string,
) => `concat(${d}.status, ' ', ${d}.person_id, ' ', ${d}.participants_count, ' ', ${d}.stage_id, ' ',
  extract(epoch FROM ${d}.stage_change_time), ' ', extract(epoch FROM ${d}.add_time))`;

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
  const those = resource === "DEALS" ? JUDGED_OTHERWISE : sql;
  const besides = resource === "DEALS" ? [KEEP_LISTED] : [];
  const all = `SELECT unnest($4::bigint[]) UNION SELECT h.deal_id FROM (${those}) h`;
  await judgeThose(copy, all, [others, ids], now, besides);
}

/** Judges those of these deals anew that are matched. The caller's transaction holds the copy for it. */
export async function judgeDeals(copy: CopyScope, dealIds: readonly number[], now: Date): Promise<void> {
  for (let begin = 0; begin < dealIds.length; begin += BATCH)
    await judgeThose(copy, "SELECT unnest($4::bigint[])", [dealIds.slice(begin, begin + BATCH)], now);
}

/**
 * What a run begins with: the phases that hold by now are marked, and all deals of the copy are judged anew where they were
 * judged by other rules, or in another zone than its user's is by now. Until that is committed every answer counts in the zone before.
 */
export async function judgeByPresentRules(copy: CopyScope, now: Date): Promise<void> {
  const { tenantId, copyId, rows, typed } = copy;
  await markHolding(copy, now);
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
  const ids = matched.map(({ id }) => id);
  await judgeDeals(copy, ids, now);
}

/**
 * SQL: those of the deals $5 whose verdict may change with their rows. Most changes of a deal are of its title, value, owner or
 * fields, and to judge 500 for nothing took several times as long as to write them.
 */
const JUDGED_OTHERWISE = `SELECT x.id AS deal_id FROM unnest($5::bigint[]) AS x (id) WHERE NOT EXISTS (
  SELECT 1 FROM deal c JOIN deal_silence o ON o.tenant_id = $1 AND o.copy_id = $2 AND o.deal_id = c.crm_id AND o.is_listed
  WHERE c.tenant_id = $1 AND c.copy_id = $2 AND c.crm_id = x.id AND o.judged_as = ${judgedAs("c")})`;

/** SQL over `d`, a row of `deal`, by the column of what lists need of it and no verdict hangs on. */
const LISTED = {
  pipeline_id: "d.pipeline_id",
  owner_id: "d.owner_id",
  changed_at: "coalesce(d.update_time, '0001-01-01 00:00:00+00'::timestamptz)",
  currency: "CASE WHEN d.value IS NULL OR d.currency IS NULL THEN '~' ELSE d.currency END",
  negative_value: "-coalesce(d.value, 0)",
};

/** The others of those keep their schedules: lists get what is new in their rows. */
const KEEP_LISTED = `
  UPDATE deal_silence o SET ${Object.entries(LISTED).map(([column, sql]) => `${column} = ${sql}`)}
  FROM deal d WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.deal_id = ANY ($5::bigint[])
    AND d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = o.deal_id AND o.judged_as = ${judgedAs("d")}
    AND (${Object.keys(LISTED).map((column) => `o.${column}`)}) IS DISTINCT FROM (${Object.values(LISTED)})
    AND o.deal_id <> ALL ($4::bigint[])`;

const distinct = (ids: readonly number[]) => [...new Set(ids)];

/** @param those SQL that selects ids of deals, with parameters from $4 on */
async function judgeThose(
  copy: CopyScope,
  those: string,
  parameters: readonly unknown[],
  now: Date,
  besides: readonly string[] = [],
): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  // What was stored goes in the statement that reads the facts: a page has few statements, and no INSERT stands beside it.
  const forgotten = `DELETE FROM deal_silence s WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id IN (${those})`;
  const found = await readFacts(copy, `d.crm_id IN (${those}) AND ${isMatched("d.crm_id")}`, parameters, now, [
    forgotten,
    ...besides,
  ]);
  if (!found) return;
  const phases = found.deals.flatMap((facts) => phasesOf(facts, found, now));
  await rows(STORE, [tenantId, copyId, jsonRows(phases)]);
  const first = found.deals.flatMap(firstMailOf);
  if (first.length > 0) await rows(KEEP_FIRST_MAIL, [tenantId, copyId, jsonRows(first)]);
}

const text = (at: number | null | undefined) => (at == null ? null : new Date(at).toISOString());

function phasesOf(facts: DealFacts, { copy }: QuietFacts, now: Date): object[] {
  const schedule = scheduleOf(facts, copy.rules, now.getTime());
  return schedule.map(({ from, verdict, since }, phase) => ({
    ...{ dealId: facts.dealId, phase, verdict, since: text(since) },
    from: phase === 0 ? null : text(from),
    until: text(schedule[phase + 1]?.from),
  }));
}

/** The first phase is the one that holds. What lists need of the deal is as it stands in this transaction. */
const STORE = `
  INSERT INTO deal_silence (tenant_id, copy_id, deal_id, phase, holds_from, holds_until, verdict, quiet_since,
    is_listed, judged_as, status, stage_id, ${Object.keys(LISTED)})
  SELECT d.tenant_id, d.copy_id, d.crm_id, r.phase, coalesce(r."from", '-infinity'::timestamptz), coalesce(r.until, 'infinity'::timestamptz),
    r.verdict, r.since, r.phase = 0, ${judgedAs("d")}, d.status, d.stage_id, ${Object.values(LISTED)}
  FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, phase integer, "from" timestamptz, until timestamptz, verdict text, since timestamptz)
  JOIN deal d ON d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = r."dealId"
  RETURNING 1 AS stored`;

/**
 * Lists read the phases that are marked as holding, and of deals whose mark is behind its time they look the phase up: this
 * keeps those few. The caller's transaction holds the copy.
 */
async function markHolding({ tenantId, copyId, rows }: CopyScope, now: Date): Promise<void> {
  await rows(MARK_HOLDING, [tenantId, copyId, now]);
}

const MARK_HOLDING = `
  UPDATE deal_silence s SET is_listed = NOT s.is_listed
  WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.is_listed <> (s.holds_from <= $3 AND s.holds_until > $3)
    AND s.deal_id IN (SELECT o.deal_id FROM deal_silence o
      WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.is_listed AND o.holds_until <= $3)`;

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
