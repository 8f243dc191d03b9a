import type { CopyScope } from "../database/database";
import { DealRow } from "../entities/deal";
import { PersonRow } from "../entities/person";

/** What belongs to a record and goes with it. $1: the tenant, $2: the copy, $3: the ids of the records. */
const DEPENDENTS = new Map<unknown, readonly string[]>([
  [
    PersonRow,
    [
      "DELETE FROM person_address WHERE tenant_id = $1 AND copy_id = $2 AND person_id = ANY ($3)",
      // Merged into another, the person has left its place on the deal to that one, which moves neither the deal's count
      // nor, as far as is known, its update time: the deal has to be asked again.
      `WITH gone AS (
         DELETE FROM deal_participant WHERE tenant_id = $1 AND copy_id = $2 AND person_id = ANY ($3) RETURNING deal_id)
       UPDATE deal SET participants_due = true
       WHERE tenant_id = $1 AND copy_id = $2 AND crm_id IN (SELECT deal_id FROM gone)`,
    ],
  ],
  [
    DealRow,
    [
      "DELETE FROM deal_participant WHERE tenant_id = $1 AND copy_id = $2 AND deal_id = ANY ($3)",
      // Of a deal that is gone no participants are missing.
      `DELETE FROM data_gap
       WHERE tenant_id = $1 AND copy_id = $2 AND resource = 'DEAL_PARTICIPANTS' AND crm_id = ANY ($3)`,
    ],
  ],
]);

/** Removes records from the copy with what belongs to them. @returns how many were there */
export async function removeRecords(
  { tenantId, copyId, rows, metadata }: CopyScope,
  entity: new () => object,
  ids: readonly number[],
): Promise<number> {
  if (ids.length === 0) return 0;
  for (const sql of DEPENDENTS.get(entity) ?? []) await rows(sql, [tenantId, copyId, ids]);
  const { tableName } = metadata(entity);
  const gone = await rows(
    `DELETE FROM ${tableName} WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3) RETURNING crm_id`,
    [tenantId, copyId, ids],
  );
  return gone.length;
}
