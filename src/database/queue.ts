import type { Database, TenantScope } from "./database";

/** A job's work and the ids that it needs; never a secret or a record. */
export interface JobRequest {
  task: string;
  /** With the task it names the job: enqueued again, it is the same job. */
  subject: string | number;
  payload: object;
  /** null or absent: at once. */
  runAt?: Date | null;
}

/** Puts a job into the queue, in the caller's transaction; one of the same task and subject that waits is replaced. */
export async function enqueueJob(
  { rows }: TenantScope,
  { task, subject, payload, runAt = null }: JobRequest,
): Promise<void> {
  await rows("SELECT graphile_worker.add_job($1, $2::json, run_at => $3, job_key => $4)", [
    task,
    JSON.stringify(payload),
    runAt,
    `${task}:${subject}`,
  ]);
}

/**
 * SQL: whether the task's job for `subject` waits, or was taken later than `since`. One that was taken before that has
 * gone with the worker that took it: the queue itself would wait four hours. Both are expressions of the statement, whose
 * tenants' rows stand in a CTE AS MATERIALIZED: a cluster joins no table of its shards with the queue.
 */
export const hasLiveJob = (task: string, subject: string, since: string) =>
  `EXISTS (
    SELECT 1 FROM graphile_worker.jobs j
    WHERE j.key = '${task}:' || ${subject} AND (j.locked_at IS NULL OR j.locked_at > ${since}))`;

export interface QueueState {
  /** Jobs that are due and that no worker has taken; those that were given up are not due any more. */
  waiting: number;
  /** How long the one that is due longest has waited. */
  oldestSeconds: number;
}

export async function readQueueState(database: Database): Promise<QueueState> {
  const [state] = await database.acrossTenants<QueueState>(
    `SELECT count(*)::int AS waiting, coalesce(extract(epoch FROM now() - min(run_at)), 0)::float8 AS "oldestSeconds"
     FROM graphile_worker.jobs WHERE run_at <= now() AND locked_at IS NULL AND attempts < max_attempts`,
  );
  return state ?? { waiting: 0, oldestSeconds: 0 };
}
