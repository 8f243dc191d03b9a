import { type ListOrder, type Page, type PageRequest, readPage } from "../../database/keyset";
import { DealRow } from "../../entities/deal";
import { type CopyScope, isMatched } from "../records";

const byId = { sql: "t.crm_id", type: "integer" } as const;

/** What the CRM gave no instant for stands before all that have one; the index `deal_by_update` has the same text. */
const updatedAt = { sql: "coalesce(t.update_time, '0001-01-01 00:00:00+00'::timestamptz)", type: "instant" } as const;

/** The currency; what is no money, because one of its halves is missing, stands behind every currency. */
const currency = {
  sql: `(CASE WHEN t.value IS NULL OR t.currency IS NULL THEN '~' ELSE t.currency END COLLATE "C")`,
  type: "text",
} as const;

/** Amounts are compared within a currency only, and never converted (decision 0026). */
export const DEAL_ORDERS = {
  UPDATED_AT_DESC: { direction: "DESC", keys: [updatedAt, byId] },
  VALUE_DESC: { direction: "ASC", keys: [currency, { sql: "-coalesce(t.value, 0)", type: "decimal" }, byId] },
} as const satisfies Record<string, ListOrder>;

/** Which deals; an absent field means any. A field with no values fits no deal. */
export interface DealFilter {
  status?: readonly DealRow["status"][];
  pipelineId?: readonly number[];
  stageId?: readonly number[];
  ownerId?: readonly number[];
}

const FILTERED: { [F in keyof DealFilter]-?: string } = {
  status: "t.status",
  pipelineId: "t.pipeline_id",
  stageId: "t.stage_id",
  ownerId: "t.owner_id",
};

/** The matched deals that fit the filter. */
export function readDeals(
  { manager, tenantId, copyId }: CopyScope,
  filter: DealFilter,
  page: PageRequest,
): Promise<Page<DealRow>> {
  const where = ["t.copy_id = $2", isMatched("DEAL")];
  const parameters: unknown[] = [tenantId, copyId];
  for (const [field, sql] of Object.entries(FILTERED)) {
    const wanted = filter[field as keyof DealFilter];
    if (!wanted) continue;
    parameters.push(wanted);
    where.push(`${sql} = ANY ($${parameters.length})`);
  }
  return readPage(manager, DealRow, { where, parameters }, page);
}
