import { GAP_CODE_OF } from "../connections/known-gaps";
import type { CrmError } from "../crm/errors";
import type { CopyScope } from "../database/database";
import type { GapCode, SyncResource } from "../entities/sync-run";

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

/** A whole list that could not be read, as whoever reads an answer is told. */
export function gapOf(resource: SyncResource, error: CrmError): FoundGap {
  const list = resource.toLowerCase().replace("_", " ");
  const message = `The CRM's ${list} could not be read; what is shown of them may be missing or old. The next run asks again.`;
  const code = error.code === "NOT_FOUND" ? "CRM_REFUSED" : GAP_CODE_OF[error.code];
  return { code, message };
}
