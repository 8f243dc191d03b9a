import { CrmError, isListFailure } from "../crm/errors";
import type { CrmEntity, CrmField } from "../crm/parsing/fields";
import { MAX_TEXT } from "../crm/parsing/values";
import type { CopyScope } from "../database/database";
import { jsonRows } from "../database/upsert";
import { FieldListRow } from "../entities/crm-company";
import { DAY_MS, HOUR_MS, MINUTE_MS, msApart } from "../platform/clock";
import type { Outcome } from "../platform/errors";
import { cutText } from "../platform/safe-html";
import type { Budget } from "./budget";
import { holdLiveCopy } from "./copies";

/** Names of fields and options may be changed at any time, and no record says so. */
const READ_EVERY_MS = DAY_MS;
/** However often records name something unknown; and where it is refused, for as long as that has gone on: a right has to be given. */
const [ASK_APART_MS, LONGEST_REST_MS] = [HOUR_MS, 4 * HOUR_MS];
/** Unknown names that are kept of an entity. A company has a few hundred fields; with more unknown ones the list is due anyway. */
const MOST_UNKNOWN = 500;

/** What records may name without anybody having to look: fields, options, and what was looked for in vain. */
export interface KnownFields {
  /** By their keys. */
  types: ReadonlyMap<string, string>;
  /** Fields by key, options as `key/id`. */
  names: Set<string>;
}

/** Characters of a name with an option's id. */
const LONGEST_NAME = 200;

type CustomFields = Readonly<Record<string, unknown>>;

/** Types whose values are ids of options. */
export const hasOptions = (type: string | undefined) => type === "enum" || type === "set";

/** The ids in a value: one, a list, and where the CRM spells them out, those of objects. */
export function idsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(idsIn);
  if (typeof value === "number" || typeof value === "string") return [String(value)];
  if (typeof value !== "object" || value === null) return [];
  if ("id" in value) return idsIn(value.id);
  return "value" in value ? idsIn(value.value) : [];
}

/** What no list of fields would have anyway: text in the place of an option's id, and what PostgreSQL does not take. */
const isName = (text: string) => text.length <= LONGEST_NAME && !text.includes("\0");
const optionName = (key: string, id: string) => `${key}/${id}`;
const isEmpty = (value: unknown) => value === null || value === undefined || value === "";

export function knownOf(fields: readonly Pick<CrmField, "key" | "type" | "options">[]): KnownFields {
  const options = fields
    .filter(({ type }) => hasOptions(type))
    .flatMap((field) => field.options.map(({ id }) => optionName(field.key, String(id))));
  return {
    types: new Map(fields.map(({ key, type }) => [key, type])),
    names: new Set([...fields.map(({ key }) => key), ...options]),
  };
}

/** What a record names that nobody knows. */
export function unknownIn(values: CustomFields, { types, names }: KnownFields): string[] {
  return Object.entries(values).flatMap(([key, value]) => {
    if (isEmpty(value)) return [];
    if (!types.has(key)) return names.has(key) ? [] : [key];
    if (!hasOptions(types.get(key))) return [];
    return idsIn(value)
      .map((id) => optionName(key, id))
      .filter((name) => !names.has(name));
  });
}

/** Whether a list was asked for so lately that it is not to be asked for again. */
export const isAskedLately = (at: Date, now: Date): boolean => msApart(at, now) < ASK_APART_MS;

type Asked = Pick<FieldListRow, "askedAt" | "readAt" | "failedSince">;
function rests({ askedAt, readAt, failedSince }: Asked, now: Date): boolean {
  if (failedSince === null) return readAt !== null && isAskedLately(readAt, now);
  const failedMs = msApart(failedSince, askedAt);
  return msApart(askedAt, now) < Math.max(ASK_APART_MS, Math.min(LONGEST_REST_MS, failedMs));
}

/** Whether it was asked for lately, and did not come. */
export const hasFailedLately = (list: Asked | null, now: Date): boolean =>
  list !== null && list.failedSince !== null && rests(list, now);

/** Within it a label is taken for the option that had it: who writes many values pays for few lists. */
const LABELS_HOLD_MS = MINUTE_MS;
export const areLabelsOld = (readAt: Date, now: Date): boolean => msApart(readAt, now) >= LABELS_HOLD_MS;

/** How long a reading of a list, or its failure, answers others too. A refusal of the connection ends with what it speaks of. */
export const sharedForMs = (list: Outcome<CrmField[], string>): number =>
  list.ok ? HOUR_MS : list.code === "CRM_UNAVAILABLE" ? MINUTE_MS : 0;

/** For whom a list is shown, and what pays for its reading. */
export interface Onlooker {
  chooses: boolean;
  budget: Pick<Budget, "mayReadFields">;
}

/** Whether the CRM's list is to be asked for now. */
export function isFieldListDue(list: (Asked & Pick<FieldListRow, "wanted">) | null, now: Date): boolean {
  if (!list) return true;
  if (rests(list, now)) return false;
  return list.readAt === null || list.wanted.length > 0 || msApart(list.readAt, now) >= READ_EVERY_MS;
}

export function readFieldList({ tenantId, copyId, typed }: CopyScope, entity: CrmEntity): Promise<FieldListRow | null> {
  return typed((orm) => orm.findOneBy(FieldListRow, { tenantId, copyId, entity }));
}

/** What is known of an entity's fields; null before the list was first read, when all is unknown. */
export async function readKnownFields(copy: CopyScope, entity: CrmEntity): Promise<KnownFields | null> {
  const list = await readFieldList(copy, entity);
  if (!list?.readAt) return null;
  const { tenantId, copyId, rows } = copy;
  const fields = await rows<{ key: string; type: string; options: string[] }>(
    `SELECT key, type, ARRAY (SELECT jsonb_object_keys(options)) AS options FROM crm_field
     WHERE tenant_id = $1 AND copy_id = $2 AND entity = $3`,
    [tenantId, copyId, entity],
    { key: "text", type: "text", options: "json" },
  );
  const known = knownOf(fields.map((field) => ({ ...field, options: field.options.map((id) => ({ id, label: "" })) })));
  for (const name of [...list.wanted, ...list.missing]) known.names.add(name);
  return known;
}

/** Records name what the list does not have: it is asked for when that was not lately. */
export async function noteUnknownFields(
  { tenantId, copyId, rows }: CopyScope,
  entity: CrmEntity,
  records: readonly { customFields: CustomFields }[],
  known: KnownFields,
): Promise<void> {
  const found = [...new Set(records.flatMap(({ customFields }) => unknownIn(customFields, known)))].filter(isName);
  if (found.length === 0) return;
  for (const name of found) known.names.add(name);
  await rows(
    `UPDATE field_list SET wanted = ARRAY (SELECT name FROM unnest(wanted || $4::text[]) AS one (name) LIMIT ${MOST_UNKNOWN})
     WHERE tenant_id = $1 AND copy_id = $2 AND entity = $3`,
    [tenantId, copyId, entity, found],
  );
}

/** The list was asked for, and did not come; unless somebody who asked later has had it meanwhile. */
async function noteFailed({ tenantId, copyId, rows }: CopyScope, entity: CrmEntity, error: CrmError, askedAt: Date) {
  await rows(
    `INSERT INTO field_list AS f (tenant_id, copy_id, entity, asked_at, failed_since, wanted, missing) VALUES ($1, $2, $3, $4, $4, '{}', '{}')
     ON CONFLICT (tenant_id, copy_id, entity) DO UPDATE SET asked_at = $4, failed_since = CASE WHEN $5 THEN coalesce(f.failed_since, $4) ELSE $4 END
     WHERE (f.read_at BETWEEN $4 AND $6) IS NOT TRUE`,
    [tenantId, copyId, entity, askedAt, error.code !== "UNAVAILABLE", new Date(askedAt.getTime() + ASK_APART_MS)],
  );
}

/**
 * Keeps the CRM's list as it was read, or that it did not come, in the transaction of whoever has asked and holds the copy. What
 * was looked for and is not in it is missing for good: it is no reason to look again.
 */
export async function keepFieldList(
  copy: CopyScope,
  entity: CrmEntity,
  list: readonly CrmField[] | CrmError,
  askedAt: Date,
): Promise<void> {
  if (list instanceof CrmError) return noteFailed(copy, entity, list, askedAt);
  const { tenantId, copyId, rows } = copy;
  const key = [tenantId, copyId, entity];
  await rows("SELECT 1 AS held FROM field_list WHERE tenant_id = $1 AND copy_id = $2 AND entity = $3 FOR UPDATE", key);
  const before = await readFieldList(copy, entity);
  // Who asked before, and was answered later, has the older list. What a clock far ahead has noted must not outlast it.
  if (before?.readAt && before.readAt > askedAt && isAskedLately(before.readAt, askedAt)) return;
  const fields = list.filter(({ custom }) => custom);
  const { names } = knownOf(fields);
  const missing = [...(before?.wanted ?? []), ...(before?.missing ?? [])].filter((name) => !names.has(name));
  await rows(
    `INSERT INTO field_list (tenant_id, copy_id, entity, asked_at, read_at, wanted, missing) VALUES ($1, $2, $3, $4, $4, '{}', $5)
     ON CONFLICT (tenant_id, copy_id, entity) DO UPDATE SET asked_at = $4, read_at = $4, failed_since = NULL, wanted = '{}', missing = $5`,
    [tenantId, copyId, entity, askedAt, missing.slice(0, MOST_UNKNOWN)],
  );
  await writeFields(copy, entity, fields);
}

/** A list was asked for, for somebody: who reads records sees what the CRM has just said, as long as the copy is live. */
export async function keepLiveList(
  { transaction, copyId }: CopyScope,
  entity: CrmEntity,
  asked: Promise<readonly CrmField[]>,
  askedAt: Date,
): Promise<void> {
  const list = await asked.catch((error: unknown) => (isListFailure(error) ? error : null));
  if (!list) return;
  await transaction(async (scope) => {
    if (!(await holdLiveCopy(scope, copyId))) return;
    await keepFieldList({ ...scope, copyId }, entity, list, askedAt);
  });
}

async function writeFields({ tenantId, copyId, rows }: CopyScope, entity: CrmEntity, fields: readonly CrmField[]) {
  const listed = fields.map(({ key, name, type, options }, position) => ({
    key,
    position,
    name: cutText(name, MAX_TEXT),
    type,
    options: Object.fromEntries(options.map(({ id, label }) => [String(id), cutText(label, MAX_TEXT)])),
  }));
  await rows(
    `WITH listed AS (
       SELECT * FROM jsonb_to_recordset($4::jsonb) AS r (key text, position integer, name text, type text, options jsonb)
     ), gone AS (
       DELETE FROM crm_field f WHERE f.tenant_id = $1 AND f.copy_id = $2 AND f.entity = $3
         AND f.key NOT IN (SELECT key FROM listed)
     )
     INSERT INTO crm_field AS f (tenant_id, copy_id, entity, key, position, name, type, options)
     SELECT $1, $2, $3, key, position, name, type, options FROM listed
     ON CONFLICT (tenant_id, copy_id, entity, key) DO UPDATE
       SET position = EXCLUDED.position, name = EXCLUDED.name, type = EXCLUDED.type, options = EXCLUDED.options
     WHERE (f.position, f.name, f.type, f.options) IS DISTINCT FROM (EXCLUDED.position, EXCLUDED.name, EXCLUDED.type, EXCLUDED.options)`,
    [tenantId, copyId, entity, jsonRows(listed)],
  );
}
