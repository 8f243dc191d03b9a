import { randomUUID } from "node:crypto";
import { Any } from "typeorm";
import type { TenantScope } from "../database/database";
import { enqueueJob } from "../database/jobs";
import { notify, PROGRESS_CHANGED } from "../database/notifications";
import { type GapSummary, type SyncKind, type SyncResource, SyncRunRow, type SyncState } from "../entities/sync-run";
import { SyncStepRow } from "../entities/sync-step";
import { SECOND_MS } from "../platform/clock";
import { type RunFailure, RunLostError } from "./failures";

/** A worker that says nothing for this long has lost its run (decision 0014). */
export const LEASE_MS = 30 * SECOND_MS;
export const SYNC_JOB = "sync_run";
export const RUN_SUCCEEDED_JOB = "sync_run_succeeded";

export interface RunRef {
  tenantId: number;
  runId: string;
}

/** A run as the worker holds it: whoever has the lease id may write. */
export interface ClaimedRun extends RunRef {
  copyId: number;
  kind: SyncKind;
  leaseId: string;
  /** As far as this worker knows; a frozen one finds it in the past. */
  leaseUntil: Date;
  /** The CRM's clock when the run began; null until its first answer. */
  crmTimeAtStart: Date | null;
  /** What the lists are asked for; null: everything. */
  updatedSince: Date | null;
}

/** The job that goes on with a run: enqueued again, it is the same job. */
export function enqueueSync(scope: TenantScope, runId: string, runAt: Date | null = null): Promise<void> {
  return enqueueJob(scope, { task: SYNC_JOB, subject: runId, payload: reference(scope, runId), runAt });
}

const reference = ({ tenantId }: TenantScope, runId: string): RunRef => ({ tenantId, runId });

/** Takes a queued run, or one whose worker's lease is over. null: it is another worker's, or finished. */
export async function claimRun({ tenantId, rows }: TenantScope, runId: string, now: Date): Promise<ClaimedRun | null> {
  const leaseId = randomUUID();
  const leaseUntil = new Date(now.getTime() + LEASE_MS);
  const [run] = await rows<{
    copy_id: number;
    kind: SyncKind;
    crm_time_at_start: Date | null;
    updated_since: Date | null;
  }>(
    `UPDATE sync_run SET state = 'RUNNING', started_at = coalesce(started_at, $3), lease_id = $4, lease_until = $5
     WHERE tenant_id = $1 AND id = $2 AND (state = 'QUEUED' OR (state = 'RUNNING' AND lease_until < $3))
     RETURNING copy_id, kind, crm_time_at_start, updated_since`,
    [tenantId, runId, now, leaseId, leaseUntil],
    { copy_id: "number", kind: "text", crm_time_at_start: "instant", updated_since: "instant" },
  );
  if (!run) return null;
  return {
    ...{ tenantId, runId, leaseId, leaseUntil, copyId: run.copy_id, kind: run.kind },
    ...{ crmTimeAtStart: run.crm_time_at_start, updatedSince: run.updated_since },
  };
}

/** The run while it is this worker's. */
const ownRun = ({ tenantId }: TenantScope, { runId, leaseId }: ClaimedRun) => ({
  ...{ tenantId, id: runId, leaseId },
  state: "RUNNING" as const,
});

/** Says that the worker lives. @throws RunLostError where the run is no longer its own */
export async function extendLease(scope: TenantScope, run: ClaimedRun, now: Date): Promise<void> {
  const leaseUntil = new Date(now.getTime() + LEASE_MS);
  const held = await scope.typed((orm) => orm.update(SyncRunRow, ownRun(scope, run), { leaseUntil }));
  if (held.affected === 0) throw new RunLostError("the run was taken over or cancelled");
  scope.afterCommit(() => {
    run.leaseUntil = leaseUntil;
  });
}

/** Called right before a request: another worker may have the run by now. @throws RunLostError */
export function requireLease({ leaseUntil }: ClaimedRun, now: Date): void {
  if (now < leaseUntil) return;
  throw new RunLostError("the lease has run out while this worker was held up");
}

/** Gives an unfinished run back, with its job, for another worker to go on from the checkpoint, at once or later. */
export async function releaseRun(scope: TenantScope, run: ClaimedRun, runAt: Date | null = null): Promise<void> {
  const free = { state: "QUEUED" as const, leaseId: null, leaseUntil: null };
  const released = await scope.typed((orm) => orm.update(SyncRunRow, ownRun(scope, run), free));
  if (released.affected === 0) return;
  await enqueueSync(scope, run.runId, runAt);
  await notify(scope, PROGRESS_CHANGED);
}

export async function succeedRun(scope: TenantScope, run: ClaimedRun, gaps: GapSummary[], now: Date): Promise<void> {
  await finishRun(scope, run, { state: "SUCCEEDED", gaps }, now);
  await enqueueJob(scope, { task: RUN_SUCCEEDED_JOB, subject: run.runId, payload: reference(scope, run.runId) });
}

export async function failRun(scope: TenantScope, run: ClaimedRun, failure: RunFailure, now: Date): Promise<void> {
  await scope.rows(
    `UPDATE sync_step SET state = CASE WHEN state = 'RUNNING' THEN 'FAILED' ELSE 'CANCELLED' END
     WHERE tenant_id = $1 AND run_id = $2 AND state IN ('RUNNING', 'QUEUED')`,
    [run.tenantId, run.runId],
  );
  await finishRun(scope, run, { state: "FAILED", errorCode: failure.code, errorMessage: failure.message }, now);
}

async function finishRun(
  scope: TenantScope,
  run: ClaimedRun,
  change: Partial<SyncRunRow> & { state: SyncState },
  now: Date,
): Promise<void> {
  const done = { ...change, finishedAt: now, leaseId: null, leaseUntil: null };
  const result = await scope.typed((orm) => orm.update(SyncRunRow, ownRun(scope, run), done));
  if (result.affected === 0) throw new RunLostError("the run was taken over or cancelled before it ended");
  await notify(scope, PROGRESS_CHANGED);
}

export function readSteps({ tenantId, typed }: TenantScope, runId: string): Promise<SyncStepRow[]> {
  return typed((orm) => orm.findBy(SyncStepRow, { tenantId, runId }));
}

/** @throws RunLostError where the run is no longer this worker's */
export async function setStepState(
  scope: TenantScope,
  { runId, leaseId }: ClaimedRun,
  resource: SyncResource,
  state: SyncState,
  expected: number | null = null,
): Promise<void> {
  const { tenantId, rows } = scope;
  const set = await rows(
    `UPDATE sync_step s SET state = $4, expected = coalesce($5, expected)
     WHERE s.tenant_id = $1 AND s.run_id = $2 AND s.resource = $3 AND EXISTS (
       SELECT 1 FROM sync_run r WHERE r.tenant_id = $1 AND r.id = $2 AND r.lease_id = $6 AND r.state = 'RUNNING')
     RETURNING 1 AS set`,
    [tenantId, runId, resource, state, expected, leaseId],
  );
  if (set.length === 0) throw new RunLostError("the run was taken over or cancelled");
  await notify(scope, PROGRESS_CHANGED);
}

/** Cancels what is queued or running for a copy; a worker that holds such a run writes nothing more. */
export async function cancelRuns(scope: TenantScope, copyId: number, now: Date): Promise<void> {
  const { tenantId, rows, typed } = scope;
  const cancelled = await rows<{ id: string }>(
    `UPDATE sync_run SET state = 'CANCELLED', finished_at = $3, lease_id = NULL, lease_until = NULL
     WHERE tenant_id = $1 AND copy_id = $2 AND state IN ('QUEUED', 'RUNNING') RETURNING id`,
    [tenantId, copyId, now],
    { id: "text" },
  );
  const open = { tenantId, runId: Any(cancelled.map(({ id }) => id)), state: Any(["QUEUED", "RUNNING"]) };
  await typed((orm) => orm.update(SyncStepRow, open, { state: "CANCELLED" }));
  if (cancelled.length > 0) await notify(scope, PROGRESS_CHANGED);
}
