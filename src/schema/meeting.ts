import { ArrayMaxSize, ValidateNested } from "class-validator";
import { createUnionType, Field, ID, InputType, registerEnumType } from "type-graphql";
import {
  ATTENDEE_SIDES,
  DEAL_RULES,
  MATCH_STATUSES,
  MEETING_MATCH_STATUSES,
  ORGANIZATION_RULES,
  PERSON_RULES,
  type DealRule as StoredDealRule,
  type MatchStatus as StoredMatchStatus,
  type MeetingMatchStatus as StoredMeetingStatus,
  type OrganizationRule as StoredOrganizationRule,
  type PersonRule as StoredPersonRule,
  type AttendeeSide as StoredSide,
} from "../entities/meeting";
import { HoldsAddress, NotBefore, NotBlank, SensibleInstant, Text } from "./checks";
import { Node } from "./node";
import { ObjectType } from "./object-type";
import { Refusal } from "./refusal";
import { named } from "./sync";

export const AttendeeSide = named(ATTENDEE_SIDES);
registerEnumType(AttendeeSide, { name: "AttendeeSide", description: "Whose side an attendee is on." });

export const MatchStatus = named(MATCH_STATUSES);
registerEnumType(MatchStatus, {
  name: "MatchStatus",
  description: "Whether one record is meant, several could be, or none is known.",
});

export const MeetingMatchStatus = named(MEETING_MATCH_STATUSES);
registerEnumType(MeetingMatchStatus, { name: "MeetingMatchStatus", description: "Whether a meeting's deal is known." });

export const PersonRule = named(PERSON_RULES);
registerEnumType(PersonRule, { name: "PersonRule", description: "By what an attendee's person was found." });

export const OrganizationRule = named(ORGANIZATION_RULES);
registerEnumType(OrganizationRule, {
  name: "OrganizationRule",
  description: "By what it was found for which organization an attendee comes.",
});

export const DealRule = named(DEAL_RULES);
registerEnumType(DealRule, {
  name: "DealRule",
  description: "What decides which deal a meeting is about, in this order.",
});

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

  @Field(() => Date, {
    nullable: true,
    description:
      "When it was cancelled; null where it takes place. A cancelled one is no contact and grants no reading.",
  })
  cancelledAt!: Date | null;

  meetingId!: string;
}

@ObjectType({ description: "Which person of the CRM an attendee is, and why." })
export class PersonMatch {
  @Field(() => MatchStatus)
  status!: StoredMatchStatus;

  @Field(() => PersonRule, { nullable: true, description: "The rule that decided." })
  rule!: StoredPersonRule | null;

  @Field(() => String, { description: "The same in words." })
  reason!: string;

  @Field(() => MatchStatus, { description: "Whether it is known for which organization the attendee comes." })
  organizationStatus!: StoredMatchStatus;

  @Field(() => OrganizationRule, { nullable: true, description: "The rule that found the organization." })
  organizationRule!: StoredOrganizationRule | null;

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
  side!: StoredSide;

  @Field(() => PersonMatch)
  match!: PersonMatch;
}

@ObjectType({ description: "Which deal a meeting is about, and why." })
export class MeetingMatch {
  @Field(() => MeetingMatchStatus)
  status!: StoredMeetingStatus;

  @Field(() => DealRule, { nullable: true, description: "The rule that decided, or CHOSEN where a person did." })
  rule!: StoredDealRule | null;

  @Field(() => String, { description: "The same in words, or why nothing decided." })
  reason!: string;

  @Field(() => Date)
  matchedAt!: Date;

  links!: { meeting: string; deal: number | null; candidates: { deal: number; reason: string }[] };
}

/** A town hall has hundreds; a list of thousands is a mistake of the sender. */
const MAX_ATTENDEES = 500;
/** RFC 5321: 64 octets, an @ and 255 octets. */
export const LONGEST_ADDRESS = 320;

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

@ObjectType({ description: "There is no such meeting now, whether there was one or not." })
export class MeetingDeleted {
  @Field(() => ID, { description: "The id as it was given." })
  id!: string;
}

export const DeleteMeetingResult = createUnionType({
  name: "DeleteMeetingResult",
  types: () => [MeetingDeleted, Refusal] as const,
});
