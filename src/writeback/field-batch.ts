import { areLabelsOld, hasOptions } from "../connections/field-lists";
import { readFieldMappings } from "../connections/field-mappings";
import type { CrmApi, WrittenFields } from "../crm/api";
import { type CrmCustomFields, type CrmRecordRef, type CustomFieldKey, isCustomFieldKey } from "../crm/parsing/fields";
import type { TenantScope } from "../database/database";
import type { MatchedEntity } from "../entities/meeting";
import type { FieldMappingRow, FieldWriteRow, StoredWriteErrorCode } from "../entities/writeback";
import { accepted, type Outcome, type Refused, refused } from "../platform/errors";
import { isApplied, readValue } from "./field-values";
import { certainFailureOf, inSight, NOT_APPLIED, type WriteFailure, type WriteOutcome } from "./outcomes";
import {
  type AskedTarget,
  holdTargets,
  type MeetingTargets,
  type Target,
  type TargetsRefusal,
  targetOf,
  type UncertainRefusal,
} from "./targets";

interface AskedField {
  entity: MatchedEntity;
  /** As the client sent it; null: the only matched record of the entity. */
  targetId: string | null;
  /** What that id names. */
  target: AskedTarget;
  value: unknown;
}

export interface AskedFields {
  meetingId: string;
  /** What that id names; null where it is no meeting's. */
  meeting: string | null;
  values: AskedField[];
  idempotencyKey: string;
}

/** One value on its record, and why it is not to be sent where it is not. */
interface PlannedField extends BatchField {
  target: Target;
  failure: WriteFailure | null;
  /** The CRM's list, read anew, may say otherwise. */
  inDoubt: boolean;
}

/** A value with its receipt, as it is sent. */
export interface ReceiptedField extends PlannedField {
  receipt: FieldWriteRow;
}
export type RecordBatch = [ReceiptedField, ...ReceiptedField[]];

/** All values of one mutation, with what their targets were proved by. */
export interface FieldsPlan {
  held: MeetingTargets;
  fields: readonly PlannedField[];
}

export type PlanRefusal = UncertainRefusal | "FIELD_NOT_MAPPED" | "INVALID_INPUT";

/** Why the CRM's list of an entity's fields could not be read. */
export type UnreadLists = ReadonlyMap<MatchedEntity, WriteFailure>;

/** The plan, in the transaction that makes its receipts. */
export async function planOfFields(
  scope: TenantScope,
  { meeting, values }: AskedFields,
  now: Date,
  unread: UnreadLists = new Map(),
): Promise<Outcome<FieldsPlan, TargetsRefusal | PlanRefusal>> {
  const held = await holdTargets(scope, meeting);
  return held.ok ? planFields(held.value, await readFieldMappings(scope), values, { now, unread }) : held;
}

/**
 * Where each value goes, and whether it can (decision 0028). A wrong target refuses the whole, because it is the caller's
 * mistake; a value that its field does not take is one field's failure and hides no other.
 */
function planFields(
  held: MeetingTargets,
  mappings: readonly FieldMappingRow[],
  asked: readonly AskedField[],
  { now, unread }: { now: Date; unread: UnreadLists },
): Outcome<FieldsPlan, PlanRefusal> {
  const planned: PlannedField[] = [];
  for (const [position, field] of asked.entries()) {
    const target = targetOf(held, field.entity, field.targetId === null ? undefined : field.target);
    if (!target.ok) return at(position, "targetId", target);
    const mapping = mappings.find(({ entity }) => entity === field.entity);
    if (!mapping || !isCustomFieldKey(mapping.fieldKey)) {
      const message = `No ${field.entity.toLowerCase()} field is nominated. An owner or admin can choose one.`;
      return at(position, "entity", refused("FIELD_NOT_MAPPED", message));
    }
    const { id } = target.value;
    if (planned.some(({ target: other }) => other.entity === field.entity && other.id === id)) {
      return at(
        position,
        null,
        refused("INVALID_INPUT", "The same field of the same record is given twice. Give it one value."),
      );
    }
    const fit = fitting(mapping, field.value, now);
    const failure = (fit.inDoubt && unread.get(field.entity)) || fit.failure;
    planned.push({ target: target.value, key: mapping.fieldKey, ...fit, failure });
  }
  return accepted({ held, fields: planned });
}

function fitting(mapping: FieldMappingRow, asked: unknown, now: Date): Omit<PlannedField, "target" | "key"> {
  const { fieldName: name, fieldType: type, options, health, checkedAt } = mapping;
  const isOld = areLabelsOld(checkedAt, now);
  const failed = (failure: WriteFailure) => ({ type, value: null, failure, inDoubt: isOld });
  if (health === "MISSING_IN_CRM")
    return failed({ code: "FIELD_NOT_FOUND", message: `The CRM no longer has the field "${name}". Nominate another.` });
  const reading = readValue({ name, type, options, writable: health !== "NOT_WRITABLE" }, asked);
  if ("fault" in reading) return failed({ code: "VALUE_REJECTED", message: reading.fault });
  const isByLabel = hasOptions(type) && reading.wire !== null && String(reading.wire) !== String(asked);
  return { type, value: reading.wire, failure: null, inDoubt: isByLabel && isOld };
}

function at<Code extends string>(position: number, member: string | null, why: Refused<Code>): Refused<Code> {
  return { ...why, field: ["values", position, member].filter((part) => part !== null).join(".") };
}

/** The values of one record together, in the order of their first. */
export function batchesOf(fields: readonly ReceiptedField[]): RecordBatch[] {
  const batches = new Map<string, RecordBatch>();
  for (const field of fields) {
    const record = `${field.target.entity}:${field.target.id}`;
    const batch = batches.get(record);
    if (batch) batch.push(field);
    else batches.set(record, [field]);
  }
  return [...batches.values()];
}

interface BatchField {
  key: CustomFieldKey;
  type: string;
  /** As it goes on the wire; null clears the field. */
  value: unknown;
}
export type Batch = readonly [BatchField, ...BatchField[]];

export interface RecordReport {
  /** In the order of the batch. */
  outcomes: WriteOutcome[];
  /** What was thrown for each, where something was; of one that is WRITTEN all the same it says nothing. */
  errors: unknown[];
  /** The record's custom fields as the CRM last showed them; null where it showed none. */
  seen: WrittenFields | null;
  /** Why nothing more is to be sent to this CRM for now; null where it may. */
  stop: WriteFailure | null;
}

/** These hold for whatever is sent next: no second try, and nothing for other records either. */
const STOPPING: ReadonlySet<StoredWriteErrorCode> = new Set(["RATE_LIMITED", "NEEDS_REAUTHORIZATION"]);

const UNKNOWN: WriteOutcome = { state: "UNKNOWN" };

/** `failure` is null where the answer is lost. */
type Attempt = { seen: WrittenFields } | Failed;
type Failed = { failure: WriteFailure | null; error: unknown };

/**
 * Writes the fields of one record as one batch; where that fails, each of them once alone (specification 4.3.1). A
 * field is sent at most twice, which does no harm: it is the same value. What may have been written by a lost answer
 * stays UNKNOWN unless a later answer shows it.
 */
export async function writeRecord(
  api: Pick<CrmApi, "setCustomFields" | "isShown">,
  record: CrmRecordRef,
  batch: Batch,
): Promise<RecordReport> {
  const together = await attempt(api, record, batch);
  if ("seen" in together) {
    return { outcomes: batch.map((one) => seenAs(one, together.seen)), errors: [], seen: together.seen, stop: null };
  }
  const said = await inSight(api, record, together.failure);
  const errors: unknown[] = batch.map(() => together.error);
  if (said !== together.failure) return { outcomes: batch.map(() => failed(said)), errors, seen: null, stop: null };
  const outcomes: WriteOutcome[] = [];
  let seen: WrittenFields | null = null;
  let last: Failed = together;
  for (const [position, field] of batch.entries()) {
    const alone: Attempt = stopOf(last) ? last : await attempt(api, record, [field]);
    if ("seen" in alone) seen = alone.seen;
    else [last, errors[position]] = [alone, alone.error];
    const outcome = "seen" in alone ? seenAs(field, alone.seen) : failed(alone.failure);
    // The lost batch may still take effect: only a value that is seen to be there is certain after it.
    outcomes.push(together.failure || outcome.state === "WRITTEN" ? outcome : UNKNOWN);
  }
  return { outcomes, errors, seen, stop: stopOf(last) };
}

/** What was not sent at all, because the CRM had said before that it takes nothing now. */
export function notSent(batch: Batch, stop: WriteFailure): RecordReport {
  return { outcomes: batch.map(() => failed(stop)), errors: [], seen: null, stop };
}

async function attempt(
  api: Pick<CrmApi, "setCustomFields">,
  { entity, id }: CrmRecordRef,
  batch: Batch,
): Promise<Attempt> {
  try {
    return { seen: await api.setCustomFields(entity, id, batch) };
  } catch (error) {
    return { failure: certainFailureOf(error), error };
  }
}

const stopOf = ({ failure }: Failed) => (failure && STOPPING.has(failure.code) ? failure : null);

function seenAs({ key, type, value }: BatchField, { customFields }: CrmCustomFields): WriteOutcome {
  return isApplied(type, value, customFields[key]) ? { state: "WRITTEN" } : { state: "FAILED", failure: NOT_APPLIED };
}

const failed = (failure: WriteFailure | null): WriteOutcome => (failure ? { state: "FAILED", failure } : UNKNOWN);
