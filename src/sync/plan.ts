import type { SyncErrorCode, SyncKind, SyncResource, SyncState } from "../entities/sync-run";
import { DAY_MS, MINUTE_MS, SECOND_MS } from "../platform/clock";

/** The CRM's index lags its writes by seconds (size unknown): a run begins so much before the last one began. */
const OVERLAP_MS = MINUTE_MS;
/** How long a failed run's checkpoints are worth going on from; a cursor's life is not documented. */
const CHECKPOINT_LIFE_MS = DAY_MS;
/** Runs of many tenants that were connected together drift apart by this share of the interval, to either side. */
const JITTER = 0.1;
/** Small lists without updated_since: read anew by every run, also by one that goes on from another. */
const ALWAYS_READ: ReadonlySet<SyncResource> = new Set(["USERS", "PIPELINES", "STAGES", "DEAL_PARTICIPANTS"]);

/** What is known of a copy's earlier runs when the next one is planned. */
export interface RunFacts {
  kind: SyncKind;
  state: SyncState;
  finishedAt: Date | null;
  updatedSince: Date | null;
  crmTimeAtStart: Date | null;
  errorCode: SyncErrorCode | null;
  steps: readonly {
    resource: SyncResource;
    state: SyncState;
    cursor: string | null;
    walk: number;
    /** Pages that this run read. */
    requests: number;
  }[];
}

export interface RunPlan {
  kind: SyncKind;
  updatedSince: Date | null;
  /** Kept from the run that this one goes on from: what that one read is only as new as its own start. */
  crmTimeAtStart: Date | null;
  /** Steps that are done already, or begin at a cursor; the others begin at the beginning. */
  steps: ReadonlyMap<SyncResource, { state: "QUEUED" | "SUCCEEDED"; cursor: string | null; walk: number }>;
}

/**
 * Plans the next run of a copy. Without a successful run before there is nothing to add to, so it is a full one. A
 * run that failed is gone on from its checkpoints (decision 0014), a rate limit included.
 */
export function planRun(asked: SyncKind, lastEnded: RunFacts | null, lastSuccess: RunFacts | null, now: Date): RunPlan {
  const since = lastSuccess?.crmTimeAtStart ? watermark(lastSuccess.crmTimeAtStart) : null;
  const kind = since === null ? "FULL" : asked;
  if (lastEnded && canGoOn(kind, lastEnded, now)) {
    const { updatedSince, crmTimeAtStart } = lastEnded;
    return { kind, updatedSince, crmTimeAtStart, steps: new Map(lastEnded.steps.flatMap(goOn)) };
  }
  return { kind, updatedSince: kind === "INCREMENTAL" ? since : null, crmTimeAtStart: null, steps: new Map() };
}

function canGoOn(kind: SyncKind, last: RunFacts, now: Date): boolean {
  const { state, kind: before, finishedAt, crmTimeAtStart } = last;
  const isRecent = (at: Date | null) => at !== null && now.getTime() - at.getTime() < CHECKPOINT_LIFE_MS;
  if (state !== "FAILED" || before !== kind || crmTimeAtStart === null || !isRecent(finishedAt)) return false;
  // Runs that go on from each other are each recent: a cursor that has gone bad would fail them for ever.
  return isRecent(crmTimeAtStart) || !isStuck(last);
}

/** It failed with the first page that it asked for at a checkpoint, and not for want of budget. */
function isStuck({ errorCode, steps }: RunFacts): boolean {
  const stoodStill = steps.some(
    ({ state, cursor, requests }) => state === "FAILED" && cursor !== null && requests === 0,
  );
  return stoodStill && errorCode !== "RATE_LIMITED";
}

type Step = RunFacts["steps"][number];

function goOn({
  resource,
  state,
  cursor,
  walk,
}: Step): [SyncResource, { state: "QUEUED" | "SUCCEEDED"; cursor: string | null; walk: number }][] {
  if (ALWAYS_READ.has(resource)) return [];
  if (state === "SUCCEEDED") return [[resource, { state, cursor: null, walk }]];
  return cursor === null ? [] : [[resource, { state: "QUEUED", cursor, walk }]];
}

/** `updated_since` for what changed since `crmTime`, on the CRM's clock, in whole seconds: fractions are refused. */
function watermark(crmTime: Date): Date {
  return new Date(Math.floor((crmTime.getTime() - OVERLAP_MS) / SECOND_MS) * SECOND_MS);
}

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
