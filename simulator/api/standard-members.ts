import type { FieldEntity } from "../model/fields";
import { isDate, isId, isInstant, isObject } from "./request-body";

/** Says whether a value is of the member's kind. */
type Kind = (value: unknown) => boolean;

const text: Kind = (value) => typeof value === "string";
const number: Kind = (value) => typeof value === "number";
const flag: Kind = (value) => typeof value === "boolean";
const time: Kind = (value) =>
  typeof value === "string" && /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?$/.test(value) && isTime(value);
const list: Kind = Array.isArray;
const ids: Kind = (value) => Array.isArray(value) && value.every(isId);
const orNull =
  (kind: Kind): Kind =>
  (value) =>
    value === null || kind(value);

function isTime(value: string): boolean {
  return isInstant(`${value.slice(0, 10)}T${value.slice(11, 19)}Z`);
}

/**
 * What a PATCH may change beside the custom fields: as the official client's types have it. All of it takes effect, so
 * that a client which should never send a standard member does harm here as it would there.
 */
export const standardMembers: Readonly<Record<FieldEntity, Readonly<Record<string, Kind>>>> = {
  deal: {
    title: text,
    owner_id: isId,
    person_id: orNull(isId),
    org_id: orNull(isId),
    pipeline_id: isId,
    stage_id: isId,
    value: number,
    currency: text,
    is_deleted: flag,
    is_archived: flag,
    archive_time: orNull(time),
    status: (value) => ["open", "won", "lost", "deleted"].includes(String(value)),
    probability: orNull(number),
    lost_reason: orNull(text),
    visible_to: isId,
    close_time: orNull(time),
    won_time: orNull(time),
    lost_time: orNull(time),
    expected_close_date: orNull(isDate),
    label_ids: ids,
  },
  person: {
    name: text,
    owner_id: isId,
    org_id: orNull(isId),
    emails: list,
    phones: list,
    visible_to: isId,
    label_ids: ids,
    postal_address: orNull(isObject),
    notes: orNull(text),
    im: list,
    birthday: orNull(isDate),
    job_title: orNull(text),
  },
  organization: {
    name: text,
    owner_id: isId,
    visible_to: isId,
    label_ids: ids,
    address: orNull(isObject),
    website: orNull(text),
    linkedin: orNull(text),
    industry: orNull(number),
    annual_revenue: orNull(number),
    employee_count: orNull(number),
  },
};
