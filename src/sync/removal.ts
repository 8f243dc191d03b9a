import type { EntityManager } from "typeorm";
import { rows } from "../database/rows";
import { DealRow } from "../entities/deal";
import { PersonRow } from "../entities/person";

/** Rows that belong to a record and go with it: table and the column that names the record. */
const DEPENDENTS = new Map<unknown, readonly (readonly [table: string, column: string])[]>([
  [
    PersonRow,
    [
      ["person_address", "person_id"],
      ["deal_participant", "person_id"],
    ],
  ],
  [DealRow, [["deal_participant", "deal_id"]]],
]);

/** Removes records from the copy with what belongs to them. @returns how many were there */
export async function removeRecords(
  manager: EntityManager,
  entity: new () => object,
  copyId: number,
  ids: readonly number[],
): Promise<number> {
  if (ids.length === 0) return 0;
  for (const [table, column] of DEPENDENTS.get(entity) ?? []) {
    await rows(manager, `DELETE FROM ${table} WHERE copy_id = $1 AND ${column} = ANY ($2)`, [copyId, ids]);
  }
  if (entity === DealRow) await forgetGaps(manager, copyId, ids);
  const { tableName } = manager.connection.getMetadata(entity);
  const gone = await rows(
    manager,
    `DELETE FROM ${tableName} WHERE copy_id = $1 AND crm_id = ANY ($2) RETURNING crm_id`,
    [copyId, ids],
  );
  return gone.length;
}

/** Of a deal that is gone no participants are missing. */
async function forgetGaps(manager: EntityManager, copyId: number, dealIds: readonly number[]): Promise<void> {
  await rows(
    manager,
    "DELETE FROM data_gap WHERE copy_id = $1 AND resource = 'DEAL_PARTICIPANTS' AND crm_id = ANY ($2)",
    [copyId, dealIds],
  );
}
