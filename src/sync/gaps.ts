import type { CopyScope } from "../database/database";
import type { GapCode, SyncKind, SyncResource } from "../entities/sync-run";

/** A gap of a whole resource is kept under this id; CRM ids begin at 1. */
const WHOLE_RESOURCE = 0;

export interface FoundGap {
  /** The record that is touched; absent for the whole resource. */
  crmId?: number;
  code: GapCode;
  message: string;
}

/** Notes gaps; one that was there already keeps its `since`. */
export async function recordGaps(
  { tenantId, copyId, rows }: CopyScope,
  resource: SyncResource,
  gaps: readonly FoundGap[],
  now: Date,
): Promise<void> {
  if (gaps.length === 0) return;
  const values = gaps.map(({ crmId = WHOLE_RESOURCE, code, message }) => ({ crmId, code, message }));
  await rows(
    `INSERT INTO data_gap AS g (tenant_id, copy_id, resource, crm_id, code, message, since)
     SELECT $1, $2, $3, r."crmId", r.code, r.message, $5
     FROM jsonb_to_recordset($4::jsonb) AS r ("crmId" bigint, code text, message text)
     ON CONFLICT (tenant_id, copy_id, resource, crm_id) DO UPDATE SET code = EXCLUDED.code, message = EXCLUDED.message
     WHERE (g.code, g.message) IS DISTINCT FROM (EXCLUDED.code, EXCLUDED.message)`,
    [tenantId, copyId, resource, JSON.stringify(values), now],
  );
}

/** What two walks did not show, and what is kept all the same. */
export const NOT_SHOWN = "NOT_SHOWN";

/** The list was read to its end. Only a run that walks it whole can say that what was not shown is shown again. */
export async function mendWholeResource(
  { tenantId, copyId, rows }: CopyScope,
  resource: SyncResource,
  kind: SyncKind,
): Promise<void> {
  const stays = kind === "INCREMENTAL" ? NOT_SHOWN : null;
  await rows(
    `DELETE FROM data_gap
     WHERE tenant_id = $1 AND copy_id = $2 AND resource = $3 AND crm_id = $4 AND code IS DISTINCT FROM $5`,
    [tenantId, copyId, resource, WHOLE_RESOURCE, stays],
  );
}
