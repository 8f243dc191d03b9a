import { ArgsType, Field, ID, Int, registerEnumType } from "type-graphql";
import { NotBlank, Text } from "./checks";
import { ObjectType } from "./object-type";

export enum QuietVerdict {
  ACTIVE = "ACTIVE",
  COOLING = "COOLING",
  QUIET = "QUIET",
  GHOSTED = "GHOSTED",
  UNKNOWN = "UNKNOWN",
}
registerEnumType(QuietVerdict, {
  name: "QuietVerdict",
  description: "How quiet a deal has gone. Won and lost deals are ACTIVE.",
  valuesConfig: {
    ACTIVE: { description: "There is contact, or a next step." },
    COOLING: { description: "The contact thins out, nothing is planned, or the deal stands still in its stage." },
    QUIET: { description: "No contact for long, and no next step within 30 days." },
    GHOSTED: { description: "The buyer does not answer, or never has, and no next step is planned." },
    UNKNOWN: { description: "The data is too old to say." },
  },
});

export enum QuietReasonCode {
  NO_RECENT_ACTIVITY = "NO_RECENT_ACTIVITY",
  GHOSTED = "GHOSTED",
  NEVER_REPLIED = "NEVER_REPLIED",
  NO_NEXT_STEP = "NO_NEXT_STEP",
  NEXT_STEP_OVERDUE = "NEXT_STEP_OVERDUE",
  STALLED_IN_STAGE = "STALLED_IN_STAGE",
  CRM_ROTTEN = "CRM_ROTTEN",
  CLOSE_DATE_PASSED = "CLOSE_DATE_PASSED",
  OWNER_INACTIVE = "OWNER_INACTIVE",
  DATA_STALE = "DATA_STALE",
  DATA_INCOMPLETE = "DATA_INCOMPLETE",
}
registerEnumType(QuietReasonCode, { name: "QuietReasonCode" });

export enum InteractionKind {
  MEETING = "MEETING",
  ACTIVITY = "ACTIVITY",
  INCOMING_MAIL = "INCOMING_MAIL",
  OUTGOING_MAIL = "OUTGOING_MAIL",
  NOTE = "NOTE",
}
registerEnumType(InteractionKind, {
  name: "InteractionKind",
  description: "MEETING: a recorded meeting with the buyer. NOTE: one that a person wrote, never one of this service.",
});

@ObjectType({ description: "A contact with the buyer, or a trace of one in the CRM." })
export class Interaction {
  @Field(() => InteractionKind)
  kind!: InteractionKind;

  @Field(() => Date, { description: "A meeting counts at its end." })
  at!: Date;

  links!: { person: number | null; activity: number | null };
}

@ObjectType()
export class QuietReason {
  @Field(() => QuietReasonCode)
  code!: QuietReasonCode;

  @Field(() => Date, {
    nullable: true,
    description: "From when its days are counted; null where it has none or it is not known.",
  })
  since!: Date | null;

  @Field(() => Int, { nullable: true, description: "After so many days it holds; null where time does not decide." })
  thresholdDays!: number | null;

  @Field(() => String, { description: "In plain words, for the seller." })
  message!: string;

  /** The records that show it, by their CRM id; a meeting by its own. */
  shownBy!: readonly (
    | { type: "Deal" | "Person" | "Activity" | "Note" | "Stage" | "CrmUser"; crmId: number }
    | { type: "Meeting"; meetingId: string }
  )[];
}

@ObjectType({
  description: "Whether a deal has gone quiet, judged from contact with the buyer, never from our own writes.",
})
export class QuietSignal {
  @Field(() => QuietVerdict)
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

  @Field(() => Int, { nullable: true, description: "Whole days from quietSince to judgedAt." })
  quietDays!: number | null;

  @Field(() => Date, { description: "The instant of the answer, not that of the stored schedule." })
  judgedAt!: Date;

  @Field(() => [QuietReason])
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
      "When the copy will be too old to judge by, if no sync succeeds: of every deal alike. Null before it was read completely.",
  })
  staleAt!: Date | null;

  @Field(() => Date, {
    description: "The moment up to which the synced copy is complete; before a run has succeeded, now.",
  })
  asOf!: Date;
}

@ObjectType({ description: "What a person said of a deal's silence, while it holds. The CRM is told nothing of it." })
export class Snooze {
  @Field(() => String, { description: "Why the deal is quiet." })
  reason!: string;

  @Field(() => Date, { description: "When it ends; earlier with the buyer's next contact." })
  until!: Date;

  @Field(() => String, { description: "The user of this service who said it." })
  by!: string;

  @Field(() => Date, { description: "When it was said." })
  at!: Date;

  /** From then on it holds no more. */
  endsAt!: Date;
}

@ArgsType()
export class SnoozeArgs {
  @Field(() => ID)
  dealId!: string;

  @Field(() => Date)
  until!: Date;

  @NotBlank()
  @Text(500)
  @Field(() => String)
  reason!: string;
}
