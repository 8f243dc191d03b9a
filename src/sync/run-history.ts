import type { Database, TenantScope } from "../database/database";
import { type ListOrder, type Page, type PageRequest, readPage } from "../database/keyset";
import { type Ids, oneByOne, rowsById, rowsOf } from "../database/rows";
import { forgetOld } from "../database/upsert";
import { SYNC_STATES, type SyncResource, SyncRunRow, type SyncState, SyncStepRow } from "../entities/sync-run";
import { DAY_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";

export const NEWEST_RUN: ListOrder = {
  direction: "DESC",
  keys: [
    { sql: "t.queued_at", type: "instant" },
    { sql: "t.id", type: "uuid" },
  ],
};

export function readRuns(scope: TenantScope, page: PageRequest): Promise<Page<SyncRunRow>> {
  return readPage(scope, SyncRunRow, { where: [], parameters: [] }, page);
}

/** The newest run: the open one, else the one that ended last; null before the first. */
export async function readLatestRun(scope: TenantScope): Promise<SyncRunRow | null> {
  const { rows } = await readRuns(scope, { order: NEWEST_RUN, first: 1, after: null });
  return rows[0] ?? null;
}

export function readRunsById({ tenantId, entities }: TenantScope, ids: readonly string[]): Promise<SyncRunRow[]> {
  return entities(SyncRunRow, `SELECT * FROM ${rowsById("sync_run", oneByOne("$2", ids))} t`, [tenantId, ids]);
}

export interface RunStatus {
  current: SyncRunRow | null;
  last: SyncRunRow | null;
  lastSuccessAt: Date | null;
}

/**
 * Of one copy: the open run, the last ended one, and when one last succeeded; one statement, so of one moment. The newest of
 * each state is looked up by itself: runs may have failed for months.
 */
export async function readRunStatus({ tenantId, entities }: TenantScope, copyId: number): Promise<RunStatus> {
  const newest = await entities(
    SyncRunRow,
    `SELECT r.* FROM unnest($3::text[]) AS one (state) CROSS JOIN LATERAL (
       SELECT * FROM ${rowsOf("sync_run", "state", "one.state", "t.state DESC, t.queued_at DESC")} t LIMIT 1) r
     ORDER BY r.queued_at DESC`,
    [tenantId, copyId, SYNC_STATES],
  );
  return {
    current: newest.find(isOpen) ?? null,
    last: newest.find((run) => !isOpen(run)) ?? null,
    lastSuccessAt: newest.find(({ state }) => state === "SUCCEEDED")?.finishedAt ?? null,
  };
}

const isOpen = ({ state }: SyncRunRow) => state === "QUEUED" || state === "RUNNING";

export function readSteps({ tenantId, typed }: TenantScope, runId: string): Promise<SyncStepRow[]> {
  return typed((orm) => orm.findBy(SyncStepRow, { tenantId, runId }));
}

export function readStepsOf({ tenantId, entities }: TenantScope, runIds: Ids<string>): Promise<SyncStepRow[]> {
  const sql = "SELECT * FROM sync_step WHERE tenant_id = $1 AND run_id = ANY ($2)";
  return entities(SyncStepRow, sql, [tenantId, runIds]);
}

export interface StepProgress {
  resource: SyncResource;
  state: SyncState;
  fetched: number;
  /** How many are to come; null where nothing is known of it. */
  expected: number | null;
}

/** About how long each step takes beside the others: participants cost a request for each deal. */
const WEIGHTS: Record<SyncResource, number> = {
  USERS: 1,
  PIPELINES: 1,
  STAGES: 1,
  ORGANIZATIONS: 8,
  PERSONS: 16,
  DEALS: 12,
  DEAL_PARTICIPANTS: 40,
  ACTIVITIES: 14,
  NOTES: 7,
};
const TOTAL = Object.values(WEIGHTS).reduce((sum, weight) => sum + weight, 0);

/** A running step is never shown as done, and without a known total it approaches the end by halves. */
const RUNNING_AT_MOST = 0.95;
const HALF_WAY_WITHOUT_TOTAL = 2_000;

/**
 * 0 to 1. It never falls while a run goes on, because what is fetched and what is done only grow. Most runs read not all lists, and some
 * come to one more on their way: beside all of them, not those of the run, until it is done.
 */
export function progressOf(run: Pick<SyncRunRow, "state">, steps: readonly StepProgress[]): number {
  if (run.state === "SUCCEEDED") return 1;
  const done = steps.reduce((sum, step) => sum + WEIGHTS[step.resource] * fractionOf(step), 0);
  return Math.min(1, done / TOTAL);
}

function fractionOf({ state, fetched, expected }: StepProgress): number {
  if (state === "SUCCEEDED" || state === "FAILED") return 1;
  // A cancelled step that had begun keeps what it had: a run's progress does not fall when the run ends.
  if (state === "QUEUED" || fetched === 0) return 0;
  const fraction = expected ? fetched / expected : fetched / (fetched + HALF_WAY_WITHOUT_TOTAL);
  return Math.min(RUNNING_AT_MOST, fraction);
}

/** With a sync each quarter of an hour some 9,000 runs, and nine times as many steps. */
export const RUNS_KEPT_MS = 90 * DAY_MS;
/** SQL: it has ended, and is not the last that succeeded of the live copy: however long ago that was, it says how old that is. */
const mayGo = (tenant: string) => `t.finished_at IS NOT NULL AND (t.state <> 'SUCCEEDED'
  OR NOT EXISTS (SELECT 1 FROM synced_copy c WHERE c.tenant_id = ${tenant} AND c.id = t.copy_id AND c.state = 'LIVE')
  OR EXISTS (SELECT 1 FROM sync_run later
    WHERE later.tenant_id = ${tenant} AND later.copy_id = t.copy_id AND later.state = 'SUCCEEDED' AND later.queued_at > t.queued_at))`;

/** Deletes runs that are older than they are kept, with their steps. */
export const sweepRuns = (database: Database, logger: Logger, now: Date): Promise<void> =>
  forgetOld(database, { table: "sync_run", instant: "queued_at", keptMs: RUNS_KEPT_MS, which: mayGo }, logger, now);

/** What the steps of a run have counted. */
export function totals(
  steps: readonly SyncStepRow[],
): Record<"requests" | "fetched" | "written" | "removed" | "rejected", number> {
  const sum = (of: (step: SyncStepRow) => number) => steps.reduce((total, step) => total + of(step), 0);
  return {
    requests: sum(({ requests }) => requests),
    fetched: sum(({ fetched }) => fetched),
    written: sum(({ written }) => written),
    removed: sum(({ removed }) => removed),
    rejected: sum(({ rejected }) => rejected),
  };
}

export interface QueueState {
  /** Jobs that are due and that no living worker has taken, and how long the first waits; those given up are not due any more. */
  waiting: number;
  oldestSeconds: number;
  /** For how long the first of those that living workers have in hand has been due. */
  inHandSeconds: number;
  /** Jobs that have failed as often as they may. */
  givenUp: number;
}

export async function readQueueState(database: Database): Promise<QueueState> {
  const shape = { waiting: "number", oldestSeconds: "number", inHandSeconds: "number", givenUp: "number" } as const;
  const [state] = await database.acrossTenants<QueueState>(QUEUE_STATE, [], shape);
  return state ?? { waiting: 0, oldestSeconds: 0, inHandSeconds: 0, givenUp: 0 };
}

/** Workers say again and again what they have in hand, and free what nobody has said that of for five minutes: with none left, it waits. */
const QUEUE_STATE = `
  SELECT count(*) FILTER (WHERE waits)::int AS waiting,
    coalesce(extract(epoch FROM now() - min(run_at) FILTER (WHERE waits)), 0)::float8 AS "oldestSeconds",
    coalesce(extract(epoch FROM now() - min(run_at) FILTER (WHERE held)), 0)::float8 AS "inHandSeconds",
    count(*) FILTER (WHERE locked_at IS NULL AND attempts >= max_attempts AND key IS NOT NULL)::int AS "givenUp"
  FROM (SELECT j.*, held, run_at <= now() AND NOT held AND (attempts < max_attempts OR locked_at IS NOT NULL) AS waits
    FROM graphile_worker.jobs j, LATERAL (SELECT coalesce(locked_at > now() - interval '6 minutes', false) AS held) h) j`;
