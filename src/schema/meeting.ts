import { ArrayMaxSize, ValidateNested } from "class-validator";
import { createUnionType, Field, InputType, registerEnumType } from "type-graphql";
import { HoldsAddress, NotBefore, NotBlank, SensibleInstant, Text } from "./checks";
import { Node } from "./node";
import { ObjectType } from "./object-type";
import { Refusal } from "./refusal";

export enum AttendeeSide {
  SELLER = "SELLER",
  BUYER = "BUYER",
  IGNORED = "IGNORED",
}
registerEnumType(AttendeeSide, { name: "AttendeeSide", description: "Whose side an attendee is on." });

export enum MatchStatus {
  MATCHED = "MATCHED",
  AMBIGUOUS = "AMBIGUOUS",
  NONE = "NONE",
}
registerEnumType(MatchStatus, {
  name: "MatchStatus",
  description: "Whether one record is meant, several could be, or none is known.",
});

export enum MeetingMatchStatus {
  MATCHED = "MATCHED",
  NEEDS_CHOICE = "NEEDS_CHOICE",
  NONE = "NONE",
}
registerEnumType(MeetingMatchStatus, { name: "MeetingMatchStatus", description: "Whether a meeting's deal is known." });

@ObjectType({ implements: Node, description: "A meeting that the service recorded." })
export class Meeting extends Node {
  @Field(() => String, {
    description: "The id that the meeting has in the product that recorded it; unique within the tenant.",
  })
  externalId!: string;

  @Field(() => String)
  title!: string;

  @Field(() => Date)
  startsAt!: Date;

  @Field(() => Date, { nullable: true })
  endsAt!: Date | null;

  @Field(() => String)
  ownerEmail!: string;

  meetingId!: string;
}

@ObjectType({ description: "Which person of the CRM an attendee is, and why." })
export class PersonMatch {
  @Field(() => MatchStatus)
  status!: MatchStatus;

  @Field(() => String, { nullable: true, description: "The rule that decided." })
  rule!: string | null;

  @Field(() => String, { description: "The same in words." })
  reason!: string;

  @Field(() => MatchStatus, { description: "Whether it is known for which organization the attendee comes." })
  organizationStatus!: MatchStatus;

  @Field(() => String, { nullable: true, description: "The rule that found the organization." })
  organizationRule!: string | null;

  @Field(() => String, { nullable: true, description: "The same in words; null for one's own side." })
  organizationReason!: string | null;

  links!: { person: number | null; organization: number | null; candidates: number[] };
}

@ObjectType()
export class Attendee {
  @Field(() => String, { description: "As it was recorded." })
  email!: string;

  @Field(() => String, { nullable: true })
  name!: string | null;

  @Field(() => AttendeeSide)
  side!: AttendeeSide;

  @Field(() => PersonMatch)
  match!: PersonMatch;
}

@ObjectType({ description: "Which deal a meeting is about, and why." })
export class MeetingMatch {
  @Field(() => MeetingMatchStatus)
  status!: MeetingMatchStatus;

  @Field(() => String, { nullable: true, description: "The rule that decided, or CHOSEN where a person did." })
  rule!: string | null;

  @Field(() => String, { description: "The same in words, or why nothing decided." })
  reason!: string;

  @Field(() => Date)
  matchedAt!: Date;

  links!: { meeting: string; deal: number | null; candidates: { deal: number; reason: string }[] };
}

/** A town hall has hundreds; a list of thousands is a mistake of the sender. */
const MAX_ATTENDEES = 500;
/** RFC 5321: 64 octets, an @ and 255 octets. */
const LONGEST_ADDRESS = 320;

@InputType()
export class AttendeeInput {
  @NotBlank()
  @Text(LONGEST_ADDRESS)
  @Field(() => String)
  email!: string;

  @Text(LONGEST_ADDRESS)
  @Field(() => String, { nullable: true })
  name?: string | null;
}

@InputType()
export class RecordMeetingInput {
  @NotBlank()
  @Text(200)
  @Field(() => String, { description: "Recording the same externalId again replaces the meeting." })
  externalId!: string;

  @NotBlank()
  @Text(500)
  @Field(() => String)
  title!: string;

  @SensibleInstant()
  @Field(() => Date)
  startsAt!: Date;

  @SensibleInstant()
  @NotBefore<RecordMeetingInput>("startsAt")
  @Field(() => Date, { nullable: true })
  endsAt?: Date | null;

  @NotBlank()
  @Text(LONGEST_ADDRESS)
  @HoldsAddress()
  @Field(() => String)
  ownerEmail!: string;

  @ArrayMaxSize(MAX_ATTENDEES, { message: `must be at most ${MAX_ATTENDEES}` })
  @ValidateNested({ each: true })
  @Field(() => [AttendeeInput])
  attendees!: AttendeeInput[];
}

@ObjectType()
export class MeetingSuccess {
  @Field(() => Meeting)
  meeting!: Meeting;
}

export const MeetingResult = createUnionType({
  name: "MeetingResult",
  types: () => [MeetingSuccess, Refusal] as const,
});
