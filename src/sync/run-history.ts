import { rows } from "../database/rows";
import type { TenantScope } from "../database/tenant-door";
import { SyncRunRow } from "../entities/sync-run";
import { SyncStepRow } from "../entities/sync-step";

export interface RunCursor {
  queuedAt: Date;
  id: string;
}

/** The tenant's runs, newest first, after a cursor. */
export function readRuns(
  { tenantId, manager }: TenantScope,
  first: number,
  after: RunCursor | null,
): Promise<SyncRunRow[]> {
  const query = manager.createQueryBuilder(SyncRunRow, "r").where("r.tenantId = :tenantId", { tenantId });
  if (after) query.andWhere("(r.queuedAt, r.id) < (:queuedAt, :id)", { ...after });
  return query.orderBy("r.queuedAt", "DESC").addOrderBy("r.id", "DESC").limit(first).getMany();
}

export function readRunsById({ tenantId, manager }: TenantScope, ids: readonly string[]): Promise<SyncRunRow[]> {
  const where = "r.tenantId = :tenantId AND r.id = ANY (:ids)";
  return manager.createQueryBuilder(SyncRunRow, "r").where(where, { tenantId, ids }).getMany();
}

/** Of one copy: the open run, the last ended one, and when one last succeeded. */
export async function readRunStatus(
  { tenantId, manager }: TenantScope,
  copyId: number,
): Promise<{ current: SyncRunRow | null; last: SyncRunRow | null; lastSuccessAt: Date | null }> {
  const of = (states: string) =>
    manager
      .createQueryBuilder(SyncRunRow, "r")
      .where(`r.tenantId = :tenantId AND r.copyId = :copyId AND r.state IN (${states})`, { tenantId, copyId })
      .orderBy("r.queuedAt", "DESC")
      .limit(1)
      .getOne();
  const [current, last, success] = await Promise.all([
    of("'QUEUED', 'RUNNING'"),
    of("'SUCCEEDED', 'FAILED', 'CANCELLED'"),
    rows<{ at: Date | null }>(
      manager,
      "SELECT max(finished_at) AS at FROM sync_run WHERE tenant_id = $1 AND copy_id = $2 AND state = 'SUCCEEDED'",
      [tenantId, copyId],
    ),
  ]);
  return { current, last, lastSuccessAt: success[0]?.at ?? null };
}

export function readStepsOf({ tenantId, manager }: TenantScope, runIds: readonly string[]): Promise<SyncStepRow[]> {
  return manager
    .createQueryBuilder(SyncStepRow, "s")
    .where("s.tenantId = :tenantId AND s.runId = ANY (:runIds)", { tenantId, runIds })
    .getMany();
}
