import { Field } from "type-graphql";
import type { DealRow } from "../entities/deal";
import { apiEnum, DateScalar, DecimalScalar, JsonObjectScalar, LARGE_VALUE, Node, ObjectType } from "./base";
import { Meeting } from "./meeting";
import type { Snooze } from "./quiet";
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

  @Field(() => String, { description: "ISO 4217." })
  currency!: string;
}

@ObjectType({ description: "One of a person's addresses." })
export class EmailAddress {
  @Field(() => String, { description: "As the CRM holds it." })
  address!: string;

  @Field(() => String, { nullable: true, description: "What kind it is, for example work." })
  label!: string | null;

  @Field(() => Boolean, { description: "Whether it is the one to use first." })
  primary!: boolean;
}

@ObjectType({ description: "One of a person's numbers." })
export class PhoneNumber {
  @Field(() => String, { description: "As the CRM holds it." })
  number!: string;

  @Field(() => String, { nullable: true, description: "What kind it is, for example work." })
  label!: string | null;

  @Field(() => Boolean, { description: "Whether it is the one to use first." })
  primary!: boolean;
}

const CRM_URL = "The record's page in the CRM, for people; null where the company's domain is not known.";
const CUSTOM_FIELDS = "All custom fields, as the CRM holds them.";

@ObjectType({ implements: Node, description: "A deal that is matched to a recorded meeting." })
export class Deal extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: string;

  @Field(() => String, { description: "As the CRM holds it." })
  title!: string;

  @Field(() => Money, { nullable: true, description: "null without an amount or a currency." })
  value!: Money | null;

  @Field(() => DealStatusEnum, { description: "Whether it is still open." })
  status!: DealRow["status"];

  @Field(() => Boolean, { description: "False while this deal's participants could not be read." })
  participantsKnown!: boolean;

  @Field(() => DateScalar, { nullable: true, description: "The day on which the seller expects to close it." })
  expectedCloseDate!: string | null;

  @Field(() => Date, { nullable: true, description: "When it was made in the CRM." })
  createdAt!: Date | null;

  @Field(() => Date, { nullable: true, description: "Its last change in the CRM." })
  updatedAt!: Date | null;

  @Field(() => Date, { nullable: true, description: "When it came into its present stage." })
  stageChangedAt!: Date | null;

  @Field(() => Date, { nullable: true, description: "When it was won; null unless it is." })
  wonAt!: Date | null;

  @Field(() => Date, { nullable: true, description: "When it was lost; null unless it is." })
  lostAt!: Date | null;

  @Field(() => String, { nullable: true, description: "Why it was lost, in the seller's words." })
  lostReason!: string | null;

  @Field(() => JsonObjectScalar, { complexity: LARGE_VALUE, description: CUSTOM_FIELDS })
  customFields!: Record<string, unknown>;

  @Field(() => String, { nullable: true, description: CRM_URL })
  crmUrl!: string | null;

  /** What was last said of its silence, whether it holds or not. */
  snoozed!: Snooze | null;

  /** The CRM ids behind the edges. */
  links!: {
    deal: number;
    stage: number | null;
    pipeline: number | null;
    owner: number | null;
    organization: number | null;
    person: number | null;
  };
}

@ObjectType({ description: "The deal as it now stands." })
export class DealSuccess {
  @Field(() => Deal, { description: "With its snooze, if it has one." })
  deal!: Deal;
}

export const DealResult = resultOf("DealResult", () => DealSuccess);

@ObjectType({ implements: Node, description: "A person who is matched to an attendee of a recorded meeting." })
export class Person extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: string;

  @Field(() => String, { description: "As the CRM holds it." })
  name!: string;

  @Field(() => [EmailAddress], { description: "All addresses, as the CRM orders them." })
  emails!: EmailAddress[];

  @Field(() => [PhoneNumber], { description: "All numbers, as the CRM orders them." })
  phones!: PhoneNumber[];

  @Field(() => Date, { nullable: true, description: "The CRM's time stamp; the service reads no mail." })
  lastIncomingMailAt!: Date | null;

  @Field(() => Date, { nullable: true, description: "The CRM's time stamp; the service reads no mail." })
  lastOutgoingMailAt!: Date | null;

  @Field(() => JsonObjectScalar, { complexity: LARGE_VALUE, description: CUSTOM_FIELDS })
  customFields!: Record<string, unknown>;

  @Field(() => String, { nullable: true, description: CRM_URL })
  crmUrl!: string | null;

  links!: { person: number; organization: number | null; owner: number | null };
}

@ObjectType({ implements: Node, description: "A company in the CRM of a person who is matched to a recorded meeting." })
export class Organization extends Node {
  @Field(() => String, { description: "Its id in the CRM." })
  crmId!: string;

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

  links!: { organization: number; owner: number | null };
}

@ObjectType({ description: "A deal that a meeting could be about." })
export class DealCandidate {
  @Field(() => Deal, { description: "The deal that could be meant." })
  deal!: Deal;

  @Field(() => String, { description: "What speaks for it." })
  reason!: string;
}

@ObjectType({ description: "What a seller needs before or in a meeting." })
export class Briefing {
  @Field(() => Meeting, { description: "The meeting that it is for." })
  meeting!: Meeting;
}
