import { MOST_PUSHES } from "../../connections/journal";
import type { ThresholdCode } from "../../entities/tenant";
import type { Calendar } from "../../platform/clock";

/** What is looked at when a deal's silence is judged. All instants are milliseconds since 1970. */

const QUIET_VERDICTS = ["ACTIVE", "COOLING", "QUIET", "GHOSTED", "UNKNOWN"] as const;
export type QuietVerdict = (typeof QUIET_VERDICTS)[number];

/** In the order in which reasons are shown. */
const QUIET_REASON_CODES = [
  "NO_RECENT_ACTIVITY",
  "GHOSTED",
  "NEVER_REPLIED",
  "NO_NEXT_STEP",
  "NEXT_STEP_OVERDUE",
  "STALLED_IN_STAGE",
  "CRM_ROTTEN",
  "CLOSE_DATE_PASSED",
  "CLOSE_DATE_PUSHED",
  "OWNER_INACTIVE",
  "DATA_STALE",
  "DATA_INCOMPLETE",
] as const;
export type QuietReasonCode = (typeof QUIET_REASON_CODES)[number];

export const isSilent = (verdict: QuietVerdict): boolean => verdict === "QUIET" || verdict === "GHOSTED";

/** A record that shows a reason: by its CRM id, or a meeting by its own id. */
export type Evidence =
  | { type: "Deal" | "Person" | "Activity" | "Note" | "Stage" | "CrmUser"; crmId: number }
  | { type: "Meeting"; meetingId: string };

export type ContactKind = "INCOMING_MAIL" | "OUTGOING_MAIL" | "ACTIVITY" | "NOTE";

/** A contact that the CRM knows of; `sideOf` says whose word it was. */
export interface Contact {
  kind: ContactKind;
  at: number;
  /** Of an activity with a day and no time that day's midnight in UTC: it counts from when the day began in the zone, or from `at`, when it was ticked off. */
  day?: number | null;
  /** The person of the mail, the done activity, or the note. */
  crmId: number;
  /** Of an activity: what the CRM calls its kind. */
  activityType: string | null;
  /** A person of the deal took part, as in every mail; where nobody did, it spoke to nobody outside. */
  withPerson: boolean;
}

/** A recorded meeting of the deal; held from its end on, and ahead until then. */
export interface DealMeeting {
  meetingId: string;
  startsAt: number;
  /** Its start where no end was recorded. */
  endsAt: number;
  withBuyer: boolean;
}

/** An activity that is not done. */
export interface PlannedFact {
  crmId: number;
  /** Where it has a day and no time, that day's midnight in UTC. */
  dueAt: number;
  /** It is due until that day is over in the calendar's zone. */
  wholeDay: boolean;
}

export interface DealFacts {
  dealId: number;
  isOpen: boolean;
  addedAt: number | null;
  /** When it came into its stage: the CRM's stage change, else when it was added. */
  inStageSince: number | null;
  stageId: number | null;
  /** The stage's; null where the CRM has none. */
  daysToRotten: number | null;
  /** The CRM's update time without our own writes. */
  updatedAt: number | null;
  /** Midnight in UTC of the day on which it was expected to close. */
  closeDay: number | null;
  /** When a sync saw that day moved later: the newest of the journal's entries. In any order. */
  pushes: readonly number[];
  /** The owner, where that user is deactivated. */
  inactiveOwnerId: number | null;
  /** Participants or activities of this deal are missing. */
  isIncomplete: boolean;
  /** Since when that is known. */
  incompleteSince: number | null;
  /** A person of this deal has ever carried a mail time; else mail says nothing of it. */
  hasMail: boolean;
  /** Our first mail to one of its people is kept, and among the contacts; one to who has left goes before that person does. */
  hasFirstMail: boolean;
  firstMailLeft?: boolean;
  /** What a person has said of its silence, where that holds: when, and until when. It has no part in the verdict. */
  snooze?: { at: number; until: number } | null;
  /** The tenant's own days for this deal, which stand before those of the stage and the standard ones. */
  ownDays?: Partial<Record<ThresholdCode, number>>;
  /** All of them, or the latest and (from `addedAt` on) the earliest of each kind of each type with and without a person. In any order. */
  contacts: readonly Contact[];
  /** Those ahead, and the latest held one with a buyer. */
  meetings: readonly DealMeeting[];
  /** Those ahead, and the earliest with and without a time. */
  planned: readonly PlannedFact[];
}

/** Facts of the connection that a judgement needs. */
export interface ConnectionFacts {
  /** Up to when activities and persons are read, whichever is older; null before both were read to their end. */
  readAt: number | null;
  /** Up to when all is read that is judged by; null before all of it was. */
  asOf: number | null;
  /** Since when the syncs have watched for changes: the copy's beginning. */
  watchedSince: number;
  rules: QuietRules;
}

/** What a deal is judged by, and the instant of judging. */
export interface Judged {
  facts: DealFacts;
  copy: ConnectionFacts;
  now: Date;
}

/** Rules that are the same for all deals of a tenant. */
export interface QuietRules {
  calendar: Calendar;
  /** The kinds of activities in which the buyer has a part; each other one is our word. */
  twoWayTypes: readonly string[];
}

export interface QuietReason {
  code: QuietReasonCode;
  since: Date | null;
  sinceDay: Date | null;
  thresholdDays: number | null;
  message: string;
  evidence: readonly Evidence[];
}

export interface QuietSignal {
  verdict: QuietVerdict;
  reasons: readonly QuietReason[];
  /** GHOSTED: the buyer's last contact, or our first word; COOLING and QUIET: the last contact, or the day of adding. */
  quietSince: Date | null;
  quietSinceDay: Date | null;
  /** Whole days from then to `judgedAt`. */
  quietDays: number | null;
  /** Those are business days. */
  businessDays: boolean;
  judgedAt: Date;
  /** The first future instant at which time alone changes the verdict, if the syncs go on. */
  nextChangeAt: Date | null;
  /** From when on the copy is too old to judge by, if no sync succeeds; null before it was read. */
  staleAt: Date | null;
  /** Up to when what it is judged by is complete; where some of that was never read to its end, the instant of the judgement. */
  asOf: Date;
}

/** Days of silence, and times of CLOSE_DATE_PUSHED, unless the tenant says otherwise (decision 0078). */
const STANDARD_DAYS = {
  NO_RECENT_ACTIVITY: 14,
  GHOSTED: 7,
  NEVER_REPLIED: 10,
  NO_NEXT_STEP: 3,
  NEXT_STEP_OVERDUE: 3,
  STALLED_IN_STAGE: 30,
  CLOSE_DATE_PASSED: 0,
  CLOSE_DATE_PUSHED: 2,
} as const satisfies Record<ThresholdCode, number>;

/** The fewest days that a tenant may set. With none of these all deals would be quiet, or stalled, at all times. */
export const LEAST_DAYS: Record<ThresholdCode, 0 | 1> = {
  NO_RECENT_ACTIVITY: 1,
  GHOSTED: 1,
  NEVER_REPLIED: 1,
  NO_NEXT_STEP: 0,
  NEXT_STEP_OVERDUE: 0,
  STALLED_IN_STAGE: 1,
  CLOSE_DATE_PASSED: 0,
  CLOSE_DATE_PUSHED: 1,
};
/** Ten years: a reason that shall never hold. */
export const MOST_OWN_DAYS = 3_650;
/** The most that a tenant may set. */
export const mostDays = (code: ThresholdCode): number => (code === "CLOSE_DATE_PUSHED" ? MOST_PUSHES : MOST_OWN_DAYS);

export const isThresholdCode = (code: string): code is ThresholdCode => Object.hasOwn(STANDARD_DAYS, code);

/** GHOSTED waits so long after our last word before it expects an answer. */
export const ANSWER_DAYS = 3;
/** A next step further ahead than this does not keep a deal from being QUIET. */
export const NEAR_STEP_DAYS = 30;
/** COOLING begins at this part of NO_RECENT_ACTIVITY's days. */
export const COOLING_PART = 0.6;
/** Hours by the clock and no days of anyone's calendar: it is the copy that grows old. */
export const STALE_HOURS = 24;
/** The CRM sets no bound to a stage's days, and dates have one. */
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
