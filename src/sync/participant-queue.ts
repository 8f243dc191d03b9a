import { ADDRESSES } from "../crm/calls";
import type { CrmDeal } from "../crm/parsing/records";
import { type CopyScope } from "../database/database";
import { rowsOf, rowsOfEach } from "../database/rows";
import { type MatchedEntity, MeetingMatchRow } from "../entities/meeting";
import type { SyncKind } from "../entities/sync-run";
import { DAY_MS } from "../platform/clock";

/** In which order deals are asked for who takes part: those that a meeting is about, what is being sold now, and the rest. */
export const GROUPS = ["OF_MEETINGS", "OPEN", "CLOSED_LATELY", "FAILED", "AGAIN", "REST"] as const;
export type Group = (typeof GROUPS)[number];

export interface QueuedDeal {
  dealId: number;
  /** The deal's person, as far as the user may see that one. */
  personId: number | null;
  /** How many participants the deal says there are; null: it does not say. */
  count: number | null;
  wasAsked: boolean;
}

/** What decides which deals are next. */
export interface Queue {
  /** Marks what this run has asked: a deal is asked once in it. */
  mark: Date;
  now: Date;
  /** Deals with one participant need no request: it is the deal's person. */
  ruleOfOne: boolean;
  /** A deal that matters is asked again when its answer is older. */
  againBefore: Date;
  /** Meetings whose deals may still be due, the soonest to come first and then the latest past one; shortened as they are done. */
  meetings: string[];
}

/** A deal that was closed longer ago is seldom what a meeting is about. */
const LATELY_MS = 90 * DAY_MS;
/** A deal that could not be read waits as long as it has failed already, and so long at most. */
const RETRY_MS = DAY_MS;
/** With a day to come to all of them, a round takes three. */
const AGAIN_AFTER_MS = 2 * DAY_MS;
/** Of what is left of the day, so many times the share of it that has passed is spent on asking again: nearly all in a day. */
const HASTE = 4;
/** Those further away have their deals asked as any others. */
const MOST_MEETINGS = 5_000;
const MEETINGS_AT_ONCE = 100;
/** Of those meetings' companies, looked at in one statement; a company may have thousands. */
const MOST_DEALS = 2_000;
/** One deal in so many is asked although the rule of one could tell. */
const SAMPLE = 50;
/** Where tokens are not counted: more deals than any company has. */
const MOST_COUNTED = 1_000_000_000;
const PRICE = ADDRESSES.participants(0).price;

const OF_COPY = "d.tenant_id = $1 AND d.copy_id = $2 AND d.participants_asked_at IS DISTINCT FROM $3";
const DUE = `${OF_COPY} AND d.participants_due`;
/** Without those that could not be read. */
const FIRST = `${DUE} AND (d.participants_known OR d.participants_asked_at IS NULL)`;
const NEVER = "'0001-01-01 00:00:00+00'::timestamptz";
const CHANGED = `coalesce(d.update_time, ${NEVER})`;
/** Not as COALESCE: row policies let no index compare one. */
const CLOSED = `greatest(d.won_time, d.lost_time, CASE WHEN d.won_time IS NULL AND d.lost_time IS NULL THEN d.close_time END, ${NEVER})`;
const DERIVED = `d.participants_count = 1 AND d.person_id IS NOT NULL AND d.crm_id % ${SAMPLE} <> 0`;
/** Its person was not shown to the user when it was asked, and is now. Not as EXISTS: all of a copy's would be read for a few. */
const MISSED = `(SELECT 1 FROM deal_participant x WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.deal_id = d.crm_id AND x.person_id = d.person_id) IS NULL
  AND (SELECT 1 FROM person p WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.crm_id = d.person_id) = 1`;
const TOLD = `${DERIVED} AND NOT (${MISSED})`;
const LEADS = Object.entries({ DEAL: "crm_id", PERSON: "person_id", ORGANIZATION: "organization_id" });
const matchedOf = (entity: string) =>
  `SELECT DISTINCT m.crm_id FROM matched_record m WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = '${entity}'`;
const MATCHED = `(${LEADS.map(([entity, column]) => `EXISTS (${matchedOf(entity)} AND m.crm_id = d.${column})`).join(" OR ")})`;
const SHOWN = `d.crm_id AS "dealId", d.person_id AS "personId", d.organization_id AS "organizationId",
  d.participants_count AS count, d.participants_asked_at IS NOT NULL AS "wasAsked"`;
/** An answer of a time that has not come is of a clock that was wrong. Each is a range of its index; both at once would be none. */
const STALE = ["d.participants_asked_at < $8", "d.participants_asked_at > $5 AND d.participants_asked_at >= $8"];
const AGAIN = `${OF_COPY} AND NOT d.participants_due AND d.participants_count IS DISTINCT FROM 0 AND NOT ($7 AND ${TOLD}) AND (${STALE.join(" OR ")})`;
const SEVERAL = "d.participants_count IS DISTINCT FROM 1";
const oldestOf = (deals: string, which = "true") => `(SELECT ${SHOWN}, d.participants_asked_at AS asked_at
  FROM ${deals} d WHERE ${AGAIN} AND ${which} ORDER BY ${SEVERAL} DESC, d.participants_asked_at, d.crm_id LIMIT $4)`;
const CLOSED_LATELY = `(SELECT * FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND NOT d.participants_due AND d.status <> 'open'
  AND ${CLOSED} >= $6 ORDER BY ${CLOSED})`;
/** Those that matter, each by an index of its own: most that were ever asked do not, and were gone through each time. */
const MATTERING = [
  ...STALE.flatMap((stale) =>
    [SEVERAL, `NOT (${SEVERAL})`].map((count) => oldestOf("deal", `d.status = 'open' AND ${count} AND ${stale}`)),
  ),
  oldestOf(CLOSED_LATELY),
  ...LEADS.map(([entity, column]) => oldestOf(rowsOfEach("deal", column, `ARRAY(${matchedOf(entity)})`))),
].join(" UNION ");

/**
 * Each gives the next deals of its group. $1: the tenant, $2: the copy, $3: the run's mark, $4: how many. They join as
 * little as can be: a new copy has no statistics, and a join of it once read it whole for each of its rows.
 */
const NEXT: Record<Exclude<Group, "OF_MEETINGS">, { sql: string; more: (queue: Queue) => unknown[] }> = {
  OPEN: {
    sql: `SELECT ${SHOWN} FROM deal d WHERE ${FIRST} AND d.status = 'open' ORDER BY ${CHANGED} DESC, d.crm_id DESC LIMIT $4`,
    more: () => [],
  },
  CLOSED_LATELY: {
    sql: `SELECT ${SHOWN} FROM deal d WHERE ${FIRST} AND d.status <> 'open' AND ${CLOSED} >= $5
      ORDER BY ${CLOSED} DESC, d.crm_id DESC LIMIT $4`,
    more: ({ now }) => [lately(now)],
  },
  FAILED: {
    sql: `SELECT ${SHOWN} FROM deal d JOIN data_gap g ON g.tenant_id = $1 AND g.copy_id = $2 AND g.resource = 'DEAL_PARTICIPANTS' AND g.crm_id = d.crm_id
      WHERE ${DUE} AND NOT d.participants_known AND (d.participants_asked_at > $5::timestamptz
        OR $5::timestamptz - d.participants_asked_at >= least(d.participants_asked_at - g.since, ${RETRY_MS} * interval '1 ms'))
      ORDER BY d.participants_asked_at, d.crm_id LIMIT $4`,
    more: ({ now }) => [now],
  },
  AGAIN: {
    // What a day pays for has room for those of several within three days. Those of one have the rest.
    sql: `SELECT "dealId", "personId", "organizationId", count, "wasAsked" FROM (${MATTERING}) d
      ORDER BY count IS DISTINCT FROM 1 DESC, asked_at, "dealId" LIMIT $4`,
    more: ({ now, ruleOfOne, againBefore }) => [now, lately(now), ruleOfOne, againBefore],
  },
  REST: {
    sql: `SELECT ${SHOWN} FROM deal d WHERE ${FIRST} AND d.status <> 'open' AND ${CLOSED} < $5
      ORDER BY ${CLOSED} DESC, d.crm_id DESC LIMIT $4`,
    more: ({ now }) => [lately(now)],
  },
};

const lately = (now: Date) => new Date(now.getTime() - LATELY_MS);

/** A copy of fewer deals is read as fast whole as by its keys. */
const FEW = 1_000;
/** Where PostgreSQL takes a copy for so many times smaller than it is, it does not know it. */
const FAR_OFF = 10;

/**
 * What PostgreSQL does not know it takes for nearly empty, and changes a few deals of it by reading them all: the order of a
 * key, which keeps a look-up from that, cannot be asked for here. That is a table that nobody has ever counted, and a copy that
 * is newer than the last count. Autovacuum counts a new table a minute later, but again only when a tenth of it has changed.
 */
export async function analyzeDeals(copy: CopyScope): Promise<void> {
  if (await isUnknown(copy)) await copy.rows("ANALYZE (SKIP_LOCKED) deal (tenant_id, copy_id, crm_id)");
}

/** Autovacuum's own measure of a table that has changed, but it comes by once a minute. */
const COUNTED = `SELECT c.reltuples < 0 AS never, pg_stat_get_mod_since_analyze(c.oid) < c.reltuples / 10
    AND greatest(pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid)) > now() - interval '1 minute' AS lately
  FROM pg_class c WHERE c.oid = 'deal'::regclass`;
const DEALS_OF_COPY = "SELECT 1 FROM deal WHERE tenant_id = $1 AND copy_id = $2";

async function isUnknown({ tenantId, copyId, rows }: CopyScope): Promise<boolean> {
  const shape = { never: "flag", lately: "flag" } as const;
  const [counted] = await rows<{ never: boolean; lately: boolean | null }>(COUNTED, [], shape);
  if (counted?.never) return true;
  // However often it is counted, one of very many copies may stay unknown.
  if (counted?.lately) return false;
  const ofCopy = [tenantId, copyId];
  const explain = `EXPLAIN (FORMAT JSON) ${DEALS_OF_COPY}`;
  const [explained] = await rows<Explained>(explain, ofCopy, { "QUERY PLAN": "json" });
  const plan = explained?.["QUERY PLAN"][0]?.Plan;
  // A cluster's coordinator does not say what its nodes expect.
  if (!plan || plan["Node Type"] === "Custom Scan" || plan["Plan Rows"] >= FEW) return false;
  const beyond = Math.max(FEW, FAR_OFF * plan["Plan Rows"]);
  return (await rows(`${DEALS_OF_COPY} OFFSET $3 LIMIT 1`, [...ofCopy, beyond])).length > 0;
}

type Explained = { "QUERY PLAN": { Plan: { "Node Type": string; "Plan Rows": number } }[] };

/** The next deals of a group to be asked for, the most important first. */
export async function nextDeals(copy: CopyScope, group: Group, queue: Queue, most: number): Promise<QueuedDeal[]> {
  if (group === "OF_MEETINGS") return seen(copy, await nextOfMeetings(copy, queue, most));
  const { sql, more } = NEXT[group];
  return seen(copy, await readDeals(copy, sql, [queue.mark, most, ...more(queue)]));
}

/** Deals whose one participant the rule of one tells, by id, where the user sees that person. */
export async function lonelyDeals(copy: CopyScope, mark: Date, after: number, most: number): Promise<QueuedDeal[]> {
  const sql = `SELECT ${SHOWN} FROM deal d WHERE ${DUE} AND ${DERIVED} AND d.crm_id > $5 ORDER BY d.crm_id LIMIT $4`;
  return seen(copy, await readDeals(copy, sql, [mark, most, after]));
}

const LIKELY = { tenantId: true, meetingId: true, chosenDealId: true, dealId: true, candidates: true } as const;
/** Deals of one meeting, the likeliest first: the one that was chosen, or that it is about, and then the candidates. */
export async function dealsOfMeeting(
  copy: CopyScope,
  meetingId: string,
  { mark, ruleOfOne }: Pick<Queue, "mark" | "ruleOfOne">,
  most: number,
): Promise<QueuedDeal[]> {
  const match = await copy.typed((orm) =>
    orm.findOne(MeetingMatchRow, { where: { tenantId: copy.tenantId, meetingId }, select: LIKELY }),
  );
  const ids = [match?.chosenDealId, match?.dealId, ...(match?.candidates ?? []).map(({ dealId }) => dealId)];
  const sql = `SELECT ${SHOWN} FROM deal d WHERE ${OF_COPY} AND d.crm_id = ANY ($4) AND d.participants_count IS DISTINCT FROM 0 AND NOT ($5 AND ${TOLD})`;
  const deals = await readDeals(copy, sql, [mark, ids.filter((id) => id != null), ruleOfOne]);
  const place = new Map(ids.map((id, index) => [id, ids.length - index] as const).reverse());
  deals.sort((a, b) => (place.get(b.dealId) ?? 0) - (place.get(a.dealId) ?? 0));
  return seen(copy, deals.slice(0, most));
}

type ReadDeal = QueuedDeal & { organizationId: number | null };

function readDeals({ tenantId, copyId, rows }: CopyScope, sql: string, more: unknown[]): Promise<ReadDeal[]> {
  const ids = { dealId: "number", personId: "number", organizationId: "number" } as const;
  return rows<ReadDeal>(sql, [tenantId, copyId, ...more], { ...ids, count: "number", wasAsked: "flag" });
}

/** A person whom the user may not see is left out of answers, and counted all the same. */
async function seen({ tenantId, copyId, rows }: CopyScope, deals: readonly ReadDeal[]): Promise<QueuedDeal[]> {
  const ids = deals.map(({ personId }) => personId).filter((id) => id !== null);
  if (ids.length === 0) return [...deals];
  const found = await rows<{ id: number }>(
    `SELECT p.crm_id AS id FROM ${rowsOfEach("person", "crm_id", "$3::bigint[]")} p`,
    [tenantId, copyId, ids],
    { id: "number" },
  );
  const persons = new Set(found.map(({ id }) => id));
  return deals.map((deal) => ({ ...deal, personId: persons.has(deal.personId ?? 0) ? deal.personId : null }));
}

/** The recorded meetings nearest to now: the soonest to come first, then the latest past one. */
export async function nearestMeetings({ tenantId, rows }: CopyScope, now: Date): Promise<string[]> {
  const found = await rows<{ id: string }>(
    `SELECT s.id FROM (${startingAt(">=", "ASC")} UNION ALL ${startingAt("<", "DESC")}) s
     ORDER BY s.starts_at < $2, abs(extract(epoch FROM s.starts_at - $2::timestamptz)), s.id LIMIT ${MOST_MEETINGS}`,
    [tenantId, now],
    { id: "text" },
  );
  return found.map(({ id }) => id);
}

const startingAt = (side: string, order: string) => `(SELECT s.id, s.starts_at FROM meeting s
  WHERE s.tenant_id = $1 AND s.starts_at ${side} $2 ORDER BY s.starts_at ${order}, s.id LIMIT ${MOST_MEETINGS})`;

const waits = (column: string) => `EXISTS (SELECT 1 FROM ${rowsOf("deal", column, "m.crm_id")} d WHERE ${FIRST})`;
/** Whether a deal of any meeting waits. Where few deals do each is looked at, and where many do, what meetings have matched. */
const ONE_OF_MEETINGS = `SELECT 1 WHERE CASE WHEN (SELECT 1 FROM deal d WHERE ${FIRST} ORDER BY d.crm_id OFFSET ${FEW} LIMIT 1) = 1 THEN EXISTS (
    SELECT 1 FROM (SELECT DISTINCT entity, crm_id FROM matched_record WHERE tenant_id = $1 AND copy_id = $2) m
    WHERE CASE m.entity WHEN 'DEAL' THEN ${waits("crm_id")} WHEN 'PERSON' THEN ${waits("person_id")} ELSE ${waits("organization_id")} END)
  ELSE (SELECT 1 FROM deal d WHERE ${FIRST} AND ${MATCHED} ORDER BY d.crm_id LIMIT 1) = 1 END`;

/** Of the first meetings of which any deal is due. Those before it are done with in this turn. */
async function nextOfMeetings(
  copy: CopyScope,
  { mark, meetings }: Pick<Queue, "mark" | "meetings">,
  most: number,
): Promise<ReadDeal[]> {
  const { tenantId, copyId, rows } = copy;
  if (meetings.length === 0 || !(await rows(ONE_OF_MEETINGS, [tenantId, copyId, mark]))[0]) return [];
  for (; meetings.length > 0; meetings.splice(0, MEETINGS_AT_ONCE)) {
    const nearest = meetings.slice(0, MEETINGS_AT_ONCE);
    const matched = await rows<{ entity: MatchedEntity; id: number; meetingId: string }>(
      `SELECT entity, crm_id AS id, meeting_id AS "meetingId" FROM matched_record
       WHERE tenant_id = $1 AND copy_id = $2 AND meeting_id = ANY ($3)`,
      [tenantId, copyId, nearest],
      { entity: "text", id: "number", meetingId: "text" },
    );
    const place = new Map<string, number>();
    for (const { entity, id, meetingId } of matched) {
      const key = `${entity} ${id}`;
      place.set(key, Math.min(place.get(key) ?? MEETINGS_AT_ONCE, nearest.indexOf(meetingId)));
    }
    const ids = (kind: MatchedEntity) => matched.filter(({ entity }) => entity === kind).map(({ id }) => id);
    const sql = `SELECT ${SHOWN} FROM deal d WHERE ${FIRST} AND (d.crm_id = ANY ($5) OR d.person_id = ANY ($6) OR d.organization_id = ANY ($7)) LIMIT $4`;
    const due = await readDeals(copy, sql, [mark, MOST_DEALS, ids("DEAL"), ids("PERSON"), ids("ORGANIZATION")]);
    const of = (key: string) => place.get(key) ?? MEETINGS_AT_ONCE;
    const placeOf = (deal: ReadDeal) =>
      Math.min(of(`DEAL ${deal.dealId}`), of(`PERSON ${deal.personId}`), of(`ORGANIZATION ${deal.organizationId}`));
    if (due.length > 0) return due.sort((a, b) => placeOf(a) - placeOf(b) || a.dealId - b.dealId).slice(0, most);
  }
  return [];
}

/** Whether a deal waits that a recorded meeting may be about. */
export async function areDealsOfMeetingsDue(copy: CopyScope, now: Date): Promise<boolean> {
  const meetings = (await isAnyDealDue(copy, now)) ? await nearestMeetings(copy, now) : [];
  return (await nextOfMeetings(copy, { mark: now, meetings }, 1)).length > 0;
}

/** Whether any deal waits. By an index's order: else one of a new copy is looked for among all others' deals. */
export const isAnyDealDue = async ({ tenantId, copyId, rows }: CopyScope, mark: Date) =>
  (await rows(`SELECT FROM deal d WHERE ${DUE} ORDER BY d.crm_id LIMIT 1`, [tenantId, copyId, mark])).length > 0;

/** How many deals wait for their first answer, or for one after a change; counted up to what the tokens carry. */
export async function countDue({ tenantId, copyId, rows }: CopyScope, mark: Date, tokens: number): Promise<number> {
  const sql = `SELECT count(*)::int AS n FROM (SELECT 1 FROM deal d WHERE ${DUE} LIMIT $4) a`;
  const most = Math.min(affordable(tokens), MOST_COUNTED);
  const [count] = await rows<{ n: number }>(sql, [tenantId, copyId, mark, most], { n: "number" });
  return count?.n ?? 0;
}

export interface Turn {
  /** At most so many deals are asked again now. */
  most: number;
  /** Of those whose answer is older. */
  before: Date;
}

/**
 * What of the turn of those that matter this run takes: a reconciling run all, where there is enough for all.
 * @param tokens that may be spent on participants
 */
export async function planTurn(
  copy: CopyScope,
  queue: Omit<Queue, "againBefore">,
  kind: SyncKind,
  tokens: number,
): Promise<Turn> {
  const { tenantId, copyId, rows } = copy;
  const { mark, now } = queue;
  const most = Math.min(affordable(tokens), MOST_COUNTED);
  if (kind !== "INCREMENTAL") {
    const sql = `SELECT count(*)::int AS n FROM (${NEXT.AGAIN.sql}) a`;
    const all = [tenantId, copyId, mark, most + 1, ...NEXT.AGAIN.more({ ...queue, againBefore: now })];
    const [count] = await rows<{ n: number }>(sql, all, { n: "number" });
    if ((count?.n ?? 0) <= most) return { most, before: now };
  }
  const [copied] = await rows<{ last: Date | null; unread: boolean }>(
    `SELECT c.asked_again_at AS last, EXISTS (
       SELECT 1 FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.participants_due AND NOT d.participants_known) AS unread
     FROM synced_copy c WHERE c.tenant_id = $1 AND c.id = $2`,
    [tenantId, copyId],
    { last: "instant", unread: "flag" },
  );
  const sinceMs = copied?.last ? now.getTime() - copied.last.getTime() : DAY_MS;
  const share = shareOfTurn(sinceMs) * (copied?.unread ? 1 / 2 : 1);
  return { most: affordable(tokens, share), before: new Date(now.getTime() - AGAIN_AFTER_MS) };
}

/** How much of what is left may be spent on asking again, so long after the last time; a time to come tells nothing. */
const shareOfTurn = (sinceMs: number): number => (sinceMs < 0 ? 1 : Math.min(1, (HASTE * sinceMs) / DAY_MS));

/** How many deals a share of these tokens pays for. */
export const affordable = (tokens: number, share = 1): number =>
  share === 0 ? 0 : Math.max(0, Math.floor((tokens * share) / PRICE));

/**
 * Whether a deal's one participant is its person: the CRM does not say, and for most deals it would save the request. A
 * company's own answers decide it, and one that says otherwise for ever (decision 0073).
 */
export interface RuleOfOne {
  holds: boolean;
  refuted: boolean;
}

/** Deals that have to agree, without exception, before a deal is not asked. */
const ENOUGH = 50;

/** A deal with what the CRM answered. */
type Answered = QueuedDeal & { personIds: readonly number[] };

const isLonely = ({ count, personId }: QueuedDeal) => count === 1 && personId !== null;
const isOwn = (personId: number | null, personIds: readonly number[]) =>
  personIds.length === 1 && personIds[0] === personId;

/** Deals that answered for the first time, and as the rule says. */
export const agreeing = (answers: readonly Answered[]): number =>
  answers.filter((deal) => isLonely(deal) && !deal.wasAsked && isOwn(deal.personId, deal.personIds)).length;

/** Deals that answered otherwise: perhaps they have changed since their list was read. */
export const odd = (answers: readonly Answered[]): Answered[] =>
  answers.filter((deal) => isLonely(deal) && !isOwn(deal.personId, deal.personIds));

/** Whether one of them, as the CRM shows it now, still has that person and one participant. */
export function isRefutedBy(oddOnes: readonly Answered[], shown: readonly CrmDeal[]): boolean {
  const now = new Map(shown.map((deal) => [deal.id, deal]));
  return oddOnes.some(({ dealId, personId }) => {
    const deal = now.get(dealId);
    return deal?.participantsCount === 1 && deal.personId === personId;
  });
}

const RULE = `NOT lone_participants_refuted AND lone_participants_confirmed >= ${ENOUGH} AS holds, lone_participants_refuted AS refuted`;
const SHAPE = { holds: "flag", refuted: "flag" } as const;

export async function readRule({ tenantId, copyId, rows }: CopyScope): Promise<RuleOfOne> {
  const sql = `SELECT ${RULE} FROM synced_copy WHERE tenant_id = $1 AND id = $2`;
  const [rule] = await rows<RuleOfOne>(sql, [tenantId, copyId], SHAPE);
  return rule ?? { holds: false, refuted: true };
}

/** A statement of its own: a transaction of a run shares the copy's row with others, and two that change it would wait for each other. */
export async function confirmRule(copy: CopyScope, deals: number): Promise<RuleOfOne> {
  if (deals === 0) return readRule(copy);
  const { tenantId, copyId, rows } = copy;
  const sql = `UPDATE synced_copy SET lone_participants_confirmed = lone_participants_confirmed + $3
    WHERE tenant_id = $1 AND id = $2 RETURNING ${RULE}`;
  const [rule] = await rows<RuleOfOne>(sql, [tenantId, copyId, deals], SHAPE);
  return rule ?? { holds: false, refuted: true };
}

/** From now on every deal is asked, and those that were not are due; one statement, so that no death leaves one half. */
export async function refuteRule({ tenantId, copyId, rows }: CopyScope): Promise<void> {
  await rows(
    `WITH refuted AS (
       UPDATE synced_copy SET lone_participants_refuted = true
       WHERE tenant_id = $1 AND id = $2 AND NOT lone_participants_refuted RETURNING 1
     )
     UPDATE deal d SET participants_due = true, participants_known = false, participants_once_known = false
     WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.participants_count = 1 AND d.participants_asked_at IS NULL
       AND d.participants_known AND EXISTS (SELECT 1 FROM refuted)`,
    [tenantId, copyId],
  );
}
