import { Any } from "typeorm";
import type { CopyScope } from "../database/database";
import { AbsentRecordRow } from "../entities/absent-record";
import { ActivityRow } from "../entities/activity";
import { DealRow } from "../entities/deal";
import { NoteRow } from "../entities/note";
import { OrganizationRow } from "../entities/organization";
import { PersonRow } from "../entities/person";
import { PipelineRow } from "../entities/pipeline";
import { StageRow } from "../entities/stage";
import type { SyncResource } from "../entities/sync-run";
import type { Absence } from "./plan";

/**
 * The lists from which a record that is gone is removed. Not users: whether the CRM lists deactivated ones is not
 * known, and their names belong to what they did.
 */
const REMOVABLE: Partial<Record<SyncResource, new () => { copyId: number; crmId: number }>> = {
  PIPELINES: PipelineRow,
  STAGES: StageRow,
  ORGANIZATIONS: OrganizationRow,
  PERSONS: PersonRow,
  DEALS: DealRow,
  ACTIVITIES: ActivityRow,
  NOTES: NoteRow,
};

/** Rows removed in one transaction. */
const BATCH = 1_000;

export const isRemovable = (resource: SyncResource): boolean => resource in REMOVABLE;

/** The first walk begins: every record of the copy counts as not seen, and what an earlier run left is forgotten. */
export async function beginAbsence(copy: CopyScope, resource: SyncResource): Promise<void> {
  await forgetAbsence(copy, resource);
  const { tenantId, copyId, rows } = copy;
  await rows(
    `INSERT INTO absent_record (tenant_id, copy_id, resource, crm_id)
     SELECT t.tenant_id, t.copy_id, $3, t.crm_id FROM ${tableOf(copy, resource)} t WHERE t.tenant_id = $1 AND t.copy_id = $2
     ON CONFLICT DO NOTHING`,
    [tenantId, copyId, resource],
  );
}

/** A page shows these, whether or not they could be read. */
export async function seen(
  { tenantId, copyId, typed }: CopyScope,
  resource: SyncResource,
  ids: readonly number[],
): Promise<void> {
  await typed((orm) => orm.delete(AbsentRecordRow, { tenantId, copyId, resource, crmId: Any(ids) }));
}

export async function countAbsence(copy: CopyScope, resource: SyncResource): Promise<Absence> {
  const { tenantId, copyId, rows } = copy;
  const [count] = await rows<Absence>(
    `SELECT (SELECT count(*)::int FROM absent_record a
             WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.resource = $3) AS absent,
            (SELECT count(*)::int FROM ${tableOf(copy, resource)} t WHERE t.tenant_id = $1 AND t.copy_id = $2) AS held`,
    [tenantId, copyId, resource],
    { absent: "number", held: "number" },
  );
  return count ?? { absent: 0, held: 0 };
}

/** A batch of what two walks have not seen, for the caller to remove. @returns none at the end */
export async function takeAbsent(
  { tenantId, copyId, rows }: CopyScope,
  resource: SyncResource,
): Promise<readonly number[]> {
  const batch = await rows<{ crm_id: number }>(
    `DELETE FROM absent_record a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.resource = $3 AND a.crm_id IN (
       SELECT b.crm_id FROM absent_record b
       WHERE b.tenant_id = $1 AND b.copy_id = $2 AND b.resource = $3 ORDER BY b.crm_id LIMIT ${BATCH})
     RETURNING a.crm_id`,
    [tenantId, copyId, resource],
    { crm_id: "number" },
  );
  return batch.map(({ crm_id }) => crm_id);
}

export async function forgetAbsence({ tenantId, copyId, typed }: CopyScope, resource: SyncResource): Promise<void> {
  await typed((orm) => orm.delete(AbsentRecordRow, { tenantId, copyId, resource }));
}

function entityOf(resource: SyncResource): new () => { copyId: number; crmId: number } {
  const entity = REMOVABLE[resource];
  if (!entity) throw new Error(`${resource} is not a list from which records are removed`);
  return entity;
}

const tableOf = ({ metadata }: CopyScope, resource: SyncResource) => metadata(entityOf(resource)).tableName;

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
      "DELETE FROM deal_silence WHERE tenant_id = $1 AND copy_id = $2 AND deal_id = ANY ($3)",
      "DELETE FROM coming_silence WHERE tenant_id = $1 AND copy_id = $2 AND deal_id = ANY ($3)",
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
