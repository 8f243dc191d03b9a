import { Field, registerEnumType } from "type-graphql";
import { ObjectType } from "./object-type";
import { DateTimeScalar } from "./scalars";

/** The refusals that this version can give, by name. */
export enum RefusalCode {
  NOT_ALLOWED_FOR_ROLE = "NOT_ALLOWED_FOR_ROLE",
  NOT_ALLOWED_ON_PLAN = "NOT_ALLOWED_ON_PLAN",
  ANOTHER_CRM_CONNECTED = "ANOTHER_CRM_CONNECTED",
  AUTHORIZATION_REJECTED = "AUTHORIZATION_REJECTED",
  AUTHORIZATION_DENIED_BY_USER = "AUTHORIZATION_DENIED_BY_USER",
  AUTHORIZATION_STATE_INVALID = "AUTHORIZATION_STATE_INVALID",
  DIFFERENT_CRM_COMPANY = "DIFFERENT_CRM_COMPANY",
  CRM_UNAVAILABLE = "CRM_UNAVAILABLE",
  NOT_CONNECTED = "NOT_CONNECTED",
  NEEDS_REAUTHORIZATION = "NEEDS_REAUTHORIZATION",
  SYNC_ALREADY_RUNNING = "SYNC_ALREADY_RUNNING",
  SYNC_TOO_SOON = "SYNC_TOO_SOON",
  BUDGET_LOW = "BUDGET_LOW",
  FIELD_NOT_FOUND = "FIELD_NOT_FOUND",
  FIELD_NOT_WRITABLE = "FIELD_NOT_WRITABLE",
  FIELD_NOT_MAPPED = "FIELD_NOT_MAPPED",
  MEETING_NOT_FOUND = "MEETING_NOT_FOUND",
  DEAL_NOT_FOUND = "DEAL_NOT_FOUND",
  LIMIT_REACHED = "LIMIT_REACHED",
  TARGET_NOT_MATCHED = "TARGET_NOT_MATCHED",
  NEEDS_CHOICE = "NEEDS_CHOICE",
  CONTENT_TOO_LONG = "CONTENT_TOO_LONG",
  IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED",
  INVALID_INPUT = "INVALID_INPUT",
}

registerEnumType(RefusalCode, {
  name: "RefusalCode",
  description: "Why something was refused.",
  valuesConfig: {
    NOT_ALLOWED_FOR_ROLE: { description: "Only an owner or admin of the tenant may do this." },
    NOT_ALLOWED_ON_PLAN: { description: "The tenant's plan does not include the CRM connection." },
    ANOTHER_CRM_CONNECTED: {
      description: "A CRM is connected already; it is never replaced, only disconnected first.",
    },
    AUTHORIZATION_REJECTED: { description: "The CRM did not accept the authorization; nothing was stored." },
    AUTHORIZATION_DENIED_BY_USER: { description: "The user cancelled the authorization in the CRM." },
    AUTHORIZATION_STATE_INVALID: {
      description: "The state is unknown, used, older than ten minutes or another user's.",
    },
    DIFFERENT_CRM_COMPANY: { description: "Re-authorized with another CRM company than the connected one." },
    CRM_UNAVAILABLE: { description: "The CRM gave no usable answer; trying again later may help." },
    NOT_CONNECTED: { description: "No CRM is connected." },
    NEEDS_REAUTHORIZATION: {
      description: "The CRM no longer accepts the authorization; someone has to authorize again.",
    },
    SYNC_ALREADY_RUNNING: { description: "A sync is queued or running already." },
    SYNC_TOO_SOON: { description: "A member asked within a minute of the last run; `retryAt` says when." },
    BUDGET_LOW: {
      description:
        "The CRM company's tokens of the day are needed for its other apps; `retryAt` says when to ask again.",
    },
    FIELD_NOT_FOUND: { description: "The CRM has no such field of the entity." },
    FIELD_NOT_WRITABLE: { description: "A standard field, or one of a type that cannot be written." },
    FIELD_NOT_MAPPED: { description: "No field of the entity is nominated." },
    MEETING_NOT_FOUND: { description: "The tenant has recorded no such meeting." },
    DEAL_NOT_FOUND: {
      description: "No deal that the tenant may read; unknown, foreign and unmatched ones are answered alike.",
    },
    LIMIT_REACHED: {
      description: "The tenant has begun as many of these as it may; `retryAt` says when that changes.",
    },
    TARGET_NOT_MATCHED: {
      description: "The record is not matched to this meeting; unknown and foreign ones are answered alike.",
    },
    NEEDS_CHOICE: { description: "Several records could be meant, or none is certain; say which." },
    CONTENT_TOO_LONG: { description: "The text is longer than what can be written." },
    IDEMPOTENCY_KEY_REUSED: { description: "The idempotency key was used with another input." },
    INVALID_INPUT: { description: "An input is not usable; `field` names it." },
  },
});

@ObjectType({
  description: "A refusal that a client should handle. Bugs and bad documents are GraphQL errors instead.",
})
export class Refusal {
  @Field(() => RefusalCode)
  code!: RefusalCode;

  @Field(() => String, { description: "For people: what happened and what to do." })
  message!: string;

  @Field(() => String, { nullable: true, description: "The input that is at fault, where there is one." })
  field!: string | null;

  @Field(() => DateTimeScalar, {
    nullable: true,
    description: "From when on it may be tried again; null where time changes nothing.",
  })
  retryAt!: Date | null;
}
