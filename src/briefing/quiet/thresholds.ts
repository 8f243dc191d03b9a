import type { DealFacts, QuietReasonCode, QuietRules } from "./facts";

/** Days of silence unless the tenant says otherwise (decision 0078). */
export const STANDARD_DAYS = {
  NO_RECENT_ACTIVITY: 14,
  GHOSTED: 7,
  NEVER_REPLIED: 10,
  NO_NEXT_STEP: 3,
  NEXT_STEP_OVERDUE: 3,
  STALLED_IN_STAGE: 30,
  CLOSE_DATE_PASSED: 0,
} as const satisfies Partial<Record<QuietReasonCode, number>>;
export type ThresholdCode = keyof typeof STANDARD_DAYS;

/** The fewest days that a tenant may set. With none of these all deals would be quiet, or stalled, at all times. */
export const LEAST_DAYS: Record<ThresholdCode, 0 | 1> = {
  NO_RECENT_ACTIVITY: 1,
  GHOSTED: 1,
  NEVER_REPLIED: 1,
  NO_NEXT_STEP: 0,
  NEXT_STEP_OVERDUE: 0,
  STALLED_IN_STAGE: 1,
  CLOSE_DATE_PASSED: 0,
};
/** Ten years: a reason that shall never hold. */
export const MOST_OWN_DAYS = 3_650;

export const isThresholdCode = (code: string): code is ThresholdCode => Object.hasOwn(STANDARD_DAYS, code);

/** GHOSTED waits so long after our last word before it expects an answer. */
export const ANSWER_DAYS = 3;
/** A next step further ahead than this does not keep a deal from being QUIET. */
export const NEAR_STEP_DAYS = 30;
/** COOLING begins at this part of NO_RECENT_ACTIVITY's days. */
export const COOLING_PART = 0.6;
/** Hours by the clock and no days of anyone's calendar: it is the copy that grows old. */
export const STALE_HOURS = 24;
/** What the CRM may say of a stage has no bound, and dates have one. */
const MOST_DAYS = 36_500;

/** The CRM's own kinds in which two sides speak; a demo is a meeting there. */
const TWO_WAY_TYPES = ["call", "meeting", "lunch"];
/** The CRM's own kinds that speak to nobody outside, whoever is named in them. */
export const INWARD_TYPES: readonly string[] = ["task", "deadline"];

export const standardRules = (zone: string): QuietRules => ({
  calendar: { zone, businessDays: false },
  twoWayTypes: TWO_WAY_TYPES,
});

/**
 * The tenant's own days, else the standard ones. A stage's days until it rots stand between the two for
 * NO_RECENT_ACTIVITY: they say how long the customer lets a deal lie untouched, and no other reason measures that.
 */
export function daysOf(code: ThresholdCode, { ownDays, daysToRotten }: DealFacts): number {
  const ofStage = code === "NO_RECENT_ACTIVITY" ? daysToRotten : null;
  return Math.min(MOST_DAYS, ownDays?.[code] ?? ofStage ?? STANDARD_DAYS[code]);
}

export const rottenDays = (daysToRotten: number) => Math.min(MOST_DAYS, daysToRotten);
