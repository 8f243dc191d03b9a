import type { CopyScope } from "../../database/database";
import {
  instantOf,
  type ListOrder,
  MOST_COUNTED,
  type PageRequest,
  readPage,
  type SortKey,
  type Step,
  textOfInstant,
} from "../../database/keyset";
import { DealRow } from "../../entities/deal";
import type { QuietVerdict } from "../quiet/facts";
import { readFreshness } from "../quiet/read-quiet";
import { isStale } from "../quiet/rules";
import { HELD, NO_MONEY, otherMarks, rankOf, snoozedDeals } from "../quiet/silence-rows";

// Lists of deals read the phases of `deal_silence` that are marked as holding, one for each matched deal, as `t`. Their
// indexes have the same columns in the same order (decision 0082).

const byId: SortKey = { sql: "t.deal_id", type: "integer" };
/** Deals that are not silent stand behind all that are. */
const quietSince: SortKey = {
  sql: "CASE WHEN t.quiet_since IS NULL THEN '9999-12-31 00:00:00+00'::timestamptz ELSE t.quiet_since END",
  type: "instant",
};
/** When a walk is judged, carried by its cursors: at its first page, and where the copy was stale by then a microsecond later. */
const JUDGED_AT = instantOf("$5");
const OF_STALE = "001";
const judgedAt: SortKey = { sql: JUDGED_AT, type: "instant", isCarried: true };

/** Amounts are compared within a currency only, and never converted (decision 0026). */
export const DEAL_ORDERS = {
  UPDATED_AT_DESC: { direction: "DESC", keys: [{ sql: "t.changed_at", type: "instant" }, byId] },
  VALUE_DESC: {
    direction: "ASC",
    keys: [
      { sql: "t.currency", type: "text" },
      { sql: "t.value_rank", type: "integer" },
      { sql: "t.negative_value", type: "decimal" },
      byId,
    ],
  },
  QUIET_DAYS_DESC: { direction: "ASC", keys: [quietSince, byId] },
} as const satisfies Record<string, ListOrder>;

/** An order as it is walked. One in which silence or a snooze counts is judged at one instant from the first page to the last. */
export interface DealOrder extends ListOrder {
  isJudged: boolean;
  isBySilence: boolean;
}
type Walk = Pick<PageRequest, "after"> & { order: DealOrder };

export function dealOrder(name: keyof typeof DEAL_ORDERS, { verdict, snoozed }: DealFilter): DealOrder {
  const { direction, keys } = DEAL_ORDERS[name];
  const isBySilence = name === "QUIET_DAYS_DESC";
  const isJudged = verdict !== undefined || snoozed !== undefined || isBySilence;
  return { direction, isJudged, isBySilence, keys: isJudged ? [judgedAt, ...keys] : keys };
}

/** Which deals; an absent field means any, and an id of null fits no deal. */
export interface DealFilter {
  status?: readonly DealRow["status"][];
  pipelineId?: number | null;
  stageId?: number | null;
  ownerId?: number | null;
  verdict?: readonly QuietVerdict[];
  currency?: string;
  /** With a currency: exact decimal text. */
  minValue?: string;
  /** Whether it is snoozed at the instant of the list. */
  snoozed?: boolean;
}

/** SQL of what a list may be narrowed to. */
const NARROWED = {
  pipelineId: (id) => `t.pipeline_id = ${id}::bigint`,
  stageId: (id) => `t.stage_id = ${id}::bigint`,
  ownerId: (id) => `t.owner_id = ${id}::bigint`,
  currency: (code) => `t.currency = ${code}::text`,
  minValue: (amount) =>
    `t.negative_value <= -${amount}::numeric AND t.value_rank <= (SELECT ${rankOf(`-${amount}::numeric`)})`,
} as const satisfies Partial<Record<keyof DealFilter, (parameter: string) => string>>;

/** SQL: that most deals are none of the snoozed ones is a condition, from a hash of those. */
const SNOOZED = snoozedDeals(JUDGED_AT);
const IS_SNOOZED = `t.deal_id = ANY (ARRAY (${SNOOZED}))`;
const snoozed = (isSnoozed: boolean) => (isSnoozed ? ` AND ${IS_SNOOZED}` : ` AND t.deal_id NOT IN (${SNOOZED})`);
/** SQL: they themselves are looked up by their ids. Without OFFSET PostgreSQL 15 goes through all that are sorted. */
const OF_SNOOZED = `(SELECT * FROM deal_silence t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND ${IS_SNOOZED} OFFSET 0)`;

/** A deal's status and stored verdict. Each index of lists begins with both, so each pair is a list that is sorted already. */
const STANDINGS = [
  ...(["ACTIVE", "COOLING", "QUIET", "GHOSTED"] as const).map((verdict) => ["open", verdict] as const),
  ...([["won", "ACTIVE"] as const, ["lost", "ACTIVE"] as const] as const),
];

function standingsOf({ status, verdict }: DealFilter, isStaleCopy: boolean): readonly (readonly [string, string])[] {
  const shown = ([of, stored]: (typeof STANDINGS)[number]) => (isStaleCopy && of === "open" ? "UNKNOWN" : stored);
  return STANDINGS.filter(
    (standing) => (status?.includes(standing[0]) ?? true) && (verdict?.includes(shown(standing)) ?? true),
  );
}

/** What is read of a list: at an instant, where silence counts in it. */
interface Reading {
  /** From $2 on: the copy, statuses and verdicts of the standings, the instant, what it is narrowed to. */
  parameters: unknown[];
  narrowed: string;
  isJudged: boolean;
  isStale: boolean;
  isOfSnoozed: boolean;
}

/**
 * Reads a list together with how fresh its copy is, where silence counts: nearly all are fresh, and only a stale one is read
 * again, as such.
 * @param now when a walk that begins here is judged; one that goes on is judged when it began
 */
async function readAsFresh<T>(
  copy: CopyScope,
  filter: DealFilter,
  { order: { isJudged }, after }: Walk,
  now: Date,
  read: (reading: Reading) => Promise<T>,
): Promise<T> {
  const at = (isJudged && after?.[0]) || textOfInstant(now);
  const reading = (isStale: boolean): Reading => {
    const standings = standingsOf(filter, isStale);
    const parameters: unknown[] = [copy.copyId, standings.map(([of]) => of), standings.map(([, stored]) => stored)];
    if (isJudged) parameters.push(isStale ? at.replace(/000$/, OF_STALE) : at);
    const narrowed = Object.entries(NARROWED).flatMap(([field, sql]) => {
      const value = filter[field as keyof typeof NARROWED];
      return value === undefined ? [] : ` AND ${sql(`$${parameters.push(value) + 1}`)}`;
    });
    if (filter.snoozed !== undefined) narrowed.push(snoozed(filter.snoozed));
    return { parameters, narrowed: narrowed.join(""), isJudged, isStale, isOfSnoozed: filter.snoozed === true };
  };
  if (!isJudged || at.endsWith(OF_STALE)) return read(reading(isJudged));
  // The deals first: what hangs on them may be read in their statement.
  const [found, freshness] = await Promise.all([read(reading(false)), readFreshness(copy)]);
  return isStale(freshness, Number(at) / 1_000) ? read(reading(true)) : found;
}

/** What of a list's source is wanted: behind a place, and of each part so many in an order. */
type Part = Pick<Step, "beyond"> & { end: string };
/** OFFSET: each standing is looked for by itself. Joined with them all entries would be gone through. */
const WHOLE: Part = { beyond: "", end: "OFFSET 0" };

/**
 * SQL: the deals of each standing, which one index has sorted. Where the marked phase does not hold at the instant, because
 * nobody has moved the mark yet or somebody has since, the one that does is looked up: those are few.
 */
function standingDeals({ narrowed, isJudged, isStale: stale, isOfSnoozed }: Reading, { beyond, end }: Part): string {
  // IS TRUE keeps the indexes of other marks out, which the planner took for better than the sorted one: it holds for nearly all.
  const isHeld =
    isJudged && !stale ? ` AND (t.holds_from <= ${JUDGED_AT} AND t.holds_until > ${JUDGED_AT}) IS TRUE` : "";
  // Of a stale copy the instant decides nothing, and PostgreSQL refuses a parameter that is not named.
  const isGiven = isJudged ? ` AND ${JUDGED_AT} IS NOT NULL` : "";
  const marked = `SELECT t.* FROM unnest($3::text[], $4::text[]) AS standing (status, verdict)
    CROSS JOIN LATERAL (SELECT t.* FROM ${isOfSnoozed ? OF_SNOOZED : "deal_silence"} t
      WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.generation = ${HELD} AND t.is_listed AND t.status = standing.status AND t.verdict = standing.verdict
        ${isHeld || isGiven}${narrowed}${beyond} ${end}) t`;
  if (isHeld === "") return marked;
  return `${marked} UNION ALL
    SELECT t.* FROM (${otherMarks(`l.holds_until <= ${JUDGED_AT}`, "l.holds_until")} UNION ALL
      ${otherMarks(`l.holds_from > ${JUDGED_AT}`, "l.holds_from")}) other
    CROSS JOIN LATERAL (SELECT t.* FROM deal_silence t
      WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.deal_id = other.deal_id AND t.generation = ${HELD}${isHeld} LIMIT 1) t
    WHERE (t.status, t.verdict) IN (SELECT * FROM unnest($3::text[], $4::text[]))${narrowed}${beyond}`;
}

/** SQL: where nothing is known of silence all deals are as long silent, and so sorted by their ids alone. */
const unknownDeals = ({ narrowed }: Reading, { beyond, end }: Part) => `
  SELECT t.* FROM (SELECT s.*, NULL::timestamptz AS quiet_since FROM (
      SELECT tenant_id, deal_id, status, verdict, pipeline_id, stage_id, owner_id, currency, value_rank, negative_value
      FROM deal_silence WHERE tenant_id = $1 AND copy_id = $2 AND generation = ${HELD} AND is_listed) s) t
  WHERE t.status = ANY ($3) AND t.verdict = ANY ($4) ${narrowed}${beyond} ${end}`;

/** The matched deals that fit the filter. @param now when a walk that begins here is judged */
export function readDeals(copy: CopyScope, filter: DealFilter, page: PageRequest & Walk, now: Date) {
  return readAsFresh(copy, filter, page, now, (reading) => {
    const deals = reading.isStale && page.order.isBySilence ? unknownDeals : standingDeals;
    const from = ({ beyond, orderBy, limit }: Step) => {
      const end = `ORDER BY ${orderBy} LIMIT ${limit}`;
      return `(SELECT t.* FROM (${deals(reading, { beyond, end })}) t ${end}) t
        CROSS JOIN LATERAL (SELECT * FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = t.deal_id LIMIT 1) d`;
    };
    return readPage(copy, DealRow, { columns: "d.*", where: [], parameters: reading.parameters, from }, page);
  });
}

export interface DealSummary {
  count: number;
  /** Exact decimal text, by currency; without the deals that have no value or no currency. */
  totals: { amount: string; currency: string }[];
}

/** Of all deals that fit, at the instant of the page's walk; null where they are more than are counted. */
export async function summarizeDeals(
  copy: CopyScope,
  filter: DealFilter,
  walk: Walk,
  now: Date,
): Promise<DealSummary | null> {
  const found = await readAsFresh(copy, filter, walk, now, (reading) =>
    copy.rows<{ currency: string; deals: number; amount: string }>(
      `SELECT f.currency, count(*) AS deals, (-sum(f.negative_value))::text AS amount
       FROM (SELECT t.currency, t.negative_value FROM (${standingDeals(reading, WHOLE)}) t LIMIT ${MOST_COUNTED + 1}) f
       GROUP BY f.currency ORDER BY f.currency`,
      [copy.tenantId, ...reading.parameters],
      { currency: "text", deals: "number", amount: "text" },
    ),
  );
  const count = found.reduce((sum, { deals }) => sum + deals, 0);
  if (count > MOST_COUNTED) return null;
  const totals = found.flatMap(({ currency, amount }) => (currency === NO_MONEY ? [] : { currency, amount }));
  return { count, totals };
}
