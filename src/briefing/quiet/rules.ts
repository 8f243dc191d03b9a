import { KEPT_MS } from "../../database/upsert";
import type { Standards } from "../../entities/silence";
import type { OwnThreshold, QuietSettingsRow, ThresholdCode } from "../../entities/tenant";
import { type Calendar, DAY_MS, MINUTE_MS, plusDays, startOfDay } from "../../platform/clock";
import {
  type ConnectionFacts,
  type DealFacts,
  daysOf,
  type Evidence,
  type QuietReasonCode,
  type QuietRules,
  rottenDays,
  STALE_HOURS,
  standardRules,
} from "./facts";
import { dealEvidence, type Touch } from "./situation";
import type { Outlook } from "./verdict";

/** Raised with each change of the rules, or of what is kept for them: what was judged by earlier ones is judged anew from the next run on. */
export const RULES = 3;
/** Any fixed number: the advisory locks by which workers say, for as long as they live, by which rules they judge. */
const RULES_LOCKS = 20_260_018;
export const SAY_RULES = `SELECT pg_advisory_lock_shared(${RULES_LOCKS}, ${RULES})`;
/** SQL: the newest of those. Of two releases side by side each would undo what the other has judged. */
export const RULES_OF_WORKERS = `SELECT max(l.objid::bigint)::int AS version FROM pg_locks l WHERE l.locktype = 'advisory'
  AND l.classid = ${RULES_LOCKS} AND l.objsubid = 2 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** A tenant's own wishes for silence; for each that it leaves out the standard holds. */
export type Wishes = Pick<QuietSettingsRow, "timeZone" | "businessDays" | "twoWayTypes" | "thresholds">;

export const NO_WISHES: Wishes = { timeZone: null, businessDays: false, twoWayTypes: [], thresholds: [] };

/** @param timeZone of the user who authorized */
export const standardsOf = (wishes: Wishes, timeZone: string, rotting: Standards["rotting"]): Standards => ({
  version: RULES,
  timeZone: wishes.timeZone ?? timeZone,
  businessDays: wishes.businessDays,
  twoWayTypes: wishes.twoWayTypes,
  thresholds: wishes.thresholds,
  rotting,
});

/** Of a copy of which nothing was judged yet. */
export const STANDARD = standardsOf(NO_WISHES, "UTC", {});
/** By which days are told from one another. @param zone of what a copy is judged by; null: nothing was judged yet */
export const calendarIn = (zone: string | null): Calendar => ({ zone: zone ?? STANDARD.timeZone, businessDays: false });

export function rulesOf({ timeZone, businessDays, twoWayTypes }: Standards): QuietRules {
  const standard = standardRules(timeZone);
  return {
    calendar: { zone: timeZone, businessDays },
    twoWayTypes: [...standard.twoWayTypes, ...twoWayTypes],
  };
}

type OfDeal = Pick<DealFacts, "stageId"> & { pipelineId: number | null };
type OwnDays = Partial<Record<ThresholdCode, number>>;
const key = ({ scope, crmId }: Pick<OwnThreshold, "scope" | "crmId">) => `${scope} ${crmId}`;

/**
 * The deals with the days of their stages, and the tenant's own: of several for a reason those of the stage, then those of
 * the pipeline.
 */
export function byStandards<Deal extends OfDeal>(
  deals: readonly Deal[],
  { thresholds, rotting = {} }: Standards,
): (Deal & Pick<DealFacts, "daysToRotten">)[] {
  const own = new Map<string, OwnDays>();
  for (const threshold of thresholds)
    own.set(key(threshold), { ...own.get(key(threshold)), [threshold.code]: threshold.days });
  const daysFor = ({ pipelineId, stageId }: OfDeal): OwnDays => ({
    ...own.get(key({ scope: "ALL", crmId: 0 })),
    ...own.get(key({ scope: "PIPELINE", crmId: pipelineId ?? 0 })),
    ...own.get(key({ scope: "STAGE", crmId: stageId ?? 0 })),
  });
  const daysToRotten = ({ stageId }: OfDeal) => rotting[stageId ?? 0] ?? null;
  return deals.map((deal) => ({ ...deal, daysToRotten: daysToRotten(deal), ownDays: daysFor(deal) }));
}

/** A reason that holds: since when, and what shows it. */
export interface HeldReason {
  code: QuietReasonCode;
  since: number | null;
  thresholdDays: number | null;
  /** The contact from which on it is counted, and for GHOSTED our unanswered word behind it. */
  touches: readonly Touch[];
  /** Of CLOSE_DATE_PUSHED: how often the syncs saw the day moved later, and since when they would have seen it. */
  moves?: { times: number; watchedSince: number };
  evidence: readonly Evidence[];
}

/** An open deal at an instant. */
interface Moment extends Outlook {
  facts: DealFacts;
  copy: ConnectionFacts;
  now: number;
}
type Rule = (moment: Moment) => HeldReason | null;

/** From when on a copy is too old: "longer ago than" its hours. */
export const staleFrom = ({ readAt }: Pick<ConnectionFacts, "readAt">): number | null =>
  readAt === null ? null : readAt + STALE_HOURS * 60 * MINUTE_MS + 1;

export function isStale(copy: Pick<ConnectionFacts, "readAt">, now: number): boolean {
  const from = staleFrom(copy);
  return from === null || now >= from;
}

function counted({ facts }: Moment, code: ThresholdCode, touch: Touch, ...more: Touch[]): HeldReason {
  const touches = [touch, ...more];
  const evidence = touches.map((shown) => shown.evidence);
  return { code, since: touch.at, thresholdDays: daysOf(code, facts), touches, evidence };
}

const plain = (
  code: QuietReasonCode,
  since: number | null,
  thresholdDays: number | null,
  ...evidence: Evidence[]
): HeldReason => ({ code, since, thresholdDays, touches: [], evidence });

const noRecentActivity: Rule = (moment) => {
  const { situation, deadlines, now } = moment;
  const { lastTouch } = situation;
  return lastTouch && now >= deadlines.quiet ? counted(moment, "NO_RECENT_ACTIVITY", lastTouch) : null;
};

const ghosted: Rule = (moment) => {
  const { situation, deadlines, now } = moment;
  const { inbound, outbound } = situation;
  return inbound && outbound && now >= deadlines.ghosted ? counted(moment, "GHOSTED", inbound, outbound) : null;
};

const neverReplied: Rule = (moment) => {
  const { situation, deadlines, now } = moment;
  const { firstOutbound } = situation;
  return firstOutbound && now >= deadlines.neverReplied ? counted(moment, "NEVER_REPLIED", firstOutbound) : null;
};

const noNextStep: Rule = (moment) => {
  const { situation, deadlines, now } = moment;
  const { lastTouch } = situation;
  return lastTouch && now >= deadlines.noNextStep ? counted(moment, "NO_NEXT_STEP", lastTouch) : null;
};

const nextStepOverdue: Rule = (moment) => {
  const { situation, facts, copy, now } = moment;
  const { nextStep, overdue } = situation;
  if (nextStep || !overdue) return null;
  const from = plusDays(copy.rules.calendar, overdue.at, daysOf("NEXT_STEP_OVERDUE", facts));
  return now >= from ? counted(moment, "NEXT_STEP_OVERDUE", overdue) : null;
};

const stalledInStage: Rule = ({ facts, deadlines, now }) => {
  const { inStageSince, stageId } = facts;
  if (now < deadlines.stalled) return null;
  const evidence: Evidence[] = stageId === null ? [] : [{ type: "Stage", crmId: stageId }];
  return plain("STALLED_IN_STAGE", inStageSince, daysOf("STALLED_IN_STAGE", facts), ...evidence);
};

/** By the CRM's own count, which knows no business days. */
const crmRotten: Rule = ({ facts, copy, now }) => {
  const { daysToRotten, updatedAt } = facts;
  if (daysToRotten === null || updatedAt === null) return null;
  const days = rottenDays(daysToRotten);
  const { zone } = copy.rules.calendar;
  if (now < plusDays({ zone, businessDays: false }, updatedAt, days)) return null;
  return plain("CRM_ROTTEN", updatedAt, days, dealEvidence(facts));
};

const closeDatePassed: Rule = ({ facts, copy, now }) => {
  if (facts.closeDay === null) return null;
  const { calendar } = copy.rules;
  const since = startOfDay(calendar, facts.closeDay + DAY_MS);
  const days = daysOf("CLOSE_DATE_PASSED", facts);
  return now >= plusDays(calendar, since, days) ? plain("CLOSE_DATE_PASSED", since, days, dealEvidence(facts)) : null;
};

/** Of the days that the journal keeps: when it is swept changes no answer. */
const closeDatePushed: Rule = ({ facts, copy, now }) => {
  const kept = now - KEPT_MS;
  const seen = facts.pushes.filter((at) => at >= kept);
  if (seen.length < daysOf("CLOSE_DATE_PUSHED", facts)) return null;
  const moves = { times: seen.length, watchedSince: Math.max(copy.watchedSince, kept) };
  return { ...plain("CLOSE_DATE_PUSHED", Math.min(...seen), null, dealEvidence(facts)), moves };
};

const ownerInactive: Rule = ({ facts: { inactiveOwnerId } }) =>
  inactiveOwnerId === null ? null : plain("OWNER_INACTIVE", null, null, { type: "CrmUser", crmId: inactiveOwnerId });

const dataStale: Rule = ({ copy, now }) =>
  isStale(copy, now) ? plain("DATA_STALE", copy.readAt, STALE_HOURS / 24) : null;

const dataIncomplete: Rule = ({ facts: { isIncomplete, incompleteSince } }) =>
  isIncomplete ? plain("DATA_INCOMPLETE", incompleteSince, null) : null;

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
  closeDatePushed,
  ownerInactive,
];
const DATA_RULES: readonly Rule[] = [dataStale, dataIncomplete];

/** The reasons that hold for an open deal at an instant. On stale data only those that speak of the data. */
export function reasonsAt(moment: Moment): HeldReason[] {
  const rules = isStale(moment.copy, moment.now) ? DATA_RULES : [...DEAL_RULES, ...DATA_RULES];
  return rules.map((rule) => rule(moment)).filter((found) => found !== null);
}
