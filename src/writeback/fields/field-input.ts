import type { MatchedEntity } from "../../entities/matched-record";
import { hashOf } from "../idempotency";
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

export function intentOf({ meetingId, values, idempotencyKey }: AskedFields): FieldsIntent {
  const sent = values.map(({ entity, targetId, value }) => [entity, targetId, value]);
  return { idempotencyKey, inputHash: hashOf([meetingId, sent]) };
}
