import { DAY_MS, SECOND_MS } from "../../platform/clock";
import type { CopyFacts, DealFacts, Evidence, QuietReasonCode } from "./facts";
import { dealEvidence, dueEnd, type Situation, type Touch } from "./situation";
import { ANSWER_DAYS, COOLING_SECONDS_PER_DAY, NEAR_STEP_DAYS, THRESHOLD_DAYS } from "./thresholds";

/** A reason that holds: since when, and what shows it. */
export interface Firing {
  code: QuietReasonCode;
  since: number | null;
  thresholdDays: number | null;
  evidence: readonly Evidence[];
}

/** "Longer ago than": instants are whole milliseconds. */
const NEXT_MS = 1;

/** The instants from which on a rule holds, while nothing happens. */
export const noRecentActivityFrom = (touchAt: number, facts: DealFacts) => touchAt + silenceDays(facts) * DAY_MS;
export const coolingFrom = (touchAt: number, facts: DealFacts) =>
  touchAt + silenceDays(facts) * COOLING_SECONDS_PER_DAY * SECOND_MS;
export const silentFrom = (inboundAt: number) => inboundAt + THRESHOLD_DAYS.GHOSTED * DAY_MS;
export const answerExpectedFrom = (outboundAt: number) => outboundAt + ANSWER_DAYS * DAY_MS;
export const neverRepliedFrom = (firstAt: number) => firstAt + THRESHOLD_DAYS.NEVER_REPLIED * DAY_MS;
export const noNextStepFrom = (touchAt: number) => touchAt + THRESHOLD_DAYS.NO_NEXT_STEP * DAY_MS + NEXT_MS;
export const stalledFrom = (inStageSince: number) => inStageSince + THRESHOLD_DAYS.STALLED_IN_STAGE * DAY_MS;
export const nearFrom = (stepAt: number) => stepAt - NEAR_STEP_DAYS * DAY_MS;
export const staleFrom = (readAt: number) => readAt + THRESHOLD_DAYS.DATA_STALE * DAY_MS + NEXT_MS;

/** A stage that rots says how long a silence is too long in it. */
const silenceDays = ({ daysToRotten }: DealFacts) => daysToRotten ?? THRESHOLD_DAYS.NO_RECENT_ACTIVITY;

export const isStale = ({ readAt }: CopyFacts, now: number) => readAt === null || now >= staleFrom(readAt);
export const isNear = (step: Touch, now: number) => now >= nearFrom(step.at);

export function isCooling({ lastTouch }: Situation, facts: DealFacts, now: number): boolean {
  return lastTouch !== null && now >= coolingFrom(lastTouch.at, facts);
}

type Rule = (situation: Situation, facts: DealFacts, copy: CopyFacts, now: number) => Firing | null;

function firing(code: QuietReasonCode, touch: Touch, thresholdDays: number, ...more: Touch[]): Firing {
  return { code, since: touch.at, thresholdDays, evidence: [touch, ...more].map(({ evidence }) => evidence) };
}

const noRecentActivity: Rule = ({ lastTouch }, facts, _copy, now) =>
  lastTouch && now >= noRecentActivityFrom(lastTouch.at, facts)
    ? firing("NO_RECENT_ACTIVITY", lastTouch, silenceDays(facts))
    : null;

const ghosted: Rule = ({ inbound, outbound }, _facts, { hasMail }, now) => {
  if (!hasMail || !inbound || !outbound || outbound.at <= inbound.at) return null;
  const holds = now >= silentFrom(inbound.at) && now >= answerExpectedFrom(outbound.at);
  return holds ? firing("GHOSTED", inbound, THRESHOLD_DAYS.GHOSTED, outbound) : null;
};

const neverReplied: Rule = ({ inbound, firstOutbound }, _facts, { hasMail }, now) =>
  hasMail && !inbound && firstOutbound && now >= neverRepliedFrom(firstOutbound.at)
    ? firing("NEVER_REPLIED", firstOutbound, THRESHOLD_DAYS.NEVER_REPLIED)
    : null;

const noNextStep: Rule = ({ nextStep, lastTouch }, _facts, _copy, now) =>
  !nextStep && lastTouch && now >= noNextStepFrom(lastTouch.at)
    ? firing("NO_NEXT_STEP", lastTouch, THRESHOLD_DAYS.NO_NEXT_STEP)
    : null;

const nextStepOverdue: Rule = ({ nextStep, overdue }, _facts, _copy, now) =>
  !nextStep && overdue && now - overdue.at >= THRESHOLD_DAYS.NEXT_STEP_OVERDUE * DAY_MS
    ? firing("NEXT_STEP_OVERDUE", overdue, THRESHOLD_DAYS.NEXT_STEP_OVERDUE)
    : null;

const stalledInStage: Rule = (_situation, { inStageSince, stageId }, _copy, now) => {
  if (inStageSince === null || now < stalledFrom(inStageSince)) return null;
  const evidence: Evidence[] = stageId === null ? [] : [{ type: "Stage", crmId: stageId }];
  return { code: "STALLED_IN_STAGE", since: inStageSince, thresholdDays: THRESHOLD_DAYS.STALLED_IN_STAGE, evidence };
};

const crmRotten: Rule = (_situation, facts, _copy, now) => {
  const { daysToRotten, updatedAt } = facts;
  if (daysToRotten === null || updatedAt === null || now - updatedAt < daysToRotten * DAY_MS) return null;
  return { code: "CRM_ROTTEN", since: updatedAt, thresholdDays: daysToRotten, evidence: [dealEvidence(facts)] };
};

const closeDatePassed: Rule = (_situation, facts, _copy, now) => {
  const { closeDayEndsAt: since } = facts;
  if (since === null || now < since) return null;
  const thresholdDays = THRESHOLD_DAYS.CLOSE_DATE_PASSED;
  return { code: "CLOSE_DATE_PASSED", since, thresholdDays, evidence: [dealEvidence(facts)] };
};

const ownerInactive: Rule = (_situation, { inactiveOwnerId }) =>
  inactiveOwnerId === null
    ? null
    : {
        code: "OWNER_INACTIVE",
        since: null,
        thresholdDays: null,
        evidence: [{ type: "CrmUser", crmId: inactiveOwnerId }],
      };

const dataStale: Rule = (_situation, _facts, copy, now) =>
  isStale(copy, now)
    ? { code: "DATA_STALE", since: copy.readAt, thresholdDays: THRESHOLD_DAYS.DATA_STALE, evidence: [] }
    : null;

const dataIncomplete: Rule = (_situation, { isIncomplete, incompleteSince: since }) =>
  isIncomplete ? { code: "DATA_INCOMPLETE", since, thresholdDays: null, evidence: [] } : null;

/** Of contact with the buyer and the deal itself: what a stale copy cannot say. */
const DEAL_RULES: readonly Rule[] = [
  noRecentActivity,
  ghosted,
  neverReplied,
  noNextStep,
  nextStepOverdue,
  stalledInStage,
  crmRotten,
  closeDatePassed,
  ownerInactive,
];
const DATA_RULES: readonly Rule[] = [dataStale, dataIncomplete];

/** The reasons that hold for an open deal at an instant. On stale data only those that speak of the data. */
export function firingsAt(situation: Situation, facts: DealFacts, copy: CopyFacts, now: number): Firing[] {
  const rules = isStale(copy, now) ? DATA_RULES : [...DEAL_RULES, ...DATA_RULES];
  return rules.map((rule) => rule(situation, facts, copy, now)).filter((found) => found !== null);
}

/**
 * Every instant at which one of the conditions of the verdict can turn by time alone. Each of them is "from this
 * instant on", so between two of these nothing changes.
 */
export function turningPoints(facts: DealFacts, { readAt }: CopyFacts): number[] {
  const touches = [...facts.contacts.map(({ at }) => at), ...facts.meetings.map(({ endsAt }) => endsAt)];
  const silences = facts.addedAt === null ? touches : [...touches, facts.addedAt];
  return [
    ...(readAt === null ? [] : [staleFrom(readAt)]),
    ...(facts.inStageSince === null ? [] : [stalledFrom(facts.inStageSince)]),
    ...silences.flatMap((at) => [noRecentActivityFrom(at, facts), coolingFrom(at, facts), noNextStepFrom(at)]),
    ...touches.flatMap((at) => [silentFrom(at), answerExpectedFrom(at), neverRepliedFrom(at)]),
    ...facts.meetings.flatMap(({ startsAt, endsAt }) => [endsAt, nearFrom(startsAt)]),
    ...facts.planned.flatMap((step) => [dueEnd(step) + (step.wholeDay ? 0 : NEXT_MS), nearFrom(step.dueAt)]),
  ];
}
