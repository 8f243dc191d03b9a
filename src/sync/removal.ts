import type { EntityManager } from "typeorm";
import { rows } from "../database/rows";
import { DealRow } from "../entities/deal";
import { PersonRow } from "../entities/person";

/** What belongs to a record and goes with it. $1: the copy, $2: the ids of the records. */
const DEPENDENTS = new Map<unknown, readonly string[]>([
  [
    PersonRow,
    [
      "DELETE FROM person_address WHERE copy_id = $1 AND person_id = ANY ($2)",
      // Merged into another, the person has left its place on the deal to that one, which moves neither the deal's count
      // nor, as far as is known, its update time: the deal has to be asked again.
      `WITH gone AS (DELETE FROM deal_participant WHERE copy_id = $1 AND person_id = ANY ($2) RETURNING deal_id)
       UPDATE deal SET participants_due = true WHERE copy_id = $1 AND crm_id IN (SELECT deal_id FROM gone)`,
    ],
  ],
  [
    DealRow,
    [
      "DELETE FROM deal_participant WHERE copy_id = $1 AND deal_id = ANY ($2)",
      // Of a deal that is gone no participants are missing.
      "DELETE FROM data_gap WHERE copy_id = $1 AND resource = 'DEAL_PARTICIPANTS' AND crm_id = ANY ($2)",
    ],
  ],
]);

/** Removes records from the copy with what belongs to them. @returns how many were there */
export async function removeRecords(
  manager: EntityManager,
  entity: new () => object,
  copyId: number,
  ids: readonly number[],
): Promise<number> {
  if (ids.length === 0) return 0;
  for (const sql of DEPENDENTS.get(entity) ?? []) await rows(manager, sql, [copyId, ids]);
  const { tableName } = manager.connection.getMetadata(entity);
  const gone = await rows(
    manager,
    `DELETE FROM ${tableName} WHERE copy_id = $1 AND crm_id = ANY ($2) RETURNING crm_id`,
    [copyId, ids],
  );
  return gone.length;
}
