import type { Calendar } from "../../platform/calendar";
import type { ThresholdCode } from "./thresholds";

/** What is looked at when a deal's silence is judged. All instants are milliseconds since 1970. */

export const QUIET_VERDICTS = ["ACTIVE", "COOLING", "QUIET", "GHOSTED", "UNKNOWN"] as const;
export type QuietVerdict = (typeof QUIET_VERDICTS)[number];

/** In the order in which reasons are shown. */
export const QUIET_REASON_CODES = [
  "NO_RECENT_ACTIVITY",
  "GHOSTED",
  "NEVER_REPLIED",
  "NO_NEXT_STEP",
  "NEXT_STEP_OVERDUE",
  "STALLED_IN_STAGE",
  "CRM_ROTTEN",
  "CLOSE_DATE_PASSED",
  "OWNER_INACTIVE",
  "DATA_STALE",
  "DATA_INCOMPLETE",
] as const;
export type QuietReasonCode = (typeof QUIET_REASON_CODES)[number];

/** A record that shows a reason: by its CRM id, or a meeting by its own id. */
export type Evidence =
  | { type: "Deal" | "Person" | "Activity" | "Note" | "Stage" | "CrmUser"; crmId: number }
  | { type: "Meeting"; meetingId: string };

export type ContactKind = "INCOMING_MAIL" | "OUTGOING_MAIL" | "ACTIVITY" | "NOTE";

/** A contact that the CRM knows of; `sideOf` says whose word it was. */
export interface Contact {
  kind: ContactKind;
  at: number;
  /** The person of the mail, the done activity, or the note. */
  crmId: number;
  /** Of an activity: what the CRM calls its kind. */
  activityType: string | null;
  /** A person of the deal took part, as in every mail; where nobody did, it spoke to nobody outside. */
  withPerson: boolean;
}

/** A recorded meeting of the deal; held from its end on, and ahead until then. */
export interface MeetingFact {
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
  /** The owner, where that user is deactivated. */
  inactiveOwnerId: number | null;
  /** Participants or activities of this deal are missing. */
  isIncomplete: boolean;
  /** Since when that is known. */
  incompleteSince: number | null;
  /** A person of this deal has ever carried a mail time; else mail says nothing of it. */
  hasMail: boolean;
  /** Our first mail to one of its people is kept; it is among the contacts. */
  hasFirstMail: boolean;
  /** What a person has said of its silence, where that holds: when, and until when. It has no part in the verdict. */
  snooze?: { at: number; until: number } | null;
  /** The tenant's own days for this deal, which stand before those of the stage and the standard ones. */
  ownDays?: Partial<Record<ThresholdCode, number>>;
  /** All of them, or the latest and (from `addedAt` on) the earliest of each kind of each type with and without a person. In any order. */
  contacts: readonly Contact[];
  /** Those ahead, and the latest held one with a buyer. */
  meetings: readonly MeetingFact[];
  /** Those ahead, and the earliest with and without a time. */
  planned: readonly PlannedFact[];
}

/** What is known of the connection. */
export interface CopyFacts {
  /** Up to when activities and persons are read, whichever is older; null before both were read to their end. */
  readAt: number | null;
  /** Up to when all is read that is judged by; null before all of it was. */
  asOf: number | null;
  rules: QuietRules;
}

/** What a tenant's deals are all judged by. */
export interface QuietRules {
  calendar: Calendar;
  /** The kinds of activities in which the buyer has a part; each other one is our word. */
  twoWayTypes: readonly string[];
}

export interface QuietReason {
  code: QuietReasonCode;
  since: Date | null;
  thresholdDays: number | null;
  /** For the seller. */
  message: string;
  evidence: readonly Evidence[];
}

export interface QuietSignal {
  verdict: QuietVerdict;
  reasons: readonly QuietReason[];
  /**
   * GHOSTED: the buyer's last contact, or our first word where there was none. COOLING and QUIET: the last contact, or the
   * day of adding.
   */
  quietSince: Date | null;
  /** Whole days from then to `judgedAt`. */
  quietDays: number | null;
  judgedAt: Date;
  /** The first future instant at which time alone changes the verdict, if the syncs go on. */
  nextChangeAt: Date | null;
  /** From when on the copy is too old to judge by, if no sync succeeds; null before it was read. */
  staleAt: Date | null;
  /** Up to when what it is judged by is complete; where some of that was never read to its end, the instant of the judgement. */
  asOf: Date;
}
