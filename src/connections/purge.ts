import type { Database, TenantScope } from "../database/database";
import { enqueueJob, hasLiveJob } from "../database/queue";
import { entities } from "../entities";
import { eachAlone } from "../platform/chores";
import type { Logger } from "../platform/logger";

export const PURGE_JOB = "purge_copy";
/** Rows a statement: small enough to hold no lock for long, large enough to delete a million in minutes. */
const BATCH = 5_000;

export interface PurgeRef {
  tenantId: number;
  copyId: number;
}

export function enqueuePurge(scope: TenantScope, copyId: number): Promise<void> {
  const payload: PurgeRef = { tenantId: scope.tenantId, copyId };
  return enqueueJob(scope, { task: PURGE_JOB, subject: copyId, payload });
}

/** Enqueues again what a worker took and died with; a purge that goes on twice does no harm. */
export async function sweepPurges(database: Database, logger: Logger): Promise<void> {
  const lost = await database.acrossTenants<PurgeRef>(
    `WITH retired AS MATERIALIZED (SELECT tenant_id, id FROM synced_copy WHERE state = 'RETIRED')
     SELECT tenant_id AS "tenantId", id AS "copyId" FROM retired
     WHERE NOT ${hasLiveJob(PURGE_JOB, "retired.id", "now() - interval '5 minutes'")}`,
  );
  await eachAlone(lost, ({ tenantId, copyId }) => enqueuePurge(database.tenant(tenantId), copyId), logger);
}

/**
 * Deletes a retired copy's rows, a batch a statement, and its own row last: a purge that was cut off goes on where it
 * stood. A live copy is never touched.
 */
export async function purgeCopy(
  database: Database,
  { tenantId, copyId }: PurgeRef,
  stop: AbortSignal,
  logger: Logger,
): Promise<void> {
  const scope = database.tenant(tenantId);
  const retired = await scope.rows("SELECT 1 FROM synced_copy WHERE tenant_id = $1 AND id = $2 AND state = 'RETIRED'", [
    tenantId,
    copyId,
  ]);
  if (retired.length === 0) return;
  let deleted = 0;
  for (const table of copyTables(scope)) {
    for (let batch = BATCH; batch === BATCH; deleted += batch) {
      if (stop.aborted) throw new Error("the purge was stopped and goes on later");
      batch = await deleteBatch(scope, table, copyId);
    }
  }
  await scope.rows("DELETE FROM synced_copy WHERE tenant_id = $1 AND id = $2 AND state = 'RETIRED'", [
    tenantId,
    copyId,
  ]);
  logger.info({ tenantId, copyId, deleted }, "a retired copy was purged");
}

/** Every table whose rows belong to a copy; runs and receipts of writes are the tenant's history. */
function copyTables({ metadata }: TenantScope): string[] {
  const KEPT = [
    ...["sync_run", "connection", "credential", "meeting_match", "renewal_attempt"],
    ...["note_write", "field_write"],
  ];
  return entities
    .map(metadata)
    .filter(
      ({ tableName, columns }) =>
        !KEPT.includes(tableName) && columns.some(({ propertyName }) => propertyName === "copyId"),
    )
    .map(({ tableName }) => tableName);
}

async function deleteBatch({ tenantId, rows }: TenantScope, table: string, copyId: number): Promise<number> {
  const deleted = await rows(
    `DELETE FROM ${table} WHERE tenant_id = $1 AND ctid = ANY (ARRAY (
       SELECT ctid FROM ${table} WHERE tenant_id = $1 AND copy_id = $2 LIMIT ${BATCH})) RETURNING 1 AS gone`,
    [tenantId, copyId],
  );
  return deleted.length;
}
