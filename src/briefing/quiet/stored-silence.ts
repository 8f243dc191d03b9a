import { isDeepStrictEqual } from "node:util";
import { LRUCache } from "lru-cache";
import { CONNECTION_CHANGED, notify } from "../../database/between-processes";
import type { CopyScope } from "../../database/database";
import { jsonRows } from "../../database/upsert";
import type { SyncResource } from "../../entities/sync-run";
import type { DealFacts, QuietRules } from "./facts";
import { begunOf, type QuietFacts, readFacts } from "./read-quiet";
import { byStandards, rulesOf } from "./rules";
import { JUDGED_OTHERWISE, KEEP_LISTED, MARK_HOLDING, STORE, STORE_COMING, TAKE_OVER } from "./silence-rows";
import { storeSnoozeEnds } from "./snooze";
import { type BegunPhase, flipsOf, type Phase, scheduleOf, tellFlips } from "./verdict";

/**
 * The schedules of the matched deals, which are all that anybody may read: whoever changes what a deal is judged by judges
 * it anew in the same transaction (decision 0079).
 */

/**
 * How it is told what judging changes: of each deal whose verdict flips; or as a whole, by whoever judges a new copy. What time
 * alone has changed before is told of each deal either way.
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

/** Copies of which a matched deal was seen; most first syncs have none, and their pages need no reading of facts. */
const withMatchedDeals = new LRUCache<number, true>({ max: 10_000 });

async function hasMatchedDeals({ tenantId, copyId, rows }: CopyScope): Promise<boolean> {
  if (withMatchedDeals.has(copyId)) return true;
  const found = await rows(
    "SELECT 1 FROM matched_record m WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = 'DEAL' LIMIT 1",
    [tenantId, copyId],
  );
  if (found.length > 0) withMatchedDeals.set(copyId, true);
  return found.length > 0;
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
  if (!(await hasMatchedDeals(copy))) return;
  // A stage may have all deals of a tenant.
  if (resource === "STAGES") {
    const deals = await hangingOn(copy, resource, ids);
    return judgeDeals(copy, distinct(deals.map(({ dealId }) => dealId)), now);
  }
  const isOfDeals = resource === "DEALS";
  const those = `SELECT unnest($4::bigint[]) UNION SELECT h.deal_id FROM (${isOfDeals ? JUDGED_OTHERWISE : sql}) h`;
  await judgeThose(copy, { those, parameters: [others, ids], besides: isOfDeals ? KEEP_LISTED : undefined }, now);
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
    await judgeThose(copy, { those: GIVEN, parameters: [dealIds.slice(begin, begin + BATCH)] }, now, telling);
}

const distinct = (ids: readonly number[]) => [...new Set(ids)];

const GIVEN = "SELECT unnest($4::bigint[])";

/** Deals to judge. */
interface Those {
  /** SQL that selects their ids, with parameters from $4 on. */
  those: string;
  parameters: readonly unknown[];
  /** A statement that is executed with the one that reads their facts. */
  besides?: string;
}

async function judgeThose(copy: CopyScope, which: Those, now: Date, telling: Telling = "EACH"): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  // What was stored goes in the statement that reads the facts: a page has few statements, and no INSERT stands beside it.
  const found = await readMatched(copy, which, now, { silence: which.those, coming: which.those });
  if (!found) return;
  withMatchedDeals.set(copyId, true);
  const schedules = found.deals.map((facts) => ({
    dealId: facts.dealId,
    schedule: scheduleOf(facts, found.copy.rules, now.getTime()),
    begun: facts.begun,
  }));
  await rows(STORE, [tenantId, copyId, jsonRows(schedules.flatMap(phasesOf))]);
  await storeComing(copy, found, now);
  const first = found.deals.flatMap(firstMailOf);
  if (first.length > 0) await rows(KEEP_FIRST_MAIL, [tenantId, copyId, jsonRows(first)]);
  await storeSnoozeEnds(copy, found.deals, found.copy.rules, now);
  await tell(copy, schedules, now, telling);
}

interface DealSchedule {
  dealId: number;
  schedule: readonly Phase[];
}

/** Tells of flips each by its deal, and of deals that are judged for the first time by one word for the connection. */
async function tell(
  copy: CopyScope,
  schedules: readonly (DealSchedule & { begun: readonly BegunPhase[] })[],
  now: Date,
  telling: Telling,
): Promise<void> {
  const flips = schedules.flatMap(({ dealId, begun, schedule: [present] }) => {
    const judged = telling === "EACH" && present ? present.verdict : null;
    return flipsOf(dealId, begun, judged, now.getTime());
  });
  await tellFlips(copy, flips);
  if (telling === "EACH" && schedules.some(({ begun }) => begun.length === 0)) await notify(copy, CONNECTION_CHANGED);
}

/** Judges those of these deals that are matched by what is coming; what is stored of them stands. */
export async function judgeByComing(copy: CopyScope, dealIds: readonly number[], now: Date): Promise<void> {
  const found = await readMatched(copy, { those: GIVEN, parameters: [dealIds] }, now, { coming: GIVEN });
  if (found) await storeComing(copy, found, now);
}

function readMatched(
  copy: CopyScope,
  { those, parameters, besides }: Those,
  now: Date,
  taken: { silence?: string; coming: string },
): Promise<QuietFacts | null> {
  return readFacts(copy, `d.crm_id IN (${those}) AND ${isMatched("d.crm_id")}`, parameters, now, { ...taken, besides });
}

/** Of deals about which the coming standards say, from now on, something else than those that hold. */
async function storeComing(
  { tenantId, copyId, rows }: CopyScope,
  { deals, copy, standards, coming }: QuietFacts,
  now: Date,
): Promise<void> {
  if (!coming) return;
  const rules = rulesOf(coming);
  const found = byStandards(deals, coming).flatMap((facts, index) => {
    const phases = phasesBy(facts, rules, now);
    const present = deals[index];
    // By other rules was stored what nobody can work out any more.
    const isSame = standards.version === coming.version && present !== undefined;
    if (isSame && isDeepStrictEqual(phases, phasesBy(present, copy.rules, now))) return [];
    return [{ dealId: facts.dealId, phases }];
  });
  if (found.length > 0) await rows(STORE_COMING, [tenantId, copyId, jsonRows(found)]);
}

/**
 * What is coming takes the place of what is stored, of all deals of a copy at once. What time has changed before is told of
 * each deal; what the standards change is told for the connection, by the caller.
 */
export async function storeAllComing(copy: CopyScope, now: Date): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  // An array, because nothing is known yet of a table that was just filled: as a join it took a minute for 12,000 deals.
  const those = `ARRAY (SELECT c.deal_id FROM coming_silence c WHERE c.tenant_id = $1 AND c.copy_id = $2)`;
  const left = await rows<{ dealId: number; begun: BegunPhase[] }>(
    `WITH ${begunOf(`s.deal_id = ANY (${those})`)}
     SELECT deal_id AS "dealId", phases AS begun FROM begun
     WHERE jsonb_path_exists(phases, '$[1 to last] ? (@.isTold == false)')`,
    [tenantId, copyId, now],
    { dealId: "number", begun: "json" },
  );
  await tellFlips(
    copy,
    left.flatMap(({ dealId, begun }) => flipsOf(dealId, begun, null, now.getTime())),
  );
  await rows(TAKE_OVER, [tenantId, copyId, now]);
}

/**
 * Lists read the phases that are marked as holding, and of deals whose mark is behind its time they look the phase up: this
 * keeps those few. The caller's transaction holds the copy to judge.
 */
export async function markHolding({ tenantId, copyId, rows }: CopyScope, now: Date): Promise<void> {
  await rows(MARK_HOLDING, [tenantId, copyId, now]);
}

const text = (at: number | null | undefined) => (at == null ? null : new Date(at).toISOString());

const phasesBy = (facts: DealFacts, rules: QuietRules, now: Date) =>
  phasesOf({ dealId: facts.dealId, schedule: scheduleOf(facts, rules, now.getTime()) });

function phasesOf({ dealId, schedule }: DealSchedule): object[] {
  return schedule.map(({ from, verdict, since }, phase) => ({
    ...{ dealId, phase, verdict, since: text(since) },
    from: phase === 0 ? null : text(from),
    until: text(schedule[phase + 1]?.from),
    isTold: phase === 0 || schedule[phase - 1]?.verdict === verdict,
  }));
}

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
