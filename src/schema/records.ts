import { createUnionType, Field, registerEnumType } from "type-graphql";
import { LARGE_VALUE } from "./complexity";
import { Node } from "./node";
import { ObjectType } from "./object-type";
import type { Snooze } from "./quiet";
import { Refusal } from "./refusal";
import { DateScalar, DecimalScalar, JsonObjectScalar } from "./scalars";

export enum DealStatus {
  OPEN = "OPEN",
  WON = "WON",
  LOST = "LOST",
}
registerEnumType(DealStatus, { name: "DealStatus" });

@ObjectType({ description: "An exact amount in one currency." })
export class Money {
  @Field(() => DecimalScalar)
  amount!: string;

  @Field(() => String, { description: "ISO 4217." })
  currency!: string;
}

@ObjectType()
export class EmailAddress {
  @Field(() => String)
  address!: string;

  @Field(() => String, { nullable: true })
  label!: string | null;

  @Field(() => Boolean)
  primary!: boolean;
}

@ObjectType()
export class PhoneNumber {
  @Field(() => String)
  number!: string;

  @Field(() => String, { nullable: true })
  label!: string | null;

  @Field(() => Boolean)
  primary!: boolean;
}

const CRM_URL = "The record's page in the CRM, for people; null where the company's domain is not known.";
const CUSTOM_FIELDS = "All custom fields, as the CRM holds them.";

@ObjectType({ implements: Node, description: "A deal that is matched to a recorded meeting." })
export class Deal extends Node {
  @Field(() => String)
  crmId!: string;

  @Field(() => String)
  title!: string;

  @Field(() => Money, { nullable: true })
  value!: Money | null;

  @Field(() => DealStatus)
  status!: DealStatus;

  @Field(() => Boolean, { description: "False while this deal's participants could not be read." })
  participantsKnown!: boolean;

  @Field(() => DateScalar, { nullable: true })
  expectedCloseDate!: string | null;

  @Field(() => Date, { nullable: true })
  createdAt!: Date | null;

  @Field(() => Date, { nullable: true })
  updatedAt!: Date | null;

  @Field(() => Date, { nullable: true })
  stageChangedAt!: Date | null;

  @Field(() => Date, { nullable: true })
  wonAt!: Date | null;

  @Field(() => Date, { nullable: true })
  lostAt!: Date | null;

  @Field(() => String, { nullable: true })
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

@ObjectType()
export class DealSuccess {
  @Field(() => Deal)
  deal!: Deal;
}

export const DealResult = createUnionType({
  name: "DealResult",
  types: () => [DealSuccess, Refusal] as const,
});

@ObjectType({ implements: Node, description: "A person who is matched to an attendee of a recorded meeting." })
export class Person extends Node {
  @Field(() => String)
  crmId!: string;

  @Field(() => String)
  name!: string;

  @Field(() => [EmailAddress])
  emails!: EmailAddress[];

  @Field(() => [PhoneNumber])
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
  @Field(() => String)
  crmId!: string;

  @Field(() => String)
  name!: string;

  @Field(() => String, { nullable: true })
  address!: string | null;

  @Field(() => String, { nullable: true })
  website!: string | null;

  @Field(() => JsonObjectScalar, { complexity: LARGE_VALUE, description: CUSTOM_FIELDS })
  customFields!: Record<string, unknown>;

  @Field(() => String, { nullable: true, description: CRM_URL })
  crmUrl!: string | null;

  links!: { organization: number; owner: number | null };
}
