import type { CopyScope } from "../../database/database";
import { instantOf, ListOrder, Page, PageRequest, readPage, textOfInstant } from "../../database/keyset";
import { DealRow } from "../../entities/deal";
import type { QuietVerdict } from "../quiet/facts";
import { readFreshness } from "../quiet/read-quiet";
import { isStale } from "../quiet/rules";
import { isSnoozed } from "../quiet/situation";
import { isMatched } from "../records";

const byId = { sql: "t.crm_id", type: "integer" } as const;
/** The same number as the index of schedules has it. */
const byDeal = { sql: "t.deal_id", type: "integer" } as const;

/** What the CRM gave no instant for stands before all that have one; the index `deal_by_update` has the same text. */
const updatedAt = { sql: "coalesce(t.update_time, '0001-01-01 00:00:00+00'::timestamptz)", type: "instant" } as const;

/** The currency; what is no money, because one of its halves is missing, stands behind every currency. */
const currency = {
  sql: `(CASE WHEN t.value IS NULL OR t.currency IS NULL THEN '~' ELSE t.currency END COLLATE "C")`,
  type: "text",
} as const;

/** The longest silence first; deals that are not silent behind all that are. */
const quietSince = {
  sql: "coalesce(t.quiet_since, '9999-12-31 00:00:00+00'::timestamptz)",
  type: "instant",
} as const;

/** The instant at which a walk is judged: its first page's, which every cursor carries on to the next page. */
const JUDGED_AT = instantOf("$3");
const judgedAt = { sql: JUDGED_AT, type: "instant" } as const;

/** Amounts are compared within a currency only, and never converted (decision 0026). */
export const DEAL_ORDERS = {
  UPDATED_AT_DESC: { direction: "DESC", keys: [updatedAt, byId] },
  VALUE_DESC: { direction: "ASC", keys: [currency, { sql: "-coalesce(t.value, 0)", type: "decimal" }, byId] },
  QUIET_DAYS_DESC: { direction: "ASC", keys: [quietSince, byDeal] },
} as const satisfies Record<string, ListOrder>;

/** An order as it is walked. One in which silence or a snooze counts is judged at one instant from the first page to the last. */
export interface DealOrder extends ListOrder {
  isJudged: boolean;
}

export function dealOrder(name: keyof typeof DEAL_ORDERS, { verdict, snoozed }: DealFilter): DealOrder {
  const { direction, keys } = DEAL_ORDERS[name];
  const isJudged = verdict !== undefined || snoozed !== undefined || name === "QUIET_DAYS_DESC";
  return { direction, isJudged, keys: isJudged ? [judgedAt, ...keys] : keys };
}

/** Which deals; an absent field means any. A field with no values fits no deal. */
export interface DealFilter {
  status?: readonly DealRow["status"][];
  pipelineId?: readonly number[];
  stageId?: readonly number[];
  ownerId?: readonly number[];
  verdict?: readonly QuietVerdict[];
  /** Whether it is snoozed at the instant of the list. */
  snoozed?: boolean;
}

const FILTERED: { [F in Exclude<keyof DealFilter, "snoozed">]-?: string } = {
  status: "t.status",
  pipelineId: "t.pipeline_id",
  stageId: "t.stage_id",
  ownerId: "t.owner_id",
  verdict: "t.verdict",
};

/** Every deal with the two columns of its silence: those of the phase that holds, or what a stale copy can say. */
const JUDGED_DEALS = `(SELECT d.*, s.deal_id, s.verdict, s.quiet_since FROM deal d
  JOIN deal_silence s ON s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id = d.crm_id
    AND s.holds_from <= ${JUDGED_AT} AND s.holds_until > ${JUDGED_AT}
  WHERE d.tenant_id = $1 AND d.copy_id = $2)`;
const UNJUDGED_DEALS = `(SELECT d.*, d.crm_id AS deal_id, CASE WHEN d.status = 'open' THEN 'UNKNOWN' ELSE 'ACTIVE' END AS verdict,
  NULL::timestamptz AS quiet_since FROM deal d WHERE d.tenant_id = $1)`;

/** The matched deals that fit the filter. @param now when a walk that begins here is judged */
export async function readDeals(
  copy: CopyScope,
  filter: DealFilter,
  { order, ...page }: Omit<PageRequest, "order"> & { order: DealOrder },
  now: Date,
): Promise<Page<DealRow>> {
  const where = ["t.copy_id = $2", isMatched("DEAL")];
  const parameters: unknown[] = [copy.copyId];
  const judged = page.after?.[0] ?? textOfInstant(now);
  if (order.isJudged) parameters.push(judged);
  for (const [field, sql] of Object.entries(FILTERED)) {
    const wanted = filter[field as keyof typeof FILTERED];
    if (!wanted) continue;
    parameters.push(wanted);
    where.push(`${sql} = ANY ($${parameters.length + 1})`);
  }
  if (filter.snoozed !== undefined) where.push(`${isSnoozed("t", JUDGED_AT)} = ${filter.snoozed}`);
  // Said once more in the words of an index: the planner knows no parameters when it chooses.
  if (filter.verdict?.every((verdict) => verdict === "QUIET" || verdict === "GHOSTED"))
    where.push("t.verdict IN ('QUIET', 'GHOSTED')");
  if (!order.isJudged) return readPage(copy, DealRow, { where, parameters }, { order, ...page });
  const stale = isStale(await readFreshness(copy), Number(judged) / 1_000);
  return readPage(
    copy,
    DealRow,
    { from: stale ? UNJUDGED_DEALS : JUDGED_DEALS, where, parameters },
    { order, ...page },
  );
}
