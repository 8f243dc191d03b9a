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
import { removeRecords } from "./removal";

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
/** A walk that would take more than this away, and more than half, has to be proven first (decision 0013). */
const MANY = 100;

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

export interface Absence {
  /** What the walks have not seen. */
  absent: number;
  /** What the copy holds. */
  held: number;
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

export type RemovalVerdict = "REMOVE" | "PROVE_FIRST" | "KEEP";

/** An empty answer never empties anything, and taking much away needs proof that the user still sees as before. */
export function judgeRemoval({ absent, held }: Absence): RemovalVerdict {
  if (absent === 0 || absent >= held) return "KEEP";
  return absent > MANY && absent > held / 2 ? "PROVE_FIRST" : "REMOVE";
}

/** Removes a batch of what two walks have not seen. @returns how many; 0 at the end */
export async function removeAbsent(copy: CopyScope, resource: SyncResource): Promise<number> {
  const { tenantId, copyId, rows } = copy;
  const batch = await rows<{ crm_id: number }>(
    `DELETE FROM absent_record a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.resource = $3 AND a.crm_id IN (
       SELECT b.crm_id FROM absent_record b
       WHERE b.tenant_id = $1 AND b.copy_id = $2 AND b.resource = $3 ORDER BY b.crm_id LIMIT ${BATCH})
     RETURNING a.crm_id`,
    [tenantId, copyId, resource],
    { crm_id: "number" },
  );
  const ids = batch.map(({ crm_id }) => crm_id);
  await removeRecords(copy, entityOf(resource), ids);
  return ids.length;
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
