import type { SyncResource, SyncState } from "../entities/sync-run";

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

/** 0 to 1. It never falls while a run goes on, because what is fetched and what is done only grow. */
export function progressOf(steps: readonly StepProgress[]): number {
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
