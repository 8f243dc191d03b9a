import { type ClassType, createUnionType, Field } from "type-graphql";
import { apiEnum, DateTimeScalar, ObjectType } from "./base";

/** The refusals that this version can give, by name. */
const REFUSALS = {
  NOT_ALLOWED_FOR_ROLE: "Only an owner or admin of the tenant may do this.",
  NOT_ALLOWED_ON_PLAN: "The tenant's plan does not include the CRM connection.",
  ANOTHER_CRM_CONNECTED: "A CRM is connected already; it is never replaced, only disconnected first.",
  AUTHORIZATION_REJECTED: "The CRM did not accept the authorization; nothing was stored.",
  AUTHORIZATION_DENIED_BY_USER: "The user cancelled the authorization in the CRM.",
  AUTHORIZATION_STATE_INVALID: "The state is unknown, used, older than ten minutes or another user's.",
  DIFFERENT_CRM_COMPANY: "Re-authorized with another CRM company than the connected one.",
  CRM_UNAVAILABLE: "The CRM gave no usable answer; trying again later may help.",
  NOT_CONNECTED: "No CRM is connected.",
  NEEDS_REAUTHORIZATION: "The CRM no longer accepts the authorization; someone has to authorize again.",
  SYNC_ALREADY_RUNNING: "A sync is queued or running already.",
  SYNC_TOO_SOON: "A member asked within a minute of the last run; `retryAt` says when.",
  BUDGET_LOW: "The CRM company's tokens of the day are needed for its other apps; `retryAt` says when to ask again.",
  FIELD_NOT_FOUND: "The CRM has no such field of the entity.",
  FIELD_NOT_WRITABLE: "A standard field, or one of a type that cannot be written.",
  FIELD_NOT_MAPPED: "No field of the entity is nominated.",
  MEETING_NOT_FOUND: "The tenant has recorded no such meeting.",
  DEAL_NOT_FOUND: "No deal that the tenant may read; unknown, foreign and unmatched ones are answered alike.",
  LIMIT_REACHED: "The tenant has begun as many of these as it may; `retryAt` says when that changes.",
  TARGET_NOT_MATCHED: "The record is not matched to this meeting; unknown and foreign ones are answered alike.",
  NEEDS_CHOICE: "Several records could be meant, or none is certain; say which.",
  CONTENT_TOO_LONG: "The text is longer than what can be written.",
  IDEMPOTENCY_KEY_REUSED: "The idempotency key was used with another input.",
  INVALID_INPUT: "An input is not usable; `field` names it.",
};
export type RefusalCode = keyof typeof REFUSALS;
export const RefusalCodeEnum = apiEnum("RefusalCode", "Why something was refused.", REFUSALS);

@ObjectType({
  description: "A refusal that a client should handle. Bugs and bad documents are GraphQL errors instead.",
})
export class Refusal {
  @Field(() => RefusalCodeEnum, { description: "Machine-readable." })
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

/** What an operation answers with: what came of it, or why it was refused. */
export const resultOf = <Success extends object>(name: string, success: () => ClassType<Success>) =>
  createUnionType({
    name,
    description: "What came of it, or why it was refused.",
    types: () => [success(), Refusal] as const,
  });
