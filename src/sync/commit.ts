import type { PinnedTokens } from "../connections/access-tokens";
import type { Budget, HeldReservation } from "../connections/budget";
import type { Purpose } from "../connections/budget-rules";
import { connectedCopyId, NEEDS_REAUTHORIZATION, NeedsReauthorizationError } from "../connections/connection";
import { holdCopyToJudge } from "../connections/copies";
import type { KeepOut } from "../connections/keep-out";
import { CrmApi } from "../crm/api";
import { Pacer } from "../crm/calls";
import type { CrmHttp } from "../crm/http";
import { notify, PROGRESS_CHANGED } from "../database/between-processes";
import type { CopyScope, Database, TenantScope } from "../database/database";
import type { SyncResource } from "../entities/sync-run";
import { type Clock, MINUTE_MS, SECOND_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { RunLostError } from "./failures";
import type { Judging, Settling } from "./lists";
import {
  type ClaimedRun,
  COUNTED,
  countsParameters,
  extendLease,
  type Held,
  requireLease,
  type StepChange,
} from "./runs";
import type { Written } from "./writers";

/** Whoever watches a run hears of it so often at most, its beginnings and ends aside. */
const TOLD_EVERY_MS = 250;

/** A run gives its place to waiting ones after this, and goes on from its checkpoint when it is its turn again. */
const TURN_MS = 15 * SECOND_MS;
/** Where runs are only made by request: how old a list may grow beside a long pass. */
const STALE_AFTER_MS = 15 * MINUTE_MS;

/** What a run's calls are made for. */
export type SyncPurpose = Exclude<Purpose, "WRITES">;

/** What the steps of a run share. */
export interface RunContext {
  readonly run: ClaimedRun;
  readonly copy: CopyScope;
  /** The calls to the CRM, by what they are paid from. */
  readonly apis: Record<SyncPurpose, CrmApi>;
  /** Tokens of the CRM that may be spent on a purpose now. */
  readonly left: (purpose: Purpose) => Promise<number>;
  /** Asks the CRM whether the user who authorized is still active, and the one whose token it is. */
  readonly verify: (purpose?: SyncPurpose) => Promise<void>;
  readonly clock: Clock;
  /** Names the run in every line. */
  readonly logger: Logger;
  readonly concurrency: number;
  readonly metrics?: Metrics;
  readonly settling: Settling;
  readonly keepOut: KeepOut;
  readonly judging: Judging;
  /** A list whose last read is older is read again beside a long pass. */
  readonly staleAfterMs: number;
  /** The process is to stop: reads in hand are called off. */
  isStopped(): boolean;
  /** The run's turn is over, or the process is to stop: nothing more is asked for, and what was is still committed. */
  mustPause(): boolean;
  /** It took as long as two turns: what follows it waits with others like it. */
  isLate(): boolean;
}

/** What all runs of a process have in common. */
type Shared = Pick<RunContext, "clock" | "concurrency" | "metrics" | "settling" | "keepOut" | "judging">;

export interface ContextParts extends Shared {
  database: Database;
  http: CrmHttp;
  crmBaseUrl: string;
  /** How often the schedule runs; 0: only by request. */
  intervalMs: number;
  budget: Budget;
  tokensOf(tenantId: number, copyId: number): PinnedTokens;
  logger: Logger;
}

export type Reservations = Record<SyncPurpose, HeldReservation>;

/** What a run's calls are paid from. */
export const reservationsOf = (budget: Budget, { tenantId, copyId }: ClaimedRun): Reservations =>
  ofEach((purpose) => budget.reservation(tenantId, copyId, purpose));

const ofEach = <T>(make: (purpose: SyncPurpose) => T): Record<SyncPurpose, T> => ({
  FIRST_LISTS: make("FIRST_LISTS"),
  LISTS: make("LISTS"),
  PARTICIPANTS: make("PARTICIPANTS"),
  DEALS_OF_MEETINGS: make("DEALS_OF_MEETINGS"),
  MEETINGS: make("MEETINGS"),
});

/** What the steps of a turn share. @param askedAt when its worker asked for it */
export function contextOf(
  parts: ContextParts,
  run: ClaimedRun,
  reservations: Reservations,
  askedAt: Date,
  stop: AbortSignal,
): RunContext {
  const { database, clock, concurrency, metrics, http, crmBaseUrl, intervalMs, budget } = parts;
  const { settling, keepOut, judging } = parts;
  const { tenantId, runId, copyId, kind } = run;
  const tokens = parts.tokensOf(tenantId, copyId);
  const mayBegin = () => requireLease(run, clock());
  const calls = { http, baseUrl: crmBaseUrl, tokens, pacer: new Pacer(clock), mayBegin, stop };
  return {
    ...{ run, clock, concurrency, metrics, settling, keepOut, judging },
    copy: { ...database.tenant(tenantId), copyId },
    verify: (purpose) => tokens.verify({ mayBegin, stop, ...(purpose && { reservation: reservations[purpose] }) }),
    apis: ofEach((purpose) => new CrmApi({ ...calls, reservation: reservations[purpose] })),
    left: (purpose) => budget.left(tenantId, copyId, purpose, clock()),
    logger: parts.logger.child({ tenantId, runId, kind }),
    staleAfterMs: intervalMs || STALE_AFTER_MS,
    isStopped: () => stop.aborted,
    ...turnFrom(askedAt, clock, stop),
  };
}

/** By the wall clock, and by one that nobody sets. From behind the first question on, which alone may take as long: each turn is to get on. */
export function turnFrom(begins: Date, clock: Clock, stop: AbortSignal): Pick<RunContext, "mustPause" | "isLate"> {
  const [ends, latest] = [begins.getTime() + TURN_MS, performance.now() + TURN_MS];
  const isOver = (sinceMs: number) => clock().getTime() >= ends + sinceMs || performance.now() >= latest + sinceMs;
  return { mustPause: () => stop.aborted || isOver(0), isLate: () => isOver(TURN_MS) };
}

/** Of a run: what its transactions need. */
export type InHand = Pick<RunContext, "copy" | "run" | "clock">;

/** A copy in a transaction that holds its run. */
export interface HeldCopy extends CopyScope, Held {}

/**
 * A transaction of a run (decision 0001): the copy must still be live and the run still ours, or nothing is written.
 * @throws RunLostError, NeedsReauthorizationError
 */
export function inRun<T>({ copy, run, clock }: InHand, work: (copy: HeldCopy) => Promise<T>): Promise<T> {
  return copy.transaction(async (scope) => {
    const held = await holdRun(scope, run, clock());
    const done = await work({ ...scope, copyId: run.copyId, ...held });
    await tell(scope, run);
    return done;
  });
}

/**
 * Until the transaction ends, the copy stays live, its authorization holds and the run is ours.
 * @throws RunLostError or NeedsReauthorizationError where it is not so
 */
export async function holdRun(scope: TenantScope, run: ClaimedRun, now: Date): Promise<Held> {
  // Disconnecting retires the copy: it waits for the page in hand at most, and no later page is written.
  if (!(await holdCopyToJudge(scope, run.copyId))) throw new RunLostError("the copy is no longer live");
  // Whoever ends an authorization waits for the copy as well. A statement of its own, after that lock, sees what they did.
  const held = await extendLease(scope, run, now);
  if (held) return held;
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

/** SQL: adds a commit's counts to its step; where the run has none for its list, whoever matches again must hear of it all the same. */
const COUNT = `WITH ${COUNTED}
    UPDATE sync_run SET written_beside = written_beside + $6, removed_beside = removed_beside + $8
    WHERE tenant_id = $1 AND id = $2
      AND NOT EXISTS (SELECT 1 FROM sync_step s WHERE s.tenant_id = $1 AND s.run_id = $2 AND s.resource = $3)`;

/** Commits one piece of a step: its rows and its counts together. @throws RunLostError, NeedsReauthorizationError */
export async function commitPiece(
  context: RunContext,
  resource: SyncResource,
  write: (copy: HeldCopy) => Promise<StepChange>,
): Promise<void> {
  const change = await inRun(context, async (copy) => {
    const written = await write(copy);
    await copy.keyed(COUNT, countsParameters(context.run, resource, written));
    return written;
  });
  count(context, resource, change);
}

/**
 * Changes records, and judges the deals anew that hang on what was changed, or did before it. Most first syncs have no matched
 * deal, and nothing to judge; days of stages count for those that will be.
 * @param leaving records that may be removed
 * @param change says which it has removed, and what it has touched
 */
export async function judged<T extends Pick<Written, "touched" | "left" | "gone">>(
  { judging }: RunContext,
  copy: HeldCopy,
  resource: SyncResource,
  leaving: readonly number[],
  change: () => Promise<T>,
): Promise<T> {
  if (!copy.hasMatchedDeals && resource !== "STAGES") return change();
  const before = leaving.length > 0 ? await judging.hangingOn(copy, resource, leaving) : [];
  const done = await change();
  const gone = new Set(done.gone);
  const without = before.filter(({ id }) => gone.has(id)).map(({ dealId }) => dealId);
  await judging.judge(copy, resource, [...done.touched, ...gone], [...done.left, ...without]);
  return done;
}

export function count({ metrics }: RunContext, resource: SyncResource, change: StepChange): void {
  const { written, unchanged, removed, rejected } = change;
  for (const [outcome, number] of Object.entries({ written, unchanged, removed, rejected })) {
    metrics?.syncRecords.inc({ resource, outcome }, number);
  }
}
