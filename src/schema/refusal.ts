import { MaxDate, MinDate, ValidateBy, type ValidationArguments } from "class-validator";
import { type ClassType, createUnionType, Field } from "type-graphql";
import { normalizeAddress } from "../platform/email-address";
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
  FIELD_NOT_WRITABLE: "A standard field, or one that cannot be written.",
  FIELD_NOT_MAPPED: "No field of the entity is nominated.",
  MEETING_NOT_FOUND: "The tenant has recorded no such meeting.",
  DEAL_NOT_FOUND: "No deal that the tenant may read; unknown, foreign and unmatched ones are answered alike.",
  LIMIT_REACHED: "The tenant has begun as many of these as it may; `retryAt` says when that changes.",
  TARGET_NOT_MATCHED:
    "The record is not matched to this meeting; an unknown or foreign target of a write is answered alike.",
  NEEDS_CHOICE: "Several records could be meant, or none is certain; say which.",
  CHANGED_MEANWHILE: "Others have saved meanwhile; nothing was saved. Read anew what this is based on.",
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
    description: "From when on it may be tried again; null where that is not known, or time changes nothing.",
  })
  retryAt!: Date | null;
}

/** The union that an operation answers with: its success, or a refusal. */
export const resultOf = <Success extends object>(name: string, success: () => ClassType<Success>) =>
  createUnionType({
    name,
    description: "What came of it, or why it was refused.",
    types: () => [success(), Refusal] as const,
  });

/** Ends a sentence that begins with the field's name and says what is wrong with its value; null: nothing is. */
type FaultOf = (value: unknown, within: object) => string | null;

/** A check of an input's field by a function of our own. A field that is absent or null is not checked. */
export function Checked(name: string, faultOf: FaultOf): PropertyDecorator {
  const fault = (of?: ValidationArguments) => (of ? faultOf(of.value, of.object) : null);
  return ValidateBy({
    name,
    validator: { validate: (_value, of) => fault(of) === null, defaultMessage: (of) => fault(of) ?? "is not valid" },
  });
}

const asText = (value: unknown) => (typeof value === "string" ? value : "");

/** Text of so many characters once it is trimmed, that PostgreSQL can hold. */
export const Text = (least: 0 | 1, most: number) =>
  Checked("text", (value) => {
    const text = asText(value).trim();
    if (text.length < least) return "must not be empty";
    if (text.length > most) return `must have at most ${most} characters`;
    return text.includes("\0") ? "must not contain a NUL character" : null;
  });

/** Text by which something is found again: no other than the one that PostgreSQL would keep in its place. */
export const WellFormed = () =>
  Checked("wellFormed", (value) =>
    /\p{Surrogate}/u.test(asText(value)) ? "must not contain half a surrogate pair" : null,
  );

export const NotBlank = () =>
  Checked("notBlank", (value) => (asText(value).trim() === "" ? "must not be empty" : null));

export const HoldsAddress = () =>
  Checked("holdsAddress", (value) => (normalizeAddress(asText(value)) === null ? "is not an e-mail address" : null));

export const CurrencyCode = () =>
  Checked("currency", (value) => (/^[A-Z]{3}$/.test(asText(value)) ? null : "is not a code of three capital letters"));

const EARLIEST = new Date("1970-01-01");
const LATEST = new Date("2199-12-31T23:59:59.999Z");

/** A year with a wrong digit would otherwise be kept, and judged by. */
export function SensibleInstant(): PropertyDecorator {
  const checks = [
    MinDate(EARLIEST, { message: "must not be before 1970" }),
    MaxDate(LATEST, { message: "must be before 2200" }),
  ];
  return (target, property) => {
    for (const check of checks) check(target, property);
  };
}

export const NotBefore = <Input extends object>(other: keyof Input & string) =>
  Checked("notBefore", (value, within) => {
    const start: unknown = Reflect.get(within, other);
    return value instanceof Date && start instanceof Date && value < start ? `must not be before ${other}` : null;
  });

/** A field that says nothing without another. */
export const With = <Input extends object>(other: keyof Input & string) =>
  Checked("with", (_value, within) => (Reflect.get(within, other) == null ? `needs ${other} beside it` : null));
