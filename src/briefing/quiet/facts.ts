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

/** A contact that the CRM knows of. Incoming mail is the buyer's; the others are ours. */
export interface Contact {
  kind: ContactKind;
  at: number;
  /** The person of the mail, the done activity, or the note. */
  crmId: number;
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
  dueAt: number;
  /** It has a day and no time: it is due until that day (UTC) is over. */
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
  /** The end of the day (UTC) on which it was expected to close. */
  closeDayEndsAt: number | null;
  /** The owner, where that user is deactivated. */
  inactiveOwnerId: number | null;
  /** Participants or activities of this deal are missing. */
  isIncomplete: boolean;
  /** Since when that is known. */
  incompleteSince: number | null;
  /** The same answer comes from all contacts, and from the latest of each kind with our earliest. In any order. */
  contacts: readonly Contact[];
  /** Those ahead, and the latest held one with a buyer. */
  meetings: readonly MeetingFact[];
  /** Those ahead, and the earliest. */
  planned: readonly PlannedFact[];
}

/** What is known of the connection. */
export interface CopyFacts {
  /** Up to when activities and persons are read, whichever is older; null before both were read to their end. */
  readAt: number | null;
  /** Up to when all is read that is judged by; null before all of it was. */
  asOf: number | null;
  /** Whether any person ever carried a mail time; else mail is not connected in the CRM and says nothing. */
  hasMail: boolean;
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
  /** The last contact, where the verdict is COOLING, QUIET or GHOSTED. */
  quietSince: Date | null;
  /** Whole days from then to `asOf`. */
  quietDays: number | null;
  /** The first future instant at which time alone changes the verdict. */
  nextChangeAt: Date | null;
  /** Up to when what it is judged by is complete; where some of that was never read to its end, the instant of the judgement. */
  asOf: Date;
}
