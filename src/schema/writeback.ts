import { ArrayMaxSize, ArrayMinSize, ValidateNested } from "class-validator";
import { ArgsType, createUnionType, Field, ID, InputType, registerEnumType } from "type-graphql";
import { isDeeperThan } from "../crm/parsing/values";
import { faultOfKey } from "../writeback/writing";
import { Checked, NotBlank } from "./checks";
import { CrmEntity } from "./crm-entity";
import { Node } from "./node";
import { ObjectType } from "./object-type";
import { PageArgs, PageInfo, type RelayPage } from "./page";
import { Refusal } from "./refusal";
import { JsonScalar } from "./scalars";

export enum WriteState {
  WRITTEN = "WRITTEN",
  FAILED = "FAILED",
  UNKNOWN = "UNKNOWN",
}
registerEnumType(WriteState, {
  name: "WriteState",
  description: "What became of a write.",
  valuesConfig: {
    WRITTEN: { description: "Accepted by the CRM, seen in its answer." },
    FAILED: { description: "Certainly not in the CRM." },
    UNKNOWN: { description: "The answer was lost; it will be looked up, and is never sent twice." },
  },
});

export enum WriteErrorCode {
  FIELD_NOT_FOUND = "FIELD_NOT_FOUND",
  VALUE_REJECTED = "VALUE_REJECTED",
  NOT_APPLIED = "NOT_APPLIED",
  RECORD_NOT_FOUND = "RECORD_NOT_FOUND",
  FORBIDDEN = "FORBIDDEN",
  RATE_LIMITED = "RATE_LIMITED",
  CRM_UNAVAILABLE = "CRM_UNAVAILABLE",
  NEEDS_REAUTHORIZATION = "NEEDS_REAUTHORIZATION",
  CRM_ACCOUNT_CLOSED = "CRM_ACCOUNT_CLOSED",
  ANSWER_LOST = "ANSWER_LOST",
}
registerEnumType(WriteErrorCode, {
  name: "WriteErrorCode",
  description: "Why a write failed, or why it is not known.",
  valuesConfig: {
    FIELD_NOT_FOUND: { description: "The CRM has no such field on this kind of record." },
    VALUE_REJECTED: { description: "The CRM does not accept the value or the text." },
    NOT_APPLIED: { description: "The CRM answered with another value than the one sent." },
    RECORD_NOT_FOUND: { description: "The record is gone, or the authorizing user does not see it." },
    FORBIDDEN: { description: "The authorizing user or the app lacks a permission in the CRM." },
    RATE_LIMITED: { description: "The CRM's request limit is used up; nothing was written." },
    CRM_UNAVAILABLE: { description: "The CRM could not be reached; nothing was sent." },
    NEEDS_REAUTHORIZATION: { description: "The CRM no longer accepts the authorization; nothing was written." },
    CRM_ACCOUNT_CLOSED: { description: "The CRM company's account is not open." },
    ANSWER_LOST: {
      description: "The CRM's answer was lost: UNKNOWN until it is looked up, FAILED where nothing is there.",
    },
  },
});

@ObjectType()
export class WriteError {
  @Field(() => WriteErrorCode)
  code!: WriteErrorCode;

  @Field(() => String, { description: "What happened and what to do." })
  message!: string;
}

@ObjectType({ implements: Node, description: "The receipt of one note. It stays when the CRM is disconnected." })
export class NoteWrite extends Node {
  @Field(() => CrmEntity)
  entity!: CrmEntity;

  @Field(() => WriteState)
  state!: WriteState;

  @Field(() => String, { nullable: true, description: "The note's id in the CRM, once it is written." })
  crmNoteId!: string | null;

  @Field(() => String, { description: "The note's last line in the CRM names it; by it a lost answer is looked up." })
  reference!: string;

  @Field(() => WriteError, { nullable: true })
  error!: WriteError | null;

  @Field(() => Date)
  requestedAt!: Date;

  @Field(() => String, { description: "The user of this service who asked for it." })
  requestedBy!: string;

  @Field(() => Date, { nullable: true, description: "When it was found out; null while it is UNKNOWN." })
  settledAt!: Date | null;

  links!: WriteLinks;
}

@ObjectType({ implements: Node, description: "The receipt of one field value. It stays when the CRM is disconnected." })
export class FieldWrite extends Node {
  @Field(() => CrmEntity)
  entity!: CrmEntity;

  @Field(() => String)
  fieldKey!: string;

  @Field(() => WriteState)
  state!: WriteState;

  @Field(() => WriteError, { nullable: true })
  error!: WriteError | null;

  @Field(() => Date)
  requestedAt!: Date;

  @Field(() => String, { description: "The user of this service who asked for it." })
  requestedBy!: string;

  @Field(() => Date, { nullable: true, description: "When it was found out; null while it is UNKNOWN." })
  settledAt!: Date | null;

  links!: WriteLinks;
}

/** What a receipt names; the target is null where it is of another CRM company than the connected one. */
export interface WriteLinks {
  meeting: string;
  entity: CrmEntity;
  target: number | null;
}

export const CrmWrite = createUnionType({
  name: "CrmWrite",
  description:
    "Every write that the service has made or tried, newest first: what the customer's admin can check. A member sees its own.",
  types: () => [NoteWrite, FieldWrite] as const,
});

@ObjectType()
export class CrmWriteEdge {
  @Field(() => String)
  cursor!: string;

  @Field(() => CrmWrite)
  node!: NoteWrite | FieldWrite;
}

@ObjectType({ description: "Writes, newest first." })
export class CrmWriteConnection implements RelayPage<NoteWrite | FieldWrite> {
  @Field(() => [CrmWriteEdge])
  edges!: CrmWriteEdge[];

  @Field(() => [CrmWrite], { description: "The same without their cursors." })
  nodes!: (NoteWrite | FieldWrite)[];

  @Field(() => PageInfo)
  pageInfo!: PageInfo;
}

@ArgsType()
export class CrmWritesArgs extends PageArgs {
  @Field(() => ID, {
    nullable: true,
    description: "Only those for one meeting; nothing for one that this tenant has not.",
  })
  meetingId?: string | null;

  @Field(() => String, {
    nullable: true,
    description:
      "Only the viewer's own with this key, for a client that lost an answer. One that is being sent is shown as UNKNOWN.",
  })
  idempotencyKey?: string | null;
}

@InputType()
export class WriteNoteInput {
  @Field(() => ID)
  meetingId!: string;

  @Field(() => ID, {
    nullable: true,
    description:
      "A deal, person or organization certainly matched to the meeting; absent: the meeting's deal, or its only person where no deal could be meant.",
  })
  targetId?: string | null;

  @NotBlank()
  @Field(() => String, { description: "Markdown. At most 60,000 characters." })
  content!: string;

  @Checked("idempotencyKey", (value) => faultOfKey(String(value)))
  @Field(() => String, {
    description: "Chosen by the client; the same key with the same input gives the same write, never a second note.",
  })
  idempotencyKey!: string;
}

@ObjectType()
export class WriteNoteSuccess {
  @Field(() => NoteWrite, { description: "Also where it FAILED or is UNKNOWN: its state says so." })
  write!: NoteWrite;
}

export const WriteNoteResult = createUnionType({
  name: "WriteNoteResult",
  types: () => [WriteNoteSuccess, Refusal] as const,
});

/** A field's value is an object of texts and numbers at most. */
const MAX_DEPTH = 4;

@InputType({ description: "A value for the nominated field of one record." })
export class FieldValueInput {
  @Field(() => CrmEntity)
  entity!: CrmEntity;

  @Field(() => ID, {
    nullable: true,
    description: "Which certainly matched record of that entity; absent: the only one.",
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

@InputType()
export class WriteFieldsInput {
  @Field(() => ID)
  meetingId!: string;

  @ArrayMinSize(1, { message: ENTRIES })
  @ArrayMaxSize(MAX_VALUES, { message: ENTRIES })
  @ValidateNested({ each: true })
  @Field(() => [FieldValueInput], { description: "1 to 20, each record once." })
  values!: FieldValueInput[];

  @Checked("idempotencyKey", (value) => faultOfKey(String(value)))
  @Field(() => String, {
    description: "Chosen by the client; the same key with the same input gives the same report, and nothing is sent.",
  })
  idempotencyKey!: string;
}

@ObjectType({
  description: "One entry for each value sent, in the order sent: a failed field never hides one that was written.",
})
export class WriteFieldsReport {
  @Field(() => [FieldWrite])
  writes!: FieldWrite[];

  @Field(() => Boolean)
  allWritten!: boolean;
}

export const WriteFieldsResult = createUnionType({
  name: "WriteFieldsResult",
  types: () => [WriteFieldsReport, Refusal] as const,
});
