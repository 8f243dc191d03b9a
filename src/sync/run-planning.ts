import { randomUUID } from "node:crypto";
import { Any } from "typeorm";
import type { TenantScope } from "../database/database";
import { notify, PROGRESS_CHANGED } from "../database/notifications";
import { SYNC_RESOURCES, type SyncKind, SyncRunRow, type SyncState } from "../entities/sync-run";
import { SyncStepRow } from "../entities/sync-step";
import { planRun, type RunFacts, type RunPlan } from "./plan";
import { enqueueSync } from "./run-store";

/**
 * Plans and enqueues a run with its steps and its job, all in the caller's transaction, which holds the connection's
 * lock; one run at a time is held by the database besides. @returns the run's id
 */
export async function enqueueRun(scope: TenantScope, copyId: number, asked: SyncKind, now: Date): Promise<string> {
  const [lastEnded, lastSuccess] = await Promise.all([
    readFacts(scope, copyId, ["SUCCEEDED", "FAILED"]),
    readFacts(scope, copyId, ["SUCCEEDED"]),
  ]);
  const plan = planRun(asked, lastEnded, lastSuccess, now);
  const runId = randomUUID();
  await insertRun(scope, copyId, runId, plan, now);
  await insertSteps(scope, copyId, runId, plan);
  await enqueueSync(scope, runId);
  await notify(scope, PROGRESS_CHANGED);
  return runId;
}

async function readFacts(
  { tenantId, typed }: TenantScope,
  copyId: number,
  states: SyncState[],
): Promise<RunFacts | null> {
  const where = { tenantId, copyId, state: Any(states) };
  const run = await typed((orm) => orm.findOne(SyncRunRow, { where, order: { queuedAt: "DESC" } }));
  return run && { ...run, steps: await typed((orm) => orm.findBy(SyncStepRow, { tenantId, runId: run.id })) };
}

async function insertRun(
  { tenantId, rows }: TenantScope,
  copyId: number,
  runId: string,
  plan: RunPlan,
  now: Date,
): Promise<void> {
  await rows(
    `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at, updated_since, crm_time_at_start)
     VALUES ($1, $2, $3, $4, 'QUEUED', $5, $6, $7)`,
    [tenantId, runId, copyId, plan.kind, now, plan.updatedSince, plan.crmTimeAtStart],
  );
}

/** The last successful run's counts of the same kind are the best estimate of what is to come. */
async function insertSteps(
  { tenantId, rows }: TenantScope,
  copyId: number,
  runId: string,
  plan: RunPlan,
): Promise<void> {
  const steps = SYNC_RESOURCES.map((resource) => {
    const { state = "QUEUED", cursor = null, walk = 1 } = plan.steps.get(resource) ?? {};
    return { resource, state, cursor, walk };
  });
  await rows(
    `INSERT INTO sync_step (tenant_id, run_id, resource, state, cursor, walk, expected)
     SELECT $1, $2, planned.resource, planned.state, planned.cursor, planned.walk,
       (SELECT s.fetched FROM sync_run r JOIN sync_step s ON s.tenant_id = $1 AND s.run_id = r.id
        WHERE r.tenant_id = $1 AND r.copy_id = $3 AND r.kind = $4 AND r.state = 'SUCCEEDED' AND s.resource = planned.resource
        ORDER BY r.queued_at DESC LIMIT 1)
     FROM jsonb_to_recordset($5::jsonb) AS planned (resource text, state text, cursor text, walk integer)
     ON CONFLICT DO NOTHING`,
    [tenantId, runId, copyId, plan.kind, JSON.stringify(steps)],
  );
}
