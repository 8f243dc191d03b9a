import { ms, rowsOf, rowsOfEach } from "../../database/rows";
import { RULES } from "./rules";
import { MOST_AHEAD, type OfOthers } from "./situation";
import type { Phase } from "./verdict";

/** How a schedule stands in its rows, with what lists need of the deal (decision 0082). In the SQL $1 is the tenant, $2 the copy. */

/** SQL: an amount as a bigint, in the same order: one that an index may compare under row policies, which a numeric is not. */
export const rankOf = (amount: string) => `least(greatest(${amount}, -9e17), 9e17)::bigint`;

/** SQL: whether a deal is matched. */
export const isMatchedDeal = (dealId: string) => `(SELECT true FROM matched_record m
  WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = 'DEAL' AND m.crm_id BETWEEN ${dealId} AND ${dealId} ORDER BY m.crm_id LIMIT 1)`;

/**
 * SQL: the generation of schedules that a copy holds. An aggregate, because nothing is stored of a copy that is judged for the
 * first time; and a query, because under row policies no index is searched by a coalesce().
 */
export const HELD =
  "(SELECT coalesce(max(j.generation), 0) FROM judged_copy j WHERE j.tenant_id = $1 AND j.copy_id = $2)";

/** What stands for the currency where a half of the money is missing: behind every code. */
export const NO_MONEY = "~";

/** SQL over `d`, a row of `deal`, by the column of what lists need of it and no verdict hangs on. */
const LISTED = {
  owner_id: "d.owner_id",
  changed_at: "coalesce(d.update_time, '0001-01-01 00:00:00+00'::timestamptz)",
  currency: `CASE WHEN d.value IS NULL OR d.currency IS NULL THEN '${NO_MONEY}' ELSE d.currency END`,
  value_rank: rankOf("-coalesce(d.value, 0)"),
  negative_value: "-coalesce(d.value, 0)",
};

/** SQL: the rules by which it is judged here. */
const THESE = `'${RULES} '`;
/**
 * SQL: on what of a row of `deal` hangs what these rules find of other records. A page that says a deal has no participants
 * takes those that there were, and the next one finds none to take.
 */
const FOUND_AS = `concat(${THESE}, d.person_id, ' ', d.participants_count, ' ', extract(epoch FROM d.add_time), ' ',
  CASE WHEN d.participants_count = 0 THEN (SELECT min(x.person_id) FROM ${rowsOf("deal_participant", "deal_id", "d.crm_id")} x) END, ';')`;
/** SQL: what of a row of `deal` a verdict hangs on, by whatever settings. */
const JUDGED_AS = `concat(${FOUND_AS}, d.status, ' ', d.pipeline_id, ' ', d.stage_id, ' ', extract(epoch FROM d.stage_change_time))`;

/** Behind the tenant. */
const COLUMNS = [
  "copy_id",
  "deal_id",
  "generation",
  "phase",
  "holds_from",
  "holds_until",
  "verdict",
  "quiet_since",
  "is_told",
  "is_listed",
  "judged_as",
  "status",
  "pipeline_id",
  "stage_id",
];

/**
 * Those of the deals $3 that were judged by the rows that they have now keep their schedules, of each generation:
 * each phase gets what lists need, for its turn to be marked. Most changes are of a title, value, owner or fields. As an INSERT
 * it finds each row by the key, whatever is known of the table.
 */
export const KEEP_LISTED = `
  INSERT INTO deal_silence (tenant_id, ${COLUMNS}, ${Object.keys(LISTED)})
  SELECT o.tenant_id, ${COLUMNS.map((column) => `o.${column}`)}, ${Object.values(LISTED)}
  FROM unnest($3::bigint[]) AS one (id)
  CROSS JOIN LATERAL ${rowsOf("deal", "crm_id", "one.id")} d
  CROSS JOIN LATERAL ${rowsOf("deal_silence", "deal_id", "one.id")} held
  CROSS JOIN LATERAL ${rowsOf("deal_silence", "deal_id", "one.id")} o
  WHERE held.is_listed AND held.generation = ${HELD} AND held.judged_as = ${JUDGED_AS}
  ON CONFLICT (tenant_id, copy_id, deal_id, generation, phase) DO UPDATE
  SET ${Object.keys(LISTED).map((column) => `${column} = EXCLUDED.${column}`)}
  RETURNING deal_id AS id`;

/** What lists need of the deal is as it stands in this transaction. */
const storeFrom = (isTold: string, isListed: string) => `
  INSERT INTO deal_silence AS stored (tenant_id, ${COLUMNS}, of_others, ${Object.keys(LISTED)})
  SELECT d.tenant_id, d.copy_id, d.crm_id, r.generation, r.phase, coalesce(r."from", '-infinity'::timestamptz),
    coalesce(r.until, 'infinity'::timestamptz), r.verdict, r.since, ${isTold}, ${isListed}, ${JUDGED_AS}, d.status, d.pipeline_id,
    d.stage_id, r."ofOthers"::json, ${Object.values(LISTED)}
  FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, generation integer, phase integer, "from" timestamptz, until timestamptz,
    verdict text, since timestamptz, "isTold" boolean, "ofOthers" text)
  CROSS JOIN LATERAL ${rowsOf("deal", "crm_id", 'r."dealId"')} d RETURNING stored.deal_id AS id`;

export const STORE = storeFrom('r."isTold"', "r.phase = 0");

/**
 * SQL: two parts of a WITH. Stored schedules go, of each generation, and `begun` has of each deal what of the held one has begun
 * by $3. A phase that a worker claims at this moment is waited for, and comes as told.
 * @param deals SQL: an array of their ids
 */
const begunOf = (deals: string) => `
  gone AS (
    DELETE FROM deal_silence s WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id = ANY (${deals})
    RETURNING s.deal_id, s.generation, s.phase, s.verdict, s.holds_from, s.is_told, s.is_listed),
  begun AS (
    SELECT g.deal_id, jsonb_agg(jsonb_build_object('verdict', g.verdict, 'isTold', g.is_told,
        'isListed', g.is_listed, 'from', CASE WHEN g.phase > 0 THEN ${ms("g.holds_from")} END) ORDER BY g.phase) AS phases
    FROM (SELECT gone.*, bool_and(is_told OR holds_from <= $3) OVER (PARTITION BY deal_id ORDER BY phase) AS has_begun FROM gone WHERE gone.generation = ${HELD}) g
    WHERE g.has_begun GROUP BY g.deal_id)`;

const MATCHED = isMatchedDeal("d.crm_id");
/** Of more meetings others come up with time: what was cut is looked up again. */
const IS_WHOLE = `json_array_length(of_others -> 'meetings') < ${MOST_AHEAD}`;

/** SQL of who reads what deals are judged by. */
export interface JudgingSql {
  /** Of which deals `d`. */
  which: string;
  /** The rows `t` of a table that belong to those with the ids. */
  of(table: string, column: string, ids: string): string;
  /** Parts of a WITH. */
  taken: readonly string[];
  /** What of the deals had begun, by deal. */
  begun: string;
  /** The first phases `s` of `deals` whose others still are those that were found. */
  kept: string;
}
const byKeys: JudgingSql["of"] = (table, column, ids) =>
  `(SELECT t.* FROM ${table} t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.${column} = ANY (${ids}))`;
export const READING: JudgingSql = {
  which: "true",
  of: byKeys,
  taken: [],
  begun: "NULL::jsonb",
  kept: `${byKeys("deal_silence", "deal_id", "known.ids")} s WHERE s.phase = 0 AND s.generation = known.generation AND starts_with(s.judged_as, ${THESE})`,
};
/** Who judges the deals $4 takes what is stored of them in the statement that reads their facts. */
export const JUDGED: JudgingSql = {
  which: MATCHED,
  // A page of a sync may be judged before PostgreSQL knows anything of the tables.
  of: rowsOfEach,
  taken: [begunOf("$4::bigint[]")],
  begun: "(SELECT jsonb_object_agg(begun.deal_id, begun.phases) FROM begun)",
  kept: `deals d CROSS JOIN LATERAL ${rowsOf("deal_silence", "deal_id", "d.crm_id")} s
    WHERE s.phase = 0 AND s.generation = known.generation AND starts_with(s.judged_as, ${FOUND_AS}) AND ${IS_WHOLE}`,
};
/** What is held of them stands, and what was to come before goes. */
export const JUDGED_BY_COMING: JudgingSql = {
  ...JUDGED,
  taken: [
    `forgotten AS (DELETE FROM deal_silence s
      WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id = ANY ($4::bigint[]) AND s.generation <> ${HELD})`,
  ],
  begun: "NULL::jsonb",
};

/**
 * Of those of the deals $4 that are matched no more a row stays that never holds: what was told of each last. $3 is before all
 * time. They are taken by one statement and stored by the next: a cluster looks for no table in a WITH before an INSERT.
 */
const LEFT = `ARRAY (SELECT one.id FROM unnest($4::bigint[]) AS one (id) WHERE ${isMatchedDeal("one.id")} IS NULL)`;
export const LET_GO = `WITH ${begunOf(LEFT)} SELECT deal_id AS "dealId", (phases -> -1) - 'from'
    || jsonb_build_object('dealId', deal_id, 'generation', ${HELD}, 'phase', 0, 'until', '-infinity') AS last FROM begun`;
export const STORE_LET_GO = storeFrom("true", "false");

/** Schedules of other generations than the held one go, of the next deals after $3. */
export const FORGET_OTHERS = `
  WITH walked AS MATERIALIZED (SELECT max(w.deal_id) AS last FROM (
      SELECT s.deal_id FROM deal_silence s WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id > $3 ORDER BY s.deal_id LIMIT $4) w),
    gone AS (DELETE FROM deal_silence s WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id > $3
      AND s.deal_id <= (SELECT last FROM walked) AND s.generation <> ${HELD})
  SELECT last FROM walked WHERE last IS NOT NULL`;

/** Of deals whose marked phase is over by $3 the one that holds is marked. */
export const MARK_HOLDING = `
  UPDATE deal_silence s SET is_listed = NOT s.is_listed
  WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.is_listed <> (s.holds_from <= $3 AND s.holds_until > $3)
    AND s.deal_id IN (SELECT o.deal_id FROM deal_silence o
      WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.is_listed AND o.holds_until <= $3)`;

/**
 * $4 the deals, $3 what is kept of each by its id: no table is joined that PostgreSQL might read in another order. Instants are
 * milliseconds: a cluster updates by nothing that hangs on a session's settings, as the reading of a text does.
 */
const ofDeal = (name: string) => `($3::jsonb -> d.crm_id::text ->> '${name}')`;
const AT = `to_timestamp(${ofDeal("at")}::float8 / 1000)`;
const KEPT_DEALS = "WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = ANY ($4::bigint[])";

export const KEEP_FIRST_MAIL = `
  UPDATE deal d SET first_mail_at = ${AT}, first_mail_person_id = ${ofDeal("personId")}::bigint ${KEPT_DEALS}`;
export const KEEP_SNOOZE_END = `UPDATE deal d SET snooze_ends_at = ${AT} ${KEPT_DEALS}`;

/** SQL: the deals that are snoozed at an instant. They are few. */
export const snoozedDeals = (at: string) =>
  `SELECT z.crm_id FROM deal z WHERE z.tenant_id = $1 AND z.copy_id = $2 AND z.snooze_ends_at > ${at}`;

const text = (at: number | null | undefined) => (at == null ? null : new Date(at).toISOString());

/** A deal's schedule as {@link STORE} takes it: with the first phase what it was judged by. */
export const phasesOf = (
  { dealId, ofOthers }: { dealId: number; ofOthers: object },
  schedule: readonly Phase[],
  generation: number,
  kept: Partial<OfOthers> = {},
): object[] =>
  schedule.map(({ from, verdict, since }, phase) => ({
    dealId,
    generation,
    phase,
    verdict,
    since: text(since),
    from: phase === 0 ? null : text(from),
    until: text(schedule[phase + 1]?.from),
    isTold: phase === 0 || schedule[phase - 1]?.verdict === verdict,
    ofOthers: phase === 0 ? JSON.stringify({ ...ofOthers, ...kept }) : null,
  }));

/** No tenant has so many deals. */
const MORE_THAN_ALL = 100_000_000;

/** SQL: deals whose mark is behind. The planner takes a third of all deals for such: an order brings it to their index, a LIMIT keeps it from joining all. */
export const otherMarks = (which: string, by: string) => `(SELECT l.deal_id FROM deal_silence l
  WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.generation = ${HELD} AND l.is_listed AND ${which} ORDER BY ${by} LIMIT ${MORE_THAN_ALL})`;
