import type { PinnedTokens } from "../connections/access-tokens";
import { connectedCopyId, holdLiveCopy } from "../connections/connection-store";
import { NeedsReauthorizationError } from "../connections/errors";
import { NEEDS_REAUTHORIZATION } from "../connections/refusals";
import type { CrmApi } from "../crm/api";
import type { CopyScope, Database, TenantScope } from "../database/database";
import { notify, PROGRESS_CHANGED } from "../database/notifications";
import type { SyncResource } from "../entities/sync-run";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { RunLostError } from "./failures";
import { type ClaimedRun, extendLease } from "./runs";

/** Whoever watches a run hears of it so often at most, its beginnings and ends aside. */
const TOLD_EVERY_MS = 250;

/** What the steps of a run share. */
export interface RunContext {
  readonly run: ClaimedRun;
  /** The calls to the CRM, by what they are paid from. */
  readonly apis: Record<"firstLists" | "lists" | "participants" | "meetings", CrmApi>;
  readonly tokens: PinnedTokens;
  readonly database: Database;
  readonly clock: Clock;
  /** Names the run in every line. */
  readonly logger: Logger;
  readonly concurrency: number;
  readonly metrics?: Metrics;
  /** A list whose last read is older is read again beside a long pass. */
  readonly staleAfterMs: number;
  /** The run's turn is over, or the process is to stop: nothing more is asked for, and what was is still committed. */
  mustPause(): boolean;
}

export const copyOf = ({ database, run }: Pick<RunContext, "database" | "run">): CopyScope => ({
  ...database.tenant(run.tenantId),
  copyId: run.copyId,
});

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

/**
 * A transaction of a run (decision 0002): the copy must still be live and the run still ours, or nothing is written.
 * @throws RunLostError, NeedsReauthorizationError
 */
export function inRun<T>(
  { database, run, clock }: Pick<RunContext, "database" | "run" | "clock">,
  work: (copy: CopyScope) => Promise<T>,
): Promise<T> {
  return database.tenant(run.tenantId).transaction(async (scope) => {
    await holdRun(scope, run, clock());
    const done = await work({ ...scope, copyId: run.copyId });
    await tell(scope, run);
    return done;
  });
}

/**
 * Until the transaction ends, the copy stays live, its authorization holds and the run is ours.
 * @throws RunLostError or NeedsReauthorizationError where it is not so
 */
export async function holdRun(scope: TenantScope, run: ClaimedRun, now: Date): Promise<void> {
  // Disconnecting retires the copy: it waits for the page in hand at most, and no later page is written.
  if (!(await holdLiveCopy(scope, run.copyId))) throw new RunLostError("the copy is no longer live");
  // Whoever ends an authorization waits for the copy as well. A statement of its own, after that lock, sees what they did.
  if (await extendLease(scope, run, now)) return;
  if ((await connectedCopyId(scope)) === run.copyId) throw new RunLostError("the run was taken over or cancelled");
  throw new NeedsReauthorizationError(NEEDS_REAUTHORIZATION.message);
}

/** A row is the truth, and who watches reads it: one word for many pages is enough. */
async function tell(scope: TenantScope, run: ClaimedRun): Promise<void> {
  const now = performance.now();
  if (now - run.toldAt < TOLD_EVERY_MS) return;
  run.toldAt = now;
  await notify(scope, PROGRESS_CHANGED);
}

/** Commits one piece of a step: its rows and its counts together. @throws RunLostError, NeedsReauthorizationError */
export async function commitPiece(
  context: RunContext,
  resource: SyncResource,
  write: (copy: CopyScope) => Promise<StepChange>,
): Promise<StepChange> {
  const change = await inRun(context, async (copy) => {
    const written = await write(copy);
    await copy.rows(`WITH ${countsOf(1)} SELECT 1`, countsParameters(context.run, resource, written));
    return written;
  });
  count(context, resource, change);
  return change;
}

/** SQL: a CTE that adds a commit's counts to its step. @param first the number of the first of its nine parameters */
export function countsOf(first: number): string {
  const [tenant, run, resource, ...counts] = Array.from({ length: 9 }, (_, index) => `$${first + index}`);
  const [requests, fetched, written, unchanged, removed, rejected] = counts;
  return `counted AS (
    UPDATE sync_step SET requests = requests + ${requests}, fetched = fetched + ${fetched}, written = written + ${written},
      unchanged = unchanged + ${unchanged}, removed = removed + ${removed}, rejected = rejected + ${rejected}
    WHERE tenant_id = ${tenant} AND run_id = ${run} AND resource = ${resource})`;
}

export function countsParameters({ tenantId, runId }: ClaimedRun, resource: SyncResource, change: StepChange) {
  const { requests, fetched, written, unchanged, removed, rejected } = change;
  return [tenantId, runId, resource, requests, fetched, written, unchanged, removed, rejected];
}

export function count({ metrics }: RunContext, resource: SyncResource, change: StepChange): void {
  const { written, unchanged, removed, rejected } = change;
  for (const [outcome, number] of Object.entries({ written, unchanged, removed, rejected })) {
    metrics?.syncRecords.inc({ resource, outcome }, number);
  }
}
