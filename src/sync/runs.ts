import { randomUUID } from "node:crypto";
import { Any } from "typeorm";
import { z } from "zod";
import { notify, PROGRESS_CHANGED } from "../database/between-processes";
import { type TenantScope } from "../database/database";
import { enqueueJob, type JobKind, type JobPlace } from "../database/jobs";
import { ORDER_DECIDES } from "../database/rows";
import {
  type GapSummary,
  type SyncErrorCode,
  type SyncResource,
  SyncRunRow,
  type SyncState,
  SyncStepRow,
} from "../entities/sync-run";
import { SECOND_MS } from "../platform/clock";
import { type RunFailure, RunLostError } from "./failures";

/** A worker that says nothing for this long has lost its run. */
const LEASE_MS = 30 * SECOND_MS;
/** SQL: from now on. The database's clock is the one that all workers share; theirs may be minutes apart. */
const LEASE_UNTIL = `statement_timestamp() + interval '${LEASE_MS} milliseconds'`;
/** SQL: nobody holds the run. A lease that ends later than any is given was given by another server's clock. */
export const LEASE_IS_OVER = `lease_until NOT BETWEEN statement_timestamp() AND statement_timestamp() + interval '${2 * LEASE_MS} milliseconds'`;

const RUN_REF = z.object({ tenantId: z.int(), runId: z.string() });
export type RunRef = z.infer<typeof RUN_REF>;
const tenantOf = ({ tenantId }: RunRef) => tenantId;

/** A run is worked on. */
export const SYNC_RUN: JobKind<RunRef> = { name: "sync_run", payload: RUN_REF, subjectOf: ({ runId }) => runId };
/** What follows a tenant's last run: one that fails for a week waits once, and not for each run since. */
export const SYNC_RUN_ENDED: JobKind<RunRef> = { ...SYNC_RUN, name: "sync_run_ended", subjectOf: tenantOf };

/** A run as the worker holds it: whoever has the lease id may write. */
export interface ClaimedRun extends RunRef, Pick<SyncRunRow, "copyId" | "kind"> {
  /** When its first turn began. */
  startedAt: Date;
  leaseId: string;
  /** By this worker's clock, counted from before it asked; a frozen one finds it in the past. */
  leaseUntil: Date;
  /** When its watchers were last told of it, by a clock that nobody sets. */
  toldAt: number;
}

/** The job that goes on with a run: enqueued again, it is the same job. */
export function enqueueSync(scope: TenantScope, runId: string, waitMs = 0, place?: JobPlace): Promise<void> {
  return enqueueJob(scope, SYNC_RUN, { tenantId: scope.tenantId, runId }, waitMs, place);
}

/** Takes a queued run, or one whose worker's lease is over. null: it is another worker's, or finished. */
export async function claimRun({ tenantId, rows }: TenantScope, runId: string, now: Date): Promise<ClaimedRun | null> {
  const leaseId = randomUUID();
  const leaseUntil = new Date(now.getTime() + LEASE_MS);
  const [run] = await rows<Pick<ClaimedRun, "copyId" | "kind" | "startedAt">>(
    `UPDATE sync_run SET state = 'RUNNING', started_at = coalesce(started_at, $3), lease_id = $4, lease_until = ${LEASE_UNTIL}
     WHERE tenant_id = $1 AND id = $2 AND (state = 'QUEUED' OR (state = 'RUNNING' AND ${LEASE_IS_OVER}))
     RETURNING copy_id AS "copyId", kind, started_at AS "startedAt"`,
    [tenantId, runId, now, leaseId],
    { copyId: "number", kind: "text", startedAt: "instant" },
  );
  return run ? { tenantId, runId, leaseId, leaseUntil, ...run, toldAt: 0 } : null;
}

/** The run while it is this worker's. */
const ownRun = ({ tenantId }: TenantScope, { runId, leaseId }: ClaimedRun) => ({
  tenantId,
  id: runId,
  leaseId,
  state: "RUNNING" as const,
});

/** What a transaction that holds a run knows of its copy. */
export interface Held {
  /** A deal is matched, so that changes of records may change what is said of its silence. */
  hasMatchedDeals: boolean;
  /** Addresses are kept out of what is stored. */
  keepsOut: boolean;
}

/** Says that the worker lives. @returns null where the run is no longer its own, or its authorization has ended */
export async function extendLease(scope: TenantScope, run: ClaimedRun, now: Date): Promise<Held | null> {
  const leaseUntil = new Date(now.getTime() + LEASE_MS);
  // Whether a deal is matched is asked in an index's order: without it the rows of others were gone through.
  const [held] = await scope.keyed<Held>(
    `WITH extended AS (
       UPDATE sync_run SET lease_until = ${LEASE_UNTIL} WHERE tenant_id = $1 AND id = $2 AND lease_id = $3 AND state = 'RUNNING'
         AND EXISTS (SELECT 1 FROM connection c WHERE c.tenant_id = $1 AND c.copy_id = $4 AND c.state = 'CONNECTED')
       RETURNING 1
     )
     SELECT (SELECT true FROM matched_record m WHERE m.tenant_id = $1 AND m.copy_id = $4 AND m.entity = 'DEAL' ORDER BY m.crm_id LIMIT 1) IS NOT NULL AS "hasMatchedDeals",
       EXISTS (SELECT 1 FROM kept_out_address k WHERE k.tenant_id = $1) AS "keepsOut"
     FROM extended WHERE ${ORDER_DECIDES}`,
    [scope.tenantId, run.runId, run.leaseId, run.copyId],
    { hasMatchedDeals: "flag", keepsOut: "flag" },
  );
  if (!held) return null;
  scope.afterCommit(() => {
    run.leaseUntil = leaseUntil;
  });
  return held;
}

/** Called right before a request: another worker may have the run by now. @throws RunLostError */
export function requireLease({ leaseUntil }: ClaimedRun, now: Date): void {
  if (now < leaseUntil) return;
  throw new RunLostError("the lease has run out while this worker was held up");
}

/** Gives an unfinished run back, with its job, for another worker to go on from the checkpoint, at once or later. */
export async function releaseRun(scope: TenantScope, run: ClaimedRun, waitMs = 0, isLate = false): Promise<void> {
  const free = { state: "QUEUED" as const, leaseId: null, leaseUntil: null };
  const released = await scope.typed((orm) => orm.update(SyncRunRow, ownRun(scope, run), free));
  if (released.affected === 0) return;
  await enqueueSync(scope, run.runId, waitMs, isLate ? "LATE" : "IN_TURN");
  await notify(scope, PROGRESS_CHANGED);
}

/** The first failure of a main list is what the run will have failed for; what else it reads is read all the same. */
export async function noteFailure(scope: TenantScope, run: ClaimedRun, failure: RunFailure): Promise<void> {
  await scope.rows(
    `UPDATE sync_run SET error_code = coalesce(error_code, $3), error_message = coalesce(error_message, $4)
     WHERE tenant_id = $1 AND id = $2`,
    [run.tenantId, run.runId, failure.code, failure.message],
  );
}

/**
 * Ends a run: FAILED where one of its main lists has failed, or `failure` ended it, else SUCCEEDED.
 * @returns what it failed for; null where it succeeded
 * @throws RunLostError
 */
export async function endRun(
  scope: TenantScope,
  run: ClaimedRun,
  { failure, gaps, now, isLate }: { failure: RunFailure | null; gaps: GapSummary[]; now: Date; isLate: boolean },
): Promise<RunFailure | null> {
  const { tenantId, runId } = run;
  if (failure) await noteFailure(scope, run, failure);
  await scope.rows(
    `UPDATE sync_step SET state = CASE WHEN state = 'RUNNING' THEN 'FAILED' ELSE 'CANCELLED' END
     WHERE tenant_id = $1 AND run_id = $2 AND state IN ('RUNNING', 'QUEUED')`,
    [tenantId, runId],
  );
  const [ended] = await scope.rows<{ code: SyncErrorCode | null; message: string | null }>(
    `UPDATE sync_run SET state = CASE WHEN error_code IS NULL THEN 'SUCCEEDED' ELSE 'FAILED' END, gaps = $4,
       finished_at = $5, lease_id = NULL, lease_until = NULL
     WHERE tenant_id = $1 AND id = $2 AND lease_id = $3 AND state = 'RUNNING'
     RETURNING error_code AS code, error_message AS message`,
    [tenantId, runId, run.leaseId, JSON.stringify(gaps), now],
    { code: "text", message: "text" },
  );
  if (!ended) throw new RunLostError("the run was taken over or cancelled before it ended");
  await enqueueJob(scope, SYNC_RUN_ENDED, { tenantId, runId }, 0, isLate ? "LATE" : "FIRST");
  await notify(scope, PROGRESS_CHANGED);
  const { code, message } = ended;
  return code === null || message === null ? null : { code, message };
}

/** @throws RunLostError where the run is no longer this worker's */
export async function setStepState(
  scope: TenantScope,
  { runId, leaseId }: ClaimedRun,
  resource: SyncResource,
  state: SyncState,
  { expected = null, updatedSince = null }: { expected?: number | null; updatedSince?: Date | null } = {},
): Promise<void> {
  const { tenantId, rows } = scope;
  const set = await rows(
    // Held, so that a step of a run that is being cancelled at this moment is not set after it.
    `WITH held AS MATERIALIZED (
       SELECT r.id FROM sync_run r WHERE r.tenant_id = $1 AND r.id = $2 AND r.lease_id = $6 AND r.state = 'RUNNING' FOR SHARE)
     UPDATE sync_step s SET state = $4, expected = CASE WHEN fetched > 0 THEN least(expected, $5) ELSE coalesce($5, expected) END,
       updated_since = coalesce(updated_since, $7)
     FROM held WHERE s.tenant_id = $1 AND s.run_id = held.id AND s.resource = $3
     RETURNING 1 AS set`,
    [tenantId, runId, resource, state, expected, leaseId, updatedSince],
  );
  if (set.length === 0) throw new RunLostError("the run was taken over or cancelled");
  await notify(scope, PROGRESS_CHANGED);
}

/** What a commit adds to its step. */
export interface StepChange {
  requests: number;
  fetched: number;
  written: number;
  unchanged: number;
  removed: number;
  rejected: number;
}

/** A commit of something that the CRM was not asked for. */
export const NO_CHANGE: StepChange = { requests: 0, fetched: 0, written: 0, unchanged: 0, removed: 0, rejected: 0 };

/** SQL: a CTE that adds a commit's counts to its step; `countsParameters` are its $1 to $9. */
export const COUNTED = `counted AS (
    UPDATE sync_step SET requests = requests + $4, fetched = fetched + $5, written = written + $6,
      unchanged = unchanged + $7, removed = removed + $8, rejected = rejected + $9
    WHERE tenant_id = $1 AND run_id = $2 AND resource = $3)`;

export function countsParameters({ tenantId, runId }: ClaimedRun, resource: SyncResource, change: StepChange) {
  const { requests, fetched, written, unchanged, removed, rejected } = change;
  return [tenantId, runId, resource, requests, fetched, written, unchanged, removed, rejected];
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
