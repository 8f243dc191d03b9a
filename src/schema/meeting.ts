import { ArrayMaxSize, ValidateNested } from "class-validator";
import { Field, ID, InputType } from "type-graphql";
import type {
  AttendeeSide,
  DealRule,
  MatchStatus,
  MeetingMatchStatus,
  OrganizationRule,
  PersonRule,
} from "../entities/meeting";
import { LONGEST_ADDRESS } from "../platform/email-address";
import { apiEnum, Node, ObjectType } from "./base";
import { HoldsAddress, NotBefore, resultOf, SensibleInstant, Text, WellFormed } from "./refusal";

const AttendeeSideEnum = apiEnum<AttendeeSide>("AttendeeSide", "Whose side an attendee is on.", {
  SELLER: "One of our own: the owner, somebody with the same company domain, or a user of the CRM.",
  BUYER: "Everybody else: the buyer's side.",
  IGNORED: "Nobody to match: a room, a bot, a mailing list, or no address that somebody reads.",
});

const MatchStatusEnum = apiEnum<MatchStatus>(
  "MatchStatus",
  "Whether one record is meant, several could be, or none is known.",
  {
    MATCHED: "One record is meant.",
    AMBIGUOUS: "Several could be meant, and nothing decides.",
    NONE: "No record fits.",
    PENDING: "No CRM is connected, or what could be meant is not read from it yet.",
  },
);

export const MeetingMatchStatusEnum = apiEnum<MeetingMatchStatus>(
  "MeetingMatchStatus",
  "Whether a meeting's deal is known.",
  {
    MATCHED: "One deal is meant, or was chosen.",
    NEEDS_CHOICE: "Deals could be meant and none is certain; `chooseDeal` settles it.",
    NONE: "No deal fits.",
    PENDING: "No CRM is connected, or what could be meant is not read from it yet.",
  },
);

const PersonRuleEnum = apiEnum<PersonRule>("PersonRule", "By what an attendee's person was found.", {
  EMAIL_EXACT: "One person has exactly this address.",
  EMAIL_WITHOUT_TAG: "One person has it apart from a tag, or from dots at Gmail.",
  ONLY_ONE_ON_OPEN_DEAL: "Of several with the address, one is on a deal that was open at the meeting.",
});

const OrganizationRuleEnum = apiEnum<OrganizationRule>(
  "OrganizationRule",
  "By what it was found for which organization an attendee comes.",
  {
    ORGANIZATION_OF_PERSON: "The person belongs to it.",
    DOMAIN_OF_PERSONS: "At least two of its persons have an address at the domain, and no other uses it.",
    DOMAIN_OF_WEBSITE: "The domain is that of its website, and no other uses it.",
  },
);

const DealRuleEnum = apiEnum<DealRule>("DealRule", "What decides which deal a meeting is about, in this order.", {
  CHOSEN: "A user chose it.",
  SAME_CRM_ACTIVITY: "The CRM has an activity at the time of the meeting with one of its persons, on this deal.",
  ONE_DEAL_OF_ALL: "Whoever of several persons with one address attends, it is the only deal.",
  ONLY_CANDIDATE: "It is the only deal around the meeting.",
  MOST_ATTENDEES: "Strictly most attendees take part in it, or come from its organization.",
  OWNER_ATTENDS: "Only its owner was in the meeting.",
  OPEN_BEFORE_CLOSED: "Only it was open when the meeting began.",
});

@ObjectType({ implements: Node, description: "A meeting that the service recorded." })
export class Meeting extends Node {
  @Field(() => String, {
    description: "The id that the meeting has in the product that recorded it; unique within the tenant.",
  })
  externalId!: string;

  @Field(() => String, { description: "As it was recorded." })
  title!: string;

  @Field(() => Date, { description: "When it begins or began." })
  startsAt!: Date;

  @Field(() => Date, { nullable: true, description: "When it ends or ended; null where that was not recorded." })
  endsAt!: Date | null;

  @Field(() => String, { description: "The address of the seller who holds or held it." })
  ownerEmail!: string;

  @Field(() => Date, {
    nullable: true,
    description: "When it was cancelled; null where it takes place. Cancelled, it is no contact and grants no reading.",
  })
  cancelledAt!: Date | null;
}

@ObjectType({ description: "Which person of the CRM an attendee is, and why." })
export class PersonMatch {
  @Field(() => MatchStatusEnum, { description: "Whether one person is meant." })
  status!: MatchStatus;

  @Field(() => PersonRuleEnum, { nullable: true, description: "The rule that decided." })
  rule!: PersonRule | null;

  @Field(() => String, { description: "The same in words." })
  reason!: string;

  @Field(() => MatchStatusEnum, { description: "Whether it is known for which organization the attendee comes." })
  organizationStatus!: MatchStatus;

  @Field(() => OrganizationRuleEnum, { nullable: true, description: "The rule that found the organization." })
  organizationRule!: OrganizationRule | null;

  @Field(() => String, { nullable: true, description: "The same in words; null for SELLER and IGNORED." })
  organizationReason!: string | null;

  personId!: number | null;
  organizationId!: number | null;
  candidateIds!: number[];
}

@ObjectType({ description: "Someone who was invited to a meeting." })
export class Attendee {
  @Field(() => String, { description: "As it was recorded." })
  email!: string;

  @Field(() => String, { nullable: true, description: "As it was recorded; null without one." })
  name!: string | null;

  @Field(() => AttendeeSideEnum, { description: "Whether the attendee counts as a buyer." })
  side!: AttendeeSide;

  @Field(() => PersonMatch, { description: "Which person of the CRM this is." })
  match!: PersonMatch;
}

@ObjectType({ description: "Which deal a meeting is about, and why." })
export class MeetingMatch {
  @Field(() => MeetingMatchStatusEnum, { description: "Whether the deal is known, or someone has to choose." })
  status!: MeetingMatchStatus;

  @Field(() => DealRuleEnum, { nullable: true, description: "The rule that decided, or CHOSEN where a user did." })
  rule!: DealRule | null;

  @Field(() => String, { description: "The same in words, or why nothing decided." })
  reason!: string;

  @Field(() => Date, { description: "When it was last decided." })
  matchedAt!: Date;

  @Field(() => Boolean, { description: "Others may come to be meant; a write is to name its target meanwhile." })
  mayChange!: boolean;

  meetingId!: string;
  dealId!: number | null;
}

/** A town hall has hundreds; a list of thousands is a mistake of the sender. */
const MAX_ATTENDEES = 500;

@InputType({ description: "Someone who was invited." })
export class AttendeeInput {
  @Text(1, LONGEST_ADDRESS)
  @Field(() => String, { description: "In whatever spelling the calendar has it; 1 to 320 characters." })
  email!: string;

  @Text(0, LONGEST_ADDRESS)
  @Field(() => String, { nullable: true, description: "For people; it decides no match. At most 320 characters." })
  name?: string | null;
}

@InputType({ description: "A meeting as the host product knows it." })
export class RecordMeetingInput {
  @Text(1, 200)
  @WellFormed()
  @Field(() => String, { description: "1 to 200 characters. Recording it again replaces the meeting." })
  externalId!: string;

  @Text(1, 500)
  @Field(() => String, { description: "1 to 500 characters." })
  title!: string;

  @SensibleInstant()
  @Field(() => Date, { description: "When it begins or began; from 1970 to 2199." })
  startsAt!: Date;

  @SensibleInstant()
  @NotBefore<RecordMeetingInput>("startsAt")
  @Field(() => Date, { nullable: true, description: "When it ends or ended; not before startsAt." })
  endsAt?: Date | null;

  @Text(1, LONGEST_ADDRESS)
  @HoldsAddress()
  @Field(() => String, { description: "The address of the seller who holds it; 1 to 320 characters." })
  ownerEmail!: string;

  @ArrayMaxSize(MAX_ATTENDEES, { message: `must have at most ${MAX_ATTENDEES} entries` })
  @ValidateNested({ each: true })
  @Field(() => [AttendeeInput], { description: "At most 500; the owner may be among them." })
  attendees!: AttendeeInput[];
}

@ObjectType({ description: "The meeting as it now stands." })
export class MeetingSuccess {
  @Field(() => Meeting, { description: "With its new match." })
  meeting!: Meeting;
}

export const MeetingResult = resultOf("MeetingResult", () => MeetingSuccess);

@ObjectType({ description: "There is no such meeting now, whether there was one or not." })
export class MeetingDeleted {
  @Field(() => ID, { description: 'As it was given. No "id": caches would take this answer for the meeting itself.' })
  meetingId!: string;
}

export const DeleteMeetingResult = resultOf("DeleteMeetingResult", () => MeetingDeleted);
