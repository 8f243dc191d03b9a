import { Any } from "typeorm";
import type { Actor } from "../auth/actor";
import { recordAudit } from "../auth/audit";
import { connectedCopyId, lockConnection } from "../connections/connection-store";
import { NEEDS_REAUTHORIZATION, NOT_CONNECTED } from "../connections/refusals";
import type { Database, TenantScope } from "../database/database";
import { enqueueJob, hasLiveJob } from "../database/jobs";
import { ConnectionRow } from "../entities/connection";
import type { SyncKind } from "../entities/sync-run";
import { SyncRunRow } from "../entities/sync-run";
import { eachAlone } from "../platform/chores";
import { type Clock, MINUTE_MS, SECOND_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import { accepted, type Outcome, refused } from "../platform/outcome";
import { enqueueRun, enqueueSync, type RunRef, SYNC_JOB } from "./runs";

export const SYNC_DUE_JOB = "sync_due";
/** A job that was taken so long ago, of something that has not begun, has gone with the worker that took it. */
const UNCLAIMED_MS = MINUTE_MS;
const ORPHANS = `
  WITH late AS MATERIALIZED (
    SELECT tenant_id, id, state FROM sync_run
    WHERE (state = 'RUNNING' AND lease_until < $1) OR (state = 'QUEUED' AND queued_at < $2)
  )
  SELECT tenant_id AS "tenantId", id AS "runId" FROM late
  WHERE state = 'RUNNING' OR NOT ${hasLiveJob(SYNC_JOB, "late.id", "$2")}`;
const MISSED = `
  WITH due AS MATERIALIZED (
    SELECT tenant_id FROM connection c WHERE state = 'CONNECTED' AND next_sync_at < $1
      AND NOT EXISTS (SELECT 1 FROM sync_run r WHERE r.tenant_id = c.tenant_id AND r.state IN ('QUEUED', 'RUNNING'))
  )
  SELECT tenant_id AS "tenantId" FROM due WHERE NOT ${hasLiveJob(SYNC_DUE_JOB, "due.tenant_id", "$1")}`;
/** How often each worker looks for runs whose worker has died; with the lease this bounds the takeover. */
export const SWEEP_MS = 10 * SECOND_MS;

export interface ScheduleParts {
  database: Database;
  clock: Clock;
  logger: Logger;
  intervalMs: number;
  reconcileIntervalMs: number;
  /** 0 to 1, for the jitter. */
  chance?: () => number;
}

export type SyncRefusal = "NOT_CONNECTED" | "NEEDS_REAUTHORIZATION" | "SYNC_ALREADY_RUNNING";

/** When runs are made: by interval, by request, and again where a worker died with one. */
export class Schedule {
  constructor(private readonly parts: ScheduleParts) {}

  /** Makes a run now. `actor` is who asked for it, where anyone did. @returns its id, or why there is none */
  request(tenantId: number, kind: SyncKind, actor: Actor | null = null): Promise<Outcome<string, SyncRefusal>> {
    return this.parts.database.tenant(tenantId).transaction(async (scope): Promise<Outcome<string, SyncRefusal>> => {
      const now = this.parts.clock();
      const { state, copyId } = await lockConnection(scope);
      if (state === "NEEDS_REAUTHORIZATION") return NEEDS_REAUTHORIZATION;
      if (copyId === null) return NOT_CONNECTED;
      if (await hasOpenRun(scope)) return refused("SYNC_ALREADY_RUNNING", "A sync is queued or running already.");
      const runId = await enqueueRun(scope, copyId, kind, now);
      const event = { action: "SYNC_REQUESTED", actor, at: now, code: kind, subject: runId } as const;
      if (actor) await recordAudit(scope, this.parts.logger, event);
      return accepted(runId);
    });
  }

  /** The job of the schedule: a run where none is open; the next one is planned when that ends. */
  async due(tenantId: number): Promise<void> {
    const { database, clock, reconcileIntervalMs } = this.parts;
    const scope = database.tenant(tenantId);
    const copyId = await connectedCopyId(scope);
    if (copyId === null) return;
    const kind = dueKind(await lastWholeRead(scope, copyId), clock(), reconcileIntervalMs);
    const made = await this.request(tenantId, kind);
    if (!made.ok) this.parts.logger.info({ tenantId, code: made.code }, "a scheduled sync was left out");
  }

  /** Plans the next run, in the transaction that ends one. A later plan replaces an earlier one. */
  async planNext(scope: TenantScope, copyId: number): Promise<void> {
    const { clock, intervalMs, chance = Math.random } = this.parts;
    const at = nextRunAt(clock(), intervalMs, chance());
    const { tenantId } = scope;
    const connected = { tenantId, copyId, state: "CONNECTED" as const };
    const planned = await scope.typed((orm) => orm.update(ConnectionRow, connected, { nextSyncAt: at }));
    if (planned.affected === 0 || at === null) return;
    await enqueueJob(scope, { task: SYNC_DUE_JOB, subject: tenantId, payload: { tenantId }, runAt: at });
  }

  /** Finds what died with a worker: a run, whose lease decides who may go on, or the job of the schedule itself. */
  async sweep(): Promise<void> {
    const { database, clock, logger } = this.parts;
    const now = clock();
    const since = new Date(now.getTime() - UNCLAIMED_MS);
    const takeOver = ({ tenantId, runId }: RunRef) => {
      logger.warn({ tenantId, runId }, "a run has lost its worker and is taken over");
      return enqueueSync(database.tenant(tenantId), runId);
    };
    const makeUpFor = ({ tenantId }: { tenantId: number }) => {
      logger.warn({ tenantId }, "a scheduled sync was missed and is made up for");
      return this.due(tenantId);
    };
    await eachAlone(
      await database.acrossTenants<RunRef>(ORPHANS, [now, since], { tenantId: "number", runId: "text" }),
      takeOver,
      logger,
    );
    await eachAlone(
      await database.acrossTenants<{ tenantId: number }>(MISSED, [since], { tenantId: "number" }),
      makeUpFor,
      logger,
    );
  }
}

function hasOpenRun({ tenantId, typed }: TenantScope): Promise<boolean> {
  return typed((orm) => orm.existsBy(SyncRunRow, { tenantId, state: Any(["QUEUED", "RUNNING"]) }));
}

/** When everything was read for the last time. */
async function lastWholeRead({ tenantId, rows }: TenantScope, copyId: number): Promise<Date | null> {
  const [run] = await rows<{ at: Date | null }>(
    `SELECT max(queued_at) AS at FROM sync_run
     WHERE tenant_id = $1 AND copy_id = $2 AND state = 'SUCCEEDED' AND kind IN ('FULL', 'RECONCILE')`,
    [tenantId, copyId],
    { at: "instant" },
  );
  return run?.at ?? null;
}

/** Runs of many tenants that were connected together drift apart by this share of the interval, to either side. */
const JITTER = 0.1;

/** @param chance 0 to 1. @returns null where runs are only made by request */
export function nextRunAt(now: Date, intervalMs: number, chance: number): Date | null {
  if (intervalMs === 0) return null;
  return new Date(now.getTime() + intervalMs * (1 + JITTER * (2 * chance - 1)));
}

/** What the schedule runs: mostly what changed, and everything once in a while, to find what is gone. */
export function dueKind(lastWhole: Date | null, now: Date, reconcileIntervalMs: number): SyncKind {
  const isDue =
    reconcileIntervalMs > 0 && lastWhole !== null && now.getTime() - lastWhole.getTime() >= reconcileIntervalMs;
  return isDue ? "RECONCILE" : "INCREMENTAL";
}
