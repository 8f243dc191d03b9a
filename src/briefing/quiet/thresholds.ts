import type { QuietReasonCode } from "./facts";

/**
 * Whole days of 24 hours, the one source for the rules in TypeScript and in SQL (`silence-sql.ts`). A stage's own
 * days until rotten replace that of NO_RECENT_ACTIVITY and no other (decision 0023).
 */
export const THRESHOLD_DAYS = {
  NO_RECENT_ACTIVITY: 14,
  GHOSTED: 7,
  NEVER_REPLIED: 10,
  NO_NEXT_STEP: 3,
  NEXT_STEP_OVERDUE: 3,
  STALLED_IN_STAGE: 30,
  CLOSE_DATE_PASSED: 0,
  DATA_STALE: 1,
} as const satisfies Partial<Record<QuietReasonCode, number>>;

/** GHOSTED waits so long after our last word before it expects an answer. */
export const ANSWER_DAYS = 3;
/** A next step further ahead than this does not keep a deal from being QUIET. */
export const NEAR_STEP_DAYS = 30;
/** COOLING begins at 0.6 of NO_RECENT_ACTIVITY's threshold; in whole seconds for each of its days. */
export const COOLING_SECONDS_PER_DAY = (6 * 24 * 60 * 60) / 10;
