import { isDeeperThan } from "../../crm/parsing/values";
import type { MatchedEntity } from "../../entities/matched-record";
import { accepted, type Outcome, refused } from "../../platform/outcome";
import { faultOfKey, hashOf } from "../idempotency";
import type { AskedTarget } from "../targets";

export interface AskedField {
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

export interface FieldsIntent {
  idempotencyKey: string;
  inputHash: string;
}

/** A meeting has few people; each record costs up to two requests of at most 30 s. */
const MAX_VALUES = 20;
/** A field's value is an object of texts and numbers at most. */
const MAX_DEPTH = 4;

export function checkFields({
  meetingId,
  values,
  idempotencyKey,
}: AskedFields): Outcome<FieldsIntent, "INVALID_INPUT"> {
  const fault = faultOfKey(idempotencyKey);
  if (fault) return refused("INVALID_INPUT", `idempotencyKey ${fault}.`, "idempotencyKey");
  if (values.length === 0 || values.length > MAX_VALUES) {
    return refused("INVALID_INPUT", `values must have 1 to ${MAX_VALUES} entries.`, "values");
  }
  const deep = values.findIndex(({ value }) => isDeeperThan(value, MAX_DEPTH));
  if (deep >= 0) return refused("INVALID_INPUT", `values.${deep}.value is nested too deeply.`, `values.${deep}.value`);
  const sent = values.map(({ entity, targetId, value }) => [entity, targetId, value]);
  return accepted({ idempotencyKey, inputHash: hashOf([meetingId, sent]) });
}
