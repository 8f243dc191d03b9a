import { holdCopyToJudge } from "../../connections/connection-store";
import type { CrmCustomFields } from "../../crm/parsing/fields";
import type { TenantScope } from "../../database/database";
import { jsonRows } from "../../database/upsert";
import type { MatchedEntity } from "../../entities/matched-record";

const TABLES: Record<MatchedEntity, string> = { DEAL: "deal", PERSON: "person", ORGANIZATION: "organization" };

/**
 * The tenant's readers see at once what the CRM showed after a write. The newest state stays: a page of a sync that was
 * read before the write and comes after it finds a newer row.
 */
export async function copyFields(
  scope: TenantScope,
  copyId: number,
  entity: MatchedEntity,
  { id, updateTime, customFields }: CrmCustomFields,
): Promise<void> {
  if (!(await holdCopyToJudge(scope, copyId))) return;
  const copied = await scope.rows(
    `UPDATE ${TABLES[entity]} SET custom_fields = custom_fields || ($4::jsonb -> 0), update_time = coalesce($5, update_time)
     WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = $3
       AND (update_time IS NULL OR $5::timestamptz IS NULL OR update_time <= $5)
     RETURNING 1 AS copied`,
    [scope.tenantId, copyId, id, jsonRows([customFields]), updateTime],
  );
  // Lists of deals sort by it. No verdict hangs on it.
  if (entity === "DEAL" && updateTime && copied.length > 0)
    await scope.rows("UPDATE deal_silence SET changed_at = $4 WHERE tenant_id = $1 AND copy_id = $2 AND deal_id = $3", [
      ...[scope.tenantId, copyId, id, updateTime],
    ]);
}
