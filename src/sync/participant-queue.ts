import { ADDRESSES } from "../crm/prices";
import type { CopyScope } from "../database/database";
import type { SyncKind } from "../entities/sync-run";
import { DAY_MS } from "../platform/clock";

/** In which order deals are asked for who takes part: those that a meeting is about, what is being sold now, and the rest. */
export const GROUPS = ["OF_MEETINGS", "OPEN", "CLOSED_LATELY", "FAILED", "AGAIN", "REST"] as const;
type Group = (typeof GROUPS)[number];

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
}

/** A deal that was closed longer ago is seldom what a meeting is about. */
const LATELY_MS = 90 * DAY_MS;
/** A deal that could not be read waits as long as it has failed already, and so long at most. */
const RETRY_MS = DAY_MS;
/** With a day to come to all of them, a round takes three. */
const AGAIN_AFTER_MS = 2 * DAY_MS;
/** Of what is left of the day, so many times the share of it that has passed is spent on asking again: nearly all in a day. */
const HASTE = 4;
/** One deal in so many is asked although the rule of one could tell. */
const SAMPLE = 50;
/** Where tokens are not counted: more deals than any company has. */
const MOST_COUNTED = 1_000_000_000;
const PRICE = ADDRESSES.participants(0).price;

const OF_COPY = "d.tenant_id = $1 AND d.copy_id = $2 AND d.participants_asked_at IS DISTINCT FROM $3";
const DUE = `${OF_COPY} AND d.participants_due`;
const FIRST = `${DUE} AND NOT EXISTS (SELECT 1 FROM data_gap g
  WHERE g.tenant_id = $1 AND g.copy_id = $2 AND g.resource = 'DEAL_PARTICIPANTS' AND g.crm_id = d.crm_id)`;
const CHANGED = "coalesce(d.update_time, '0001-01-01 00:00:00+00'::timestamptz)";
const CLOSED = "coalesce(greatest(d.won_time, d.lost_time), '0001-01-01 00:00:00+00'::timestamptz)";
/** A person whom the user may not see is left out of answers, and counted all the same. */
const SEEN_PERSON =
  "EXISTS (SELECT 1 FROM person o WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.crm_id = d.person_id)";
const DERIVED = `d.participants_count = 1 AND d.crm_id % ${SAMPLE} <> 0 AND ${SEEN_PERSON}`;

/** By which of its columns a deal belongs to a matched record. */
const COLUMNS = Object.entries({ DEAL: "crm_id", PERSON: "person_id", ORGANIZATION: "organization_id" });
/** The soonest meeting to come first, then the latest past one: those count from behind all that are to come. */
const WAIT = `min(CASE WHEN s.starts_at >= $5::timestamptz THEN extract(epoch FROM s.starts_at - $5::timestamptz)
  ELSE 1e11 + extract(epoch FROM $5::timestamptz - s.starts_at) END)`;
const MATTERS = [
  "d.status = 'open'",
  `${CLOSED} >= $6`,
  ...COLUMNS.map(
    ([entity, column]) => `EXISTS (SELECT 1 FROM matched_record m
      WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = '${entity}' AND m.crm_id = d.${column})`,
  ),
].join(" OR ");
/** An answer of a time that has not come is of a clock that was wrong. */
const AGAIN = `${OF_COPY} AND NOT d.participants_due AND d.participants_count IS DISTINCT FROM 0
  AND (d.participants_asked_at < $8 OR d.participants_asked_at > $5) AND NOT ($7 AND ${DERIVED}) AND (${MATTERS})`;

/** Each gives the next deals of its group. $1: the tenant, $2: the copy, $3: the run's mark, $4: how many. */
const NEXT: Record<Group, { sql: string; more: (queue: Queue) => unknown[] }> = {
  OF_MEETINGS: {
    sql: `WITH matched AS MATERIALIZED (
        SELECT m.entity, m.crm_id, ${WAIT} AS wait
        FROM matched_record m JOIN meeting s ON s.tenant_id = $1 AND s.id = m.meeting_id
        WHERE m.tenant_id = $1 AND m.copy_id = $2 GROUP BY m.entity, m.crm_id
      ), found AS (${COLUMNS.map(
        ([entity, column]) => `
        SELECT d.crm_id, t.wait FROM matched t JOIN deal d ON ${FIRST} AND d.${column} = t.crm_id
        WHERE t.entity = '${entity}'`,
      ).join(" UNION ALL ")})
      SELECT crm_id FROM found GROUP BY crm_id ORDER BY min(wait), crm_id LIMIT $4`,
    more: ({ now }) => [now],
  },
  OPEN: {
    sql: `SELECT d.crm_id FROM deal d WHERE ${FIRST} AND d.status = 'open' ORDER BY ${CHANGED} DESC, d.crm_id DESC LIMIT $4`,
    more: () => [],
  },
  CLOSED_LATELY: {
    sql: `SELECT d.crm_id FROM deal d WHERE ${FIRST} AND d.status <> 'open' AND ${CLOSED} >= $5
      ORDER BY ${CLOSED} DESC, d.crm_id DESC LIMIT $4`,
    more: ({ now }) => [lately(now)],
  },
  FAILED: {
    sql: `SELECT d.crm_id FROM data_gap g JOIN deal d ON ${DUE} AND d.crm_id = g.crm_id
      WHERE g.tenant_id = $1 AND g.copy_id = $2 AND g.resource = 'DEAL_PARTICIPANTS' AND (
        d.participants_asked_at IS NULL OR d.participants_asked_at > $5::timestamptz
        OR $5::timestamptz - d.participants_asked_at >= least(d.participants_asked_at - g.since, ${RETRY_MS} * interval '1 ms'))
      ORDER BY d.participants_asked_at, d.crm_id LIMIT $4`,
    more: ({ now }) => [now],
  },
  AGAIN: {
    sql: `SELECT d.crm_id FROM deal d WHERE ${AGAIN} ORDER BY d.participants_asked_at, d.crm_id LIMIT $4`,
    more: (queue) => againParameters(queue),
  },
  REST: {
    sql: `SELECT d.crm_id FROM deal d WHERE ${FIRST} AND d.status <> 'open' AND ${CLOSED} < $5
      ORDER BY ${CLOSED} DESC, d.crm_id DESC LIMIT $4`,
    more: ({ now }) => [lately(now)],
  },
};

const lately = (now: Date) => new Date(now.getTime() - LATELY_MS);
const againParameters = ({ now, ruleOfOne, againBefore }: Queue) => [now, lately(now), ruleOfOne, againBefore];

/** The next deals of a group to be asked for, the most important first. */
export function nextDeals(copy: CopyScope, group: Group, queue: Queue, most: number): Promise<QueuedDeal[]> {
  const { sql, more } = NEXT[group];
  return readDeals(copy, sql, [queue.mark, most, ...more(queue)]);
}

/** Deals whose one participant is known by the rule, by id; `nextDeals` leaves none of them out before they are noted. */
export function lonelyDeals(copy: CopyScope, mark: Date, after: number, most: number): Promise<QueuedDeal[]> {
  const sql = `SELECT d.crm_id FROM deal d WHERE ${DUE} AND ${DERIVED} AND d.crm_id > $5 ORDER BY d.crm_id LIMIT $4`;
  return readDeals(copy, sql, [mark, most, after]);
}

/** Deals of one meeting, the likeliest first: the one that it is about, or that was chosen, and then the candidates. */
export function dealsOfMeeting(
  copy: CopyScope,
  meetingId: string,
  { mark, ruleOfOne }: Pick<Queue, "mark" | "ruleOfOne">,
  most: number,
): Promise<QueuedDeal[]> {
  const sql = `SELECT d.crm_id FROM (
      SELECT l.id, min(l.place) AS place FROM meeting_match m CROSS JOIN LATERAL (
        SELECT m.chosen_deal_id AS id, -2 AS place UNION ALL SELECT m.deal_id, -1
        UNION ALL SELECT (c.value ->> 'dealId')::bigint, c.ordinality FROM jsonb_array_elements(m.candidates) WITH ORDINALITY c
      ) l WHERE m.tenant_id = $1 AND m.meeting_id = $5 GROUP BY l.id
    ) likely JOIN deal d ON ${OF_COPY} AND d.crm_id = likely.id
    WHERE d.participants_count IS DISTINCT FROM 0 AND NOT ($6 AND ${DERIVED}) ORDER BY likely.place LIMIT $4`;
  return readDeals(copy, sql, [mark, most, meetingId, ruleOfOne]);
}

/** The ids are found first: a plan that is to fetch whole rows as well goes through more of them. */
async function readDeals({ tenantId, copyId, rows }: CopyScope, ids: string, more: unknown[]): Promise<QueuedDeal[]> {
  return rows<QueuedDeal>(
    `WITH next AS MATERIALIZED (SELECT crm_id, row_number() OVER () AS place FROM (${ids}) n)
     SELECT d.crm_id AS "dealId", CASE WHEN ${SEEN_PERSON} THEN d.person_id END AS "personId", d.participants_count AS count,
       d.participants_asked_at IS NOT NULL AS "wasAsked"
     FROM next n JOIN deal d ON d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = n.crm_id ORDER BY n.place`,
    [tenantId, copyId, ...more],
    { dealId: "number", personId: "number", count: "number", wasAsked: "flag" },
  );
}

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
    const sql = `SELECT count(*)::int AS n FROM (SELECT 1 FROM deal d WHERE ${AGAIN} LIMIT $4) a`;
    const all = [tenantId, copyId, mark, most + 1, ...againParameters({ ...queue, againBefore: now })];
    const [count] = await rows<{ n: number }>(sql, all, { n: "number" });
    if ((count?.n ?? 0) <= most) return { most, before: now };
  }
  const [copied] = await rows<{ last: Date | null; unread: boolean }>(
    `SELECT c.asked_again_at AS last, EXISTS (
       SELECT 1 FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND NOT d.participants_known) AS unread
     FROM synced_copy c WHERE c.tenant_id = $1 AND c.id = $2`,
    [tenantId, copyId],
    { last: "instant", unread: "flag" },
  );
  const sinceMs = copied?.last ? now.getTime() - copied.last.getTime() : DAY_MS;
  const share = shareOfTurn(sinceMs) * (copied?.unread ? 1 / 2 : 1);
  return { most: affordable(tokens, share), before: new Date(now.getTime() - AGAIN_AFTER_MS) };
}

/** How much of what is left may be spent on asking again, so long after the last time; a time to come tells nothing. */
export function shareOfTurn(sinceMs: number): number {
  return sinceMs < 0 ? 1 : Math.min(1, (HASTE * sinceMs) / DAY_MS);
}

/** How many deals a share of these tokens pays for. */
export function affordable(tokens: number, share = 1): number {
  return share === 0 ? 0 : Math.max(0, Math.floor((tokens * share) / PRICE));
}
