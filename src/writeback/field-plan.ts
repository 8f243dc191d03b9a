import { isCustomFieldKey } from "../crm/parsing/fields";
import type { MatchedEntity } from "../entities/meeting";
import type { FieldMappingRow } from "../entities/writeback";
import { accepted, type Outcome, type Refused, refused } from "../platform/errors";
import { readValue } from "./field-values";
import type { BatchField } from "./record-batch";
import { type AskedTarget, type ChoiceRefusal, type MeetingTargets, type Target, targetOf } from "./targets";
import type { WriteFailure } from "./write-failure";

export interface AskedField {
  entity: MatchedEntity;
  /** As the client sent it; null: the only matched record of the entity. */
  targetId: string | null;
  /** What that id names. */
  target: AskedTarget;
  value: unknown;
}

/** One value on its record, and why it is not to be sent where it is not. */
export interface PlannedField extends BatchField {
  target: Target;
  failure: WriteFailure | null;
}

/** All values of one mutation, with what their targets were proved by. */
export interface FieldsPlan {
  held: MeetingTargets;
  fields: readonly PlannedField[];
}

export type PlanRefusal = ChoiceRefusal | "FIELD_NOT_MAPPED" | "INVALID_INPUT";

/**
 * Where each value goes, and whether it can (decision 0028). A wrong target refuses the whole, because it is the caller's
 * mistake; a value that its field does not take is one field's failure and hides no other.
 */
export function planFields(
  held: MeetingTargets,
  mappings: readonly FieldMappingRow[],
  asked: readonly AskedField[],
): Outcome<FieldsPlan, PlanRefusal> {
  const planned: PlannedField[] = [];
  for (const [position, field] of asked.entries()) {
    const target = targetOf(held, field.entity, field.targetId === null ? undefined : field.target);
    if (!target.ok) return at(position, "targetId", target);
    const mapping = mappings.find(({ entity }) => entity === field.entity);
    if (!mapping || !isCustomFieldKey(mapping.fieldKey)) {
      const message = `No field of a ${field.entity.toLowerCase()} is nominated. An owner or admin can choose one.`;
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
    planned.push({ target: target.value, key: mapping.fieldKey, ...fitting(mapping, field.value) });
  }
  return accepted({ held, fields: planned });
}

function fitting(mapping: FieldMappingRow, asked: unknown): Pick<PlannedField, "type" | "value" | "failure"> {
  const { fieldName: name, fieldType: type, options, health } = mapping;
  if (health === "MISSING_IN_CRM") {
    const message = `The CRM no longer has the field "${name}". Nominate another.`;
    return { type, value: null, failure: { code: "FIELD_NOT_FOUND", message } };
  }
  const reading = readValue({ name, type, options }, asked);
  if ("wire" in reading) return { type, value: reading.wire, failure: null };
  return { type, value: null, failure: { code: "VALUE_REJECTED", message: reading.fault } };
}

function at<Code extends string>(position: number, member: string | null, why: Refused<Code>): Refused<Code> {
  return { ...why, field: ["values", position, member].filter((part) => part !== null).join(".") };
}
