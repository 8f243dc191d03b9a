import { ValidateNested } from "class-validator";
import { ArgsType, Field, ID, InputType } from "type-graphql";
import type { MEETING_ORDERS } from "../briefing/lists/contact-and-meeting-lists";
import type { DEAL_ORDERS } from "../briefing/lists/deal-list";
import type { QuietVerdict } from "../briefing/quiet/facts";
import type { DealRow } from "../entities/deal";
import type { MeetingMatchStatus } from "../entities/meeting";
import { LONGEST_ADDRESS } from "../platform/email-address";
import { apiEnum, connectionOf, DecimalScalar, PageArgs } from "./base";
import { Meeting, MeetingMatchStatusEnum } from "./meeting";
import { QuietVerdictEnum } from "./quiet";
import { Deal, DealStatusEnum, Organization, Person } from "./records";
import { Checked, CurrencyCode, Text, With } from "./refusal";

export const DealConnection = connectionOf("Deal", () => Deal, "A page of deals.");
export const PersonConnection = connectionOf("Person", () => Person, "A page of persons.");
export const OrganizationConnection = connectionOf("Organization", () => Organization, "A page of organizations.");
export const MeetingConnection = connectionOf("Meeting", () => Meeting, "A page of meetings.");

const ORDER = "A cursor holds in the order it was given in.";

type DealOrder = keyof typeof DEAL_ORDERS;
const DealOrderEnum = apiEnum<DealOrder>("DealOrder", "Deals that tie follow each other by their ids.", {
  UPDATED_AT_DESC: "Newest change in the CRM first; deals without that instant last.",
  VALUE_DESC:
    "Currency by currency, in the order of their codes, and the highest amount first in each: amounts of two currencies are neither compared nor converted. Deals without a value or without its currency last.",
  QUIET_DAYS_DESC:
    "The longest silence first; deals without quietSince last. All pages are judged at the first one's instant.",
});

/** There are fewer values than that; a list that names them again and again is a mistake of the sender. */
const MOST_VALUES = 10;
/** @param one of them, in words */
const Some = (one: string) =>
  Checked("some", (values) => {
    if (!Array.isArray(values) || values.length === 0) return `must name at least one ${one}; leave it out for all`;
    return values.length > MOST_VALUES ? `must have at most ${MOST_VALUES} entries` : null;
  });

@InputType({
  description:
    "What fits every field that is given. An id that is unknown, another tenant's or of another kind fits no deal.",
})
export class DealFilter {
  @Some("status")
  @Field(() => [DealStatusEnum], { nullable: true, description: "Any of these; leave it out for all." })
  status?: DealRow["status"][] | null;

  @Some("verdict")
  @Field(() => [QuietVerdictEnum], {
    nullable: true,
    description: "Any of these; leave it out for all. All pages of a walk are judged at the instant of the first one.",
  })
  verdict?: QuietVerdict[] | null;

  @Field(() => ID, { nullable: true, description: "The global id of a pipeline." })
  pipelineId?: string | null;

  @Field(() => ID, { nullable: true, description: "The global id of a stage." })
  stageId?: string | null;

  @Field(() => ID, { nullable: true, description: "The global id of a CRM user." })
  ownerId?: string | null;

  @With<DealFilter>("currency")
  @Field(() => DecimalScalar, {
    nullable: true,
    description: "So much or more, in `currency`: amounts of two currencies are not compared.",
  })
  minValue?: string | null;

  @CurrencyCode()
  @Field(() => String, { nullable: true, description: "ISO 4217, for example EUR: deals with a value in it." })
  currency?: string | null;

  @Field(() => Boolean, {
    nullable: true,
    description: "true: only snoozed ones; false: none of them; leave it out for both.",
  })
  snoozed?: boolean | null;
}

@ArgsType()
export class DealsArgs extends PageArgs {
  @ValidateNested()
  @Field(() => DealFilter, { nullable: true, description: "Leave it out for all." })
  filter?: DealFilter | null;

  @Field(() => DealOrderEnum, { nullable: true, defaultValue: "UPDATED_AT_DESC", description: ORDER })
  orderBy!: DealOrder | null;
}

type MeetingOrder = keyof typeof MEETING_ORDERS;
const MeetingOrderEnum = apiEnum<MeetingOrder>(
  "MeetingOrder",
  "Meetings that begin at one instant follow each other by their ids.",
  {
    STARTS_AT_DESC: "Latest start first.",
    STARTS_AT_ASC: "Earliest start first.",
  },
);

/** People type some words to find a meeting. */
const LONGEST_SEARCH = 100;

@InputType({ description: "What fits every field that is given." })
export class MeetingFilter {
  @Field(() => Date, { nullable: true, description: "Those that begin then or later." })
  from?: Date | null;

  @Field(() => Date, { nullable: true, description: "Those that begin before that." })
  to?: Date | null;

  @Some("status")
  @Field(() => [MeetingMatchStatusEnum], { nullable: true, description: "Any of these; leave it out for all." })
  status?: MeetingMatchStatus[] | null;

  @Text(0, LONGEST_ADDRESS)
  @Field(() => String, {
    nullable: true,
    description: "Whose meetings, by the owner's address in whatever spelling; at most 320 characters.",
  })
  ownerEmail?: string | null;

  @Field(() => Boolean, { nullable: true, defaultValue: false, description: "Cancelled ones as well." })
  includeCancelled?: boolean | null;

  @Text(1, LONGEST_SEARCH)
  @Field(() => String, {
    nullable: true,
    description: "Part of a title, or of an attendee's address or name, in whatever case; 1 to 100 characters.",
  })
  search?: string | null;
}

@ArgsType()
export class MeetingsArgs extends PageArgs {
  @ValidateNested()
  @Field(() => MeetingFilter, { nullable: true, description: "Leave it out for all." })
  filter?: MeetingFilter | null;

  @Field(() => MeetingOrderEnum, { nullable: true, defaultValue: "STARTS_AT_DESC", description: ORDER })
  orderBy!: MeetingOrder | null;
}

@ArgsType()
export class PersonsArgs extends PageArgs {
  @Field(() => String, {
    nullable: true,
    description: "Persons with this address among theirs, in whatever spelling.",
  })
  email?: string | null;
}
