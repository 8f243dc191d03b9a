import { ArgsType, Field, ID, Int } from "type-graphql";
import type { QuietReasonCode, QuietVerdict } from "../briefing/quiet/facts";
import type { InteractionRow } from "../briefing/timeline";
import { apiEnum, DateScalar, ObjectType } from "./base";
import { Text } from "./refusal";

export const QuietVerdictEnum = apiEnum<QuietVerdict>(
  "QuietVerdict",
  "How quiet a deal has gone. Won and lost deals are ACTIVE.",
  {
    ACTIVE: "There is contact, or a next step.",
    COOLING: "The contact thins out, nothing is planned, or the deal stands still in its stage.",
    QUIET: "No contact for long, and no next step within 30 days.",
    GHOSTED: "The buyer does not answer, or never has, and no next step is planned.",
    UNKNOWN: "The data is too old to say, or was never read completely.",
  },
);

export const QuietReasonCodeEnum = apiEnum<QuietReasonCode>(
  "QuietReasonCode",
  "What makes a deal look quiet, or keeps from seeing whether it is.",
  {
    NO_RECENT_ACTIVITY: "No contact for long.",
    GHOSTED: "We wrote last, and the buyer has not answered.",
    NEVER_REPLIED: "The buyer has never answered.",
    NO_NEXT_STEP: "Nothing is planned.",
    NEXT_STEP_OVERDUE: "What was planned is past and not done.",
    STALLED_IN_STAGE: "In the same stage for long.",
    CRM_ROTTEN: "Past the days after which the CRM calls a deal in this stage rotten.",
    CLOSE_DATE_PASSED: "The expected close date is past.",
    CLOSE_DATE_PUSHED: "Syncs saw the expected close date moved later, twice or as often as the settings say.",
    OWNER_INACTIVE: "The owner is no longer active in the CRM.",
    DATA_STALE: "The synced copy is too old.",
    DATA_INCOMPLETE: "Participants or activities of the deal could not be read, or were not yet.",
  },
);

const InteractionKindEnum = apiEnum<InteractionRow["kind"]>(
  "InteractionKind",
  "What a contact was, or its trace in the CRM.",
  {
    MEETING: "A recorded meeting with the buyer.",
    ACTIVITY: "A done activity in the CRM.",
    INCOMING_MAIL: "The buyer's last mail, by the CRM's time stamp.",
    OUTGOING_MAIL: "The last mail to the buyer, or the first that was seen, by the CRM's time stamp.",
    NOTE: "A note in the CRM, never one of this service.",
  },
);

@ObjectType({ description: "A contact with the buyer, or a trace of one in the CRM." })
export class Interaction {
  @Field(() => InteractionKindEnum, { description: "What it was." })
  kind!: InteractionRow["kind"];

  @Field(() => Date, {
    description:
      "A meeting counts at its end, or where none was recorded at its start; an activity that has a `day` from when that begins in `QuietSettings.timeZone`.",
  })
  at!: Date;

  @Field(() => DateScalar, {
    nullable: true,
    description:
      "The day of an activity of which the CRM has no time: show it in place of `at`, which may lie on another day where its " +
      "reader is. Null for all others, and for one that was ticked off before its day, at that instant.",
  })
  day!: Date | null;
}

@ObjectType({ description: "One thing that makes a deal look quiet, or keeps from seeing whether it is." })
export class QuietReason {
  @Field(() => QuietReasonCodeEnum, { description: "Which one, machine-readable." })
  code!: QuietReasonCode;

  @Field(() => Date, {
    nullable: true,
    description:
      "From when its days are counted, of CLOSE_DATE_PUSHED when the first move was seen; null where it has none or it is not known.",
  })
  since!: Date | null;

  @Field(() => DateScalar, {
    nullable: true,
    description:
      "Where `since` is the begin of the day of a contact without a time: that day, as `Interaction.day` has it.",
  })
  sinceDay!: Date | null;

  @Field(() => Int, { nullable: true, description: "After so many days it holds; null where time does not decide." })
  thresholdDays!: number | null;

  @Field(() => String, { description: "In plain words, for the seller." })
  message!: string;
}

@ObjectType({
  description:
    "Whether a deal has gone quiet, judged from contact with the buyer, never from what this service wrote: from mails with its people, and activities, notes and meetings that are about it.",
})
export class QuietSignal {
  @Field(() => QuietVerdictEnum, { description: "How quiet it has gone." })
  verdict!: QuietVerdict;

  @Field(() => Boolean, { description: "True for QUIET and GHOSTED." })
  isQuiet!: boolean;

  @Field(() => Date, {
    nullable: true,
    description:
      "GHOSTED: the buyer's last contact, or our first word where there was none; COOLING and QUIET: the last contact, or " +
      "the deal's adding; else null.",
  })
  quietSince!: Date | null;

  @Field(() => DateScalar, {
    nullable: true,
    description: "Where that contact has a day and no time: that day, as `Interaction.day` has it.",
  })
  quietSinceDay!: Date | null;

  @Field(() => Int, { nullable: true, description: "Whole days from quietSince to judgedAt." })
  quietDays!: number | null;

  @Field(() => Boolean, { description: "Whether quietDays counts business days, as the tenant's settings wish." })
  businessDays!: boolean;

  @Field(() => Date, { description: "The instant of the answer, not that of the stored schedule." })
  judgedAt!: Date;

  @Field(() => [QuietReason], {
    description:
      "All that hold of an open deal, whatever its verdict: an ACTIVE one may have some, and one that is COOLING before its days are over none.",
  })
  reasons!: QuietReason[];

  @Field(() => Date, {
    nullable: true,
    description:
      "When the verdict would next change if nothing happens and the syncs go on; null when it would not, and while it is " +
      "UNKNOWN.",
  })
  nextChangeAt!: Date | null;

  @Field(() => Date, {
    nullable: true,
    description:
      "When the copy will be too old to judge by, if no sync succeeds: of every deal alike. Null before its persons and activities were read to their end.",
  })
  staleAt!: Date | null;

  @Field(() => Date, {
    description:
      "Up to when deals, persons, activities and notes of the synced copy are complete; judgedAt while one of these was never read to its end.",
  })
  asOf!: Date;
}

@ObjectType({
  description: "What a user of this service said of a deal's silence, while it holds. The CRM is told nothing of it.",
})
export class Snooze {
  @Field(() => String, { name: "reason", simple: false, description: "Why the deal is quiet." })
  snoozeReason!: string;

  @Field(() => Date, {
    name: "until",
    simple: false,
    description: "When it ends; earlier with the buyer's next contact.",
  })
  snoozedUntil!: Date;

  @Field(() => String, { name: "by", simple: false, description: "The user of this service who said it." })
  snoozedBy!: string;

  @Field(() => Date, { name: "at", simple: false, description: "When it was said." })
  snoozedAt!: Date;
}

@ArgsType()
export class SnoozeArgs {
  @Field(() => ID, { description: "The global id of an open deal that is matched to a meeting." })
  dealId!: string;

  @Field(() => Date, { description: "In the future, within 366 days." })
  until!: Date;

  @Text(1, 500)
  @Field(() => String, { description: "For people; 1 to 500 characters." })
  reason!: string;
}
