import { ArrayMaxSize, ArrayMinSize, ValidateNested } from "class-validator";
import { ArgsType, createUnionType, Field, ID, InputType } from "type-graphql";
import { isDeeperThan } from "../crm/parsing/values";
import type { MatchedEntity } from "../entities/meeting";
import type { FieldWriteRow, NoteWriteRow, StoredWriteErrorCode, StoredWriteState } from "../entities/writeback";
import { faultOfKey } from "../writeback/write-history";
import { apiEnum, connectionOf, JsonScalar, Node, ObjectType, PageArgs } from "./base";
import { CrmEntityEnum } from "./crm";
import { Checked, NotBlank, resultOf } from "./refusal";

/** One whose answer is still awaited is UNKNOWN to whoever asks. */
export type WriteState = Exclude<StoredWriteState, "SENDING">;
const WriteStateEnum = apiEnum<WriteState>("WriteState", "What became of a write.", {
  WRITTEN: "Accepted by the CRM: seen in its answer, or found there later.",
  FAILED: "Certainly not in the CRM as it was sent.",
  UNKNOWN: "It is being sent, or its answer was lost: that is looked up, and nothing is sent twice.",
});

const WriteErrorCodeEnum = apiEnum<StoredWriteErrorCode>(
  "WriteErrorCode",
  "Why a write failed, or why it is not known.",
  {
    FIELD_NOT_FOUND: "The CRM has no such field on this kind of record.",
    VALUE_REJECTED: "The CRM does not accept the value or the text.",
    NOT_APPLIED: "The CRM holds another value than was sent, maybe cut.",
    RECORD_NOT_FOUND: "The record is gone, or the authorizing user does not see it.",
    FORBIDDEN: "The authorizing user or the app lacks a permission in the CRM.",
    RATE_LIMITED: "The CRM's request limit is used up; nothing was written.",
    CRM_UNAVAILABLE:
      "The CRM could not be reached or was too slow, or the operator has stopped all calls; nothing was sent.",
    NEEDS_REAUTHORIZATION: "The CRM no longer accepts the authorization, or was disconnected; nothing was written.",
    CRM_ACCOUNT_CLOSED: "The CRM company's account is not open.",
    ANSWER_LOST:
      "The CRM's answer was lost: UNKNOWN until it is looked up, FAILED where it is not there as it was sent.",
  },
);

@ObjectType({ description: "Why a write failed or is not known." })
export class WriteError {
  @Field(() => WriteErrorCodeEnum, { description: "Machine-readable." })
  code!: StoredWriteErrorCode;

  @Field(() => String, { description: "What happened and what to do." })
  message!: string;
}

const WHY_NOT = "Why it is not WRITTEN; null where it is, and while it is being sent.";

@ObjectType({ implements: Node, description: "The receipt of one note. It stays when the CRM is disconnected." })
export class NoteWrite extends Node {
  @Field(() => CrmEntityEnum, { description: "What kind of record it was written on." })
  entity!: MatchedEntity;

  @Field(() => WriteStateEnum, { description: "What became of it." })
  state!: WriteState;

  @Field(() => String, { nullable: true, description: "The note's id in the CRM, once it is written." })
  crmNoteId!: number | null;

  @Field(() => String, { description: "The note's last line in the CRM names it; by it a lost answer is looked up." })
  reference!: string;

  @Field(() => WriteError, { nullable: true, description: WHY_NOT })
  error!: WriteError | null;

  @Field(() => Date, { description: "When it was asked for." })
  requestedAt!: Date;

  @Field(() => String, { description: "The user of this service who asked for it." })
  requestedBy!: string;

  @Field(() => Date, { nullable: true, description: "When it was found out; null while it is UNKNOWN." })
  settledAt!: Date | null;
}

@ObjectType({ implements: Node, description: "The receipt of one field value. It stays when the CRM is disconnected." })
export class FieldWrite extends Node {
  @Field(() => CrmEntityEnum, { description: "What kind of record it was written to." })
  entity!: MatchedEntity;

  @Field(() => String, { description: "The field that was nominated then." })
  fieldKey!: string;

  @Field(() => WriteStateEnum, { description: "What became of it." })
  state!: WriteState;

  @Field(() => WriteError, { nullable: true, description: WHY_NOT })
  error!: WriteError | null;

  @Field(() => Date, { description: "When it was asked for." })
  requestedAt!: Date;

  @Field(() => String, { description: "The user of this service who asked for it." })
  requestedBy!: string;

  @Field(() => Date, { nullable: true, description: "When it was found out; null while it is UNKNOWN." })
  settledAt!: Date | null;
}

export const CrmWrite = createUnionType({
  name: "CrmWrite",
  description:
    "Every write that the service has made or tried, newest first: what the customer's admin can check. A member sees its own.",
  types: () => [NoteWrite, FieldWrite] as const,
});

export const CrmWriteConnection = connectionOf("CrmWrite", () => CrmWrite, "Writes, newest first.");

@ArgsType()
export class CrmWritesArgs extends PageArgs {
  @Field(() => ID, {
    nullable: true,
    description: "Only those for one meeting, also where that was deleted; nothing for one that this tenant never had.",
  })
  meetingId?: string | null;

  @Field(() => String, {
    nullable: true,
    description:
      "Only the viewer's own with this key, for a client that lost an answer: of a call of `writeFields` one for each value, and a note that has the same key. One that is being sent is shown as UNKNOWN.",
  })
  idempotencyKey?: string | null;
}

@InputType({ description: "A note for one record." })
export class WriteNoteInput {
  @Field(() => ID, { description: "The global id of a recorded meeting." })
  meetingId!: string;

  @Field(() => ID, {
    nullable: true,
    description:
      "A deal, person or organization certainly matched to the meeting; absent: the meeting's deal, or its only person where no deal could be meant; while the CRM's persons or deals are read for the first time, a chosen deal alone.",
  })
  targetId?: string | null;

  @NotBlank()
  @Field(() => String, {
    description:
      "Markdown. At most 60,000 characters, and 100,000 bytes as HTML. What has more than anybody writes of lines (5,000), links (2,000), marks or cells of a table (10,000), levels (40) or brackets left open is sent as typed, not formatted.",
  })
  content!: string;

  @Checked("idempotencyKey", (value) => faultOfKey(String(value)))
  @Field(() => String, {
    description:
      "1 to 200 characters, chosen by the client, one note's within the tenant, whoever writes: a UUID, or one with the user in it. The same key with the same input gives the same write, never a second note; another user's is shown to no member by `node` or `crmWrites`. Fields have keys of their own.",
  })
  idempotencyKey!: string;
}

@ObjectType({ description: "The note's receipt." })
export class WriteNoteSuccess {
  @Field(() => NoteWrite, { description: "Also where it FAILED or is UNKNOWN: its state says so." })
  write!: NoteWriteRow;
}

export const WriteNoteResult = resultOf("WriteNoteResult", () => WriteNoteSuccess);

/** A field's value is an object of texts and numbers at most. */
const MAX_DEPTH = 4;

@InputType({ description: "A value for the nominated field of one record." })
export class FieldValueInput {
  @Field(() => CrmEntityEnum, { description: "Whose nominated field is written." })
  entity!: MatchedEntity;

  @Field(() => ID, {
    nullable: true,
    description:
      "Which certainly matched record of that entity; absent: the only one; while the CRM's persons or deals are read for the first time, a chosen deal alone.",
  })
  targetId?: string | null;

  @Checked("shallow", (value) => (isDeeperThan(value, MAX_DEPTH) ? "is nested too deeply" : null))
  @Field(() => JsonScalar, {
    description:
      'As the field\'s type has it: text, a number, { "value": "1250.50", "currency": "EUR" }, an option\'s id or label. A number as text is exact. "" clears the field.',
  })
  value!: unknown;
}

/** A meeting has few people; each record costs up to two requests of at most 30 s. */
const MAX_VALUES = 20;
const ENTRIES = `must have 1 to ${MAX_VALUES} entries`;

@InputType({ description: "Values for nominated fields." })
export class WriteFieldsInput {
  @Field(() => ID, { description: "The global id of a recorded meeting." })
  meetingId!: string;

  @ArrayMinSize(1, { message: ENTRIES })
  @ArrayMaxSize(MAX_VALUES, { message: ENTRIES })
  @ValidateNested({ each: true })
  @Field(() => [FieldValueInput], { description: "1 to 20, each record once." })
  values!: FieldValueInput[];

  @Checked("idempotencyKey", (value) => faultOfKey(String(value)))
  @Field(() => String, {
    description:
      "1 to 200 characters, chosen by the client, one call's within the tenant, whoever writes: a UUID, or one with the user in it. The same key with the same input gives the same report, and nothing is sent; another user's is shown to no member by `node` or `crmWrites`. Notes have keys of their own.",
  })
  idempotencyKey!: string;
}

@ObjectType({
  description: "One entry for each value sent, in the order sent: a failed field never hides one that was written.",
})
export class WriteFieldsReport {
  @Field(() => [FieldWrite], { description: "In the order of the values." })
  writes!: FieldWriteRow[];

  @Field(() => Boolean, { description: "Whether each is WRITTEN." })
  allWritten!: boolean;
}

export const WriteFieldsResult = resultOf("WriteFieldsResult", () => WriteFieldsReport);
