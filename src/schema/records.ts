import { Field } from "type-graphql";
import type { DealChangeKind, DealRow } from "../entities/deal";
import type { MeetingRow } from "../entities/meeting";
import { apiEnum, DateScalar, DecimalScalar, JsonObjectScalar, LARGE_VALUE, Node, ObjectType } from "./base";
import { Meeting } from "./meeting";
import { resultOf } from "./refusal";

export const DealStatusEnum = apiEnum<DealRow["status"]>("DealStatus", "Where a deal stands.", {
  open: "Still worked on.",
  won: "Closed and won.",
  lost: "Closed and lost.",
});

@ObjectType({ description: "An exact amount in one currency." })
export class Money {
  @Field(() => DecimalScalar, { description: "The exact amount." })
  amount!: string;

  @Field(() => String, { description: "The CRM's code of it: ISO 4217, or one of the CRM company's own." })
  currency!: string;
}

@ObjectType({ description: "One of a person's addresses." })
export class EmailAddress {
  @Field(() => String, { name: "address", simple: false, description: "As the CRM holds it." })
  value!: string;

  @Field(() => String, { nullable: true, description: "What kind it is, for example work." })
  label!: string | null;

  @Field(() => Boolean, { description: "Whether it is the one to use first, or stands in one field with it." })
  primary!: boolean;
}

@ObjectType({ description: "One of a person's numbers." })
export class PhoneNumber {
  @Field(() => String, { name: "number", simple: false, description: "As the CRM holds it." })
  value!: string;

  @Field(() => String, { nullable: true, description: "What kind it is, for example work." })
  label!: string | null;

  @Field(() => Boolean, { description: "Whether it is the one to use first." })
  primary!: boolean;
}

const CRM_URL = "The record's page in the CRM, for people; null where the CRM company's domain is not known.";
const CUSTOM_FIELDS = "The custom fields that are set, by key, as the CRM holds them.";

@ObjectType({
  implements: Node,
  description:
    "A deal that is matched to a recorded meeting: it is what that is or could be about, or an attendee takes part in it.",
})
export class Deal extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: number;

  @Field(() => String, { description: "As the CRM holds it." })
  title!: string;

  @Field(() => Money, { nullable: true, description: "null without an amount or a currency." })
  value!: Money | null;

  @Field(() => DealStatusEnum, { description: "Whether it is still open." })
  status!: DealRow["status"];

  @Field(() => Boolean, { description: "False while this deal's participants could not be read, or were not yet." })
  participantsKnown!: boolean;

  @Field(() => DateScalar, { nullable: true, description: "The day on which the seller expects to close it." })
  expectedCloseDate!: string | null;

  @Field(() => Date, { name: "createdAt", simple: false, nullable: true, description: "When it was made in the CRM." })
  addTime!: Date | null;

  @Field(() => Date, { name: "updatedAt", simple: false, nullable: true, description: "Its last change in the CRM." })
  updateTime!: Date | null;

  @Field(() => Date, {
    name: "stageChangedAt",
    simple: false,
    nullable: true,
    description: "When it came into its present stage.",
  })
  stageChangeTime!: Date | null;

  @Field(() => String, { nullable: true, description: "Why it was lost, in the seller's words." })
  lostReason!: string | null;

  @Field(() => JsonObjectScalar, { complexity: LARGE_VALUE, description: CUSTOM_FIELDS })
  customFields!: Record<string, unknown>;

  @Field(() => String, { nullable: true, description: CRM_URL })
  crmUrl!: string | null;
}

const DealChangeKindEnum = apiEnum<DealChangeKind>("DealChangeKind", "What of a deal has changed.", {
  STAGE: "Its stage, by name.",
  VALUE: "What it is worth: amount and currency.",
  CLOSE_DATE: "The day on which the seller expects to close it.",
  STATUS: "open, won or lost.",
  OWNER: "The CRM user who owns it, by name.",
  PERSON: "Its contact person, by name.",
  ORGANIZATION: "The organization it is with, by name.",
  TITLE: "What it is called.",
  PARTICIPANTS: "Who takes part in it, as far as that could be read.",
  VERDICT:
    "How quiet it is: a QuietVerdict. That settings or the copy's age change it is not told here; what changed it while the deal was not matched is one entry.",
});

@ObjectType({ description: "A change of a deal. Records that are not matched appear by their CRM id only." })
export class DealChange {
  @Field(() => DealChangeKindEnum, { description: "What has changed." })
  kind!: DealChangeKind;

  @Field(() => String, { nullable: true, description: "For people; null: there was none." })
  from!: string | null;

  @Field(() => String, { nullable: true, description: "For people; null: there is none." })
  to!: string | null;

  @Field(() => Date, { description: "When a sync saw it, later than it happened; of a verdict, from when on it held." })
  seenAt!: Date;
}

@ObjectType({ description: "The deal as it now stands." })
export class DealSuccess {
  @Field(() => Deal, { description: "With its snooze, if it has one." })
  deal!: DealRow;
}

export const DealResult = resultOf("DealResult", () => DealSuccess);

@ObjectType({
  implements: Node,
  description: "A person who is matched to an attendee of a recorded meeting: who is the attendee, or could be.",
})
export class Person extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: number;

  @Field(() => String, { description: "As the CRM holds it." })
  name!: string;

  @Field(() => [EmailAddress], { description: "All addresses, as the CRM orders them; of several in one field each." })
  emails!: EmailAddress[];

  @Field(() => [PhoneNumber], { description: "All numbers, as the CRM orders them." })
  phones!: PhoneNumber[];

  @Field(() => Date, {
    name: "lastIncomingMailAt",
    simple: false,
    nullable: true,
    description: "The CRM's time stamp; the service reads no mail.",
  })
  lastIncomingMailTime!: Date | null;

  @Field(() => Date, {
    name: "lastOutgoingMailAt",
    simple: false,
    nullable: true,
    description: "The CRM's time stamp; the service reads no mail.",
  })
  lastOutgoingMailTime!: Date | null;

  @Field(() => JsonObjectScalar, { complexity: LARGE_VALUE, description: CUSTOM_FIELDS })
  customFields!: Record<string, unknown>;

  @Field(() => String, { nullable: true, description: CRM_URL })
  crmUrl!: string | null;
}

@ObjectType({
  implements: Node,
  description:
    "A company in the CRM that is matched to a recorded meeting: of a person who is, or told by the domain of an attendee's address.",
})
export class Organization extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: number;

  @Field(() => String, { description: "As the CRM holds it." })
  name!: string;

  @Field(() => String, { nullable: true, description: "On one line." })
  address!: string | null;

  @Field(() => String, { nullable: true, description: "As the CRM holds it, not checked." })
  website!: string | null;

  @Field(() => JsonObjectScalar, { complexity: LARGE_VALUE, description: CUSTOM_FIELDS })
  customFields!: Record<string, unknown>;

  @Field(() => String, { nullable: true, description: CRM_URL })
  crmUrl!: string | null;
}

@ObjectType({ description: "A deal that a meeting could be about." })
export class DealCandidate {
  @Field(() => Deal, { description: "The deal that could be meant." })
  deal!: DealRow;

  @Field(() => String, { description: "What speaks for it." })
  reason!: string;
}

@ObjectType({ description: "What a seller needs before or in a meeting." })
export class Briefing {
  @Field(() => Meeting, { description: "The meeting that it is for." })
  meeting!: MeetingRow;
}
