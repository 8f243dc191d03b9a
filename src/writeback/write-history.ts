import type { TenantScope } from "../database/database";
import { type ListOrder, type Page, type PageRequest, readPageOf, type Step } from "../database/keyset";
import { oneByOne, rowsById } from "../database/rows";
import { inBatches } from "../database/upsert";
import type { FieldWriteRow, NoteWriteRow, WriteReceipt } from "../entities/writeback";
import { DAY_MS } from "../platform/clock";
import type { Patterns } from "../platform/mentions";
import { NO_MORE_LOOKS, pauseBefore } from "./outcomes";
import { FIELD, NOTE, type WriteKind } from "./receipts";

/** Whether the record that a receipt names is one of the CRM company that is connected now. */
export type OfCompany = { of_present_company: boolean };

const IS_OF_PRESENT_COMPANY = `EXISTS (
  SELECT 1 FROM connection c
  JOIN synced_copy s ON s.tenant_id = $1 AND s.id = c.copy_id
  WHERE c.tenant_id = $1 AND s.crm_company_id = w.crm_company_id)`;

/** Receipts by their ids, those of one user or (`by` null) everybody's. */
export function readReceipts<Row extends WriteReceipt>(
  { tenantId, entities }: TenantScope,
  { row, table }: WriteKind<Row>,
  ids: readonly string[],
  by: string | null = null,
): Promise<(Row & OfCompany)[]> {
  return entities<Row, OfCompany>(
    row,
    `SELECT w.*, ${IS_OF_PRESENT_COMPANY} AS of_present_company FROM ${rowsById(table, oneByOne("$2", ids))} w
     WHERE $3::text IS NULL OR w.requested_by = $3`,
    [tenantId, ids, by],
    { of_present_company: "flag" },
  );
}

export const NEWEST_WRITE: ListOrder = {
  direction: "DESC",
  keys: [
    { sql: "t.requested_at", type: "instant" },
    { sql: "t.id", type: "uuid" },
  ],
};

export type AnyWriteRow =
  | { kind: "NOTE"; row: NoteWriteRow & OfCompany }
  | { kind: "FIELD"; row: FieldWriteRow & OfCompany };

type Listed = { id: string; kind: AnyWriteRow["kind"] };
const LISTED = { id: "text", kind: "text", position: "json" } as const;

/** SQL: so many of each as a page needs, which an index has sorted. */
const receiptsOf =
  (narrowed: string) =>
  ({ beyond, orderBy, limit }: Step) => {
    const of = (table: string, kind: AnyWriteRow["kind"]) =>
      `(SELECT t.tenant_id, t.id, t.requested_at, '${kind}' AS kind FROM ${table} t
        WHERE t.tenant_id = $1${narrowed}${beyond} ORDER BY ${orderBy} LIMIT ${limit})`;
    return `(${of("note_write", "NOTE")} UNION ALL ${of("field_write", "FIELD")}) t`;
  };

const LONGEST_KEY = 200;

/** Why a key cannot be kept and found again; null: it can. */
export function faultOfKey(key: string): string | null {
  if (key.trim() === "") return "must not be empty: choose a new one for each intent, for example a UUID";
  if (key.length > LONGEST_KEY) return `must have at most ${LONGEST_KEY} characters`;
  return /\0|\p{Surrogate}/u.test(key) ? "must not contain a NUL character or half a surrogate pair" : null;
}

export interface WritesFilter {
  meetingId: string | null;
  /** null: everybody's. */
  by: string | null;
  idempotencyKey: string | null;
}

/** One note or field by its receipt's id. */
export async function readWrite(scope: TenantScope, id: string): Promise<AnyWriteRow | null> {
  const [[note], [field]] = await Promise.all([readReceipts(scope, NOTE, [id]), readReceipts(scope, FIELD, [id])]);
  if (note) return { kind: "NOTE", row: note };
  return field ? { kind: "FIELD", row: field } : null;
}

/** Notes and fields as one list. */
export async function readWrites(
  scope: TenantScope,
  filter: WritesFilter,
  page: PageRequest,
): Promise<Page<AnyWriteRow>> {
  const { meetingId, by, idempotencyKey } = filter;
  // No write has a key that cannot be kept, and PostgreSQL takes no text with a NUL.
  if (idempotencyKey !== null && faultOfKey(idempotencyKey) !== null) return { rows: [], hasMore: false };
  const where: string[] = [];
  const parameters: unknown[] = [];
  const narrow = (column: string, value: string | null) => {
    if (value !== null) where.push(` AND t.${column} = $${parameters.push(value) + 1}`);
  };
  narrow("meeting_id", meetingId);
  narrow("requested_by", by);
  narrow("idempotency_key", idempotencyKey);
  const source = { from: receiptsOf(where.join("")), columns: "t.id, t.kind", where: [], parameters };
  const found = await readPageOf<Listed>(scope, LISTED, source, page);
  const idsOf = (wanted: Listed["kind"]) => found.rows.flatMap(({ id, kind }) => (kind === wanted ? [id] : []));
  const [notes, fields] = await Promise.all([
    readReceipts(scope, NOTE, idsOf("NOTE")),
    readReceipts(scope, FIELD, idsOf("FIELD")),
  ]);
  const known = new Map<string, AnyWriteRow>([
    ...notes.map((row): [string, AnyWriteRow] => [row.id, { kind: "NOTE", row }]),
    ...fields.map((row): [string, AnyWriteRow] => [row.id, { kind: "FIELD", row }]),
  ]);
  const rows = found.rows.flatMap(({ id, position }) => {
    const write = known.get(id);
    return write ? [{ ...write, position }] : [];
  });
  return { rows, hasMore: found.hasMore };
}

/** SQL: what was written to persons. */
const TO_PERSONS = `(
  SELECT n.copy_id, n.target_id, n.crm_company_id, n.meeting_id FROM note_write n WHERE n.tenant_id = $1 AND n.entity = 'PERSON'
  UNION ALL
  SELECT f.copy_id, f.target_id, f.crm_company_id, f.meeting_id FROM field_write f WHERE f.tenant_id = $1 AND f.entity = 'PERSON') w`;

/**
 * Persons as receipts name them, which outlive copies: those of the same CRM companies.
 * @param crmIds meant in the company that is connected; while none is, in any
 */
export const readTargets = (
  { tenantId, rows }: TenantScope,
  records: readonly { copyId: number; crmId: number }[],
  crmIds: readonly number[],
) =>
  rows<{ copyId: number; crmId: number }>(
    `SELECT DISTINCT w.copy_id AS "copyId", w.target_id AS "crmId" FROM ${TO_PERSONS}
     WHERE EXISTS (SELECT 1 FROM synced_copy s WHERE s.tenant_id = $1 AND s.crm_company_id = w.crm_company_id
         AND (s.id, w.target_id) IN (SELECT * FROM unnest($2::bigint[], $3::bigint[])))
       OR w.target_id = ANY ($4) AND NOT EXISTS (SELECT 1 FROM synced_copy s WHERE s.tenant_id = $1 AND s.state = 'LIVE')`,
    [tenantId, records.map(({ copyId }) => copyId), records.map(({ crmId }) => crmId), crmIds],
    { copyId: "number", crmId: "number" },
  );

/** Persons to whom was written at some meetings. */
export const readTargetsAt = ({ tenantId, rows }: TenantScope, meetingIds: readonly string[]) =>
  rows<{ id: number }>(
    `SELECT DISTINCT w.target_id AS id FROM ${TO_PERSONS} WHERE w.meeting_id = ANY ($2::uuid[])`,
    [tenantId, meetingIds],
    { id: "number" },
  );

/** SQL: what became of a value is known. */
export const IS_SETTLED = "state IN ('WRITTEN', 'FAILED')";

/**
 * Takes the values off the receipts of persons. Of one that is still looked up the CRM has to be asked: it goes as it is
 * settled, as does one on another record that mentions them.
 * @returns `unsettled`: how many values of erased persons are still looked up
 */
export async function reduceReceipts(
  scope: TenantScope,
  records: readonly { copyId: number; crmId: number }[],
  patterns: readonly Patterns[],
  now: Date,
): Promise<{ receipts: number; unsettled: number }> {
  const { tenantId, rows } = scope;
  const of = [records.map(({ copyId }) => copyId), records.map(({ crmId }) => crmId)];
  const own = `entity = 'PERSON' AND (copy_id, target_id) IN (SELECT * FROM unnest($2::bigint[], $3::bigint[]))`;
  await rows(
    `UPDATE field_write SET value_goes = true
     WHERE tenant_id = $1 AND value IS NOT NULL AND NOT ${IS_SETTLED} AND (${own} OR value::text ~* ANY ($4::text[]))
     RETURNING 1 AS changed`,
    [tenantId, ...of, patterns.map(([, inJson]) => inJson)],
  );
  const settled = await inBatches(scope, {
    table: "field_write",
    where: `value IS NOT NULL AND ${own} AND ${IS_SETTLED}`,
    parameters: of,
    set: "value = NULL",
  });
  const receipts = settled + (await dropHopeless(scope, now));
  const left = await rows(`SELECT 1 AS one FROM field_write WHERE tenant_id = $1 AND ${IS_GOING}`, [tenantId]);
  return { receipts, unsettled: left.length };
}

/** SQL: the value of an erased person that is still needed, to find out whether the CRM holds it. */
export const IS_GOING = "state IN ('SENDING', 'UNKNOWN') AND value_goes AND value IS NOT NULL";

/**
 * Values of erased persons of which nothing will be known: their CRM company is not connected, or a day of looks found
 * nothing out. They go, and nobody looks any more. @returns how many
 */
export async function dropHopeless({ tenantId, rows }: TenantScope, now: Date): Promise<number> {
  const dropped = await rows(
    `UPDATE field_write w SET value = NULL, next_look_up_at = NULL, error_message = $3
     WHERE w.tenant_id = $1 AND w.state = 'UNKNOWN' AND w.value_goes AND w.value IS NOT NULL
       AND (coalesce(w.sent_at, w.requested_at) < $2 OR NOT ${IS_OF_PRESENT_COMPANY}) RETURNING 1 AS changed`,
    [tenantId, new Date(now.getTime() - DAY_MS), NOT_LOOKED_FOR],
  );
  return dropped.length;
}

/** After a look that was made and proves nothing. One that could not be, as in an outage, is not the last, however late. */
export async function endIfLast<Row extends WriteReceipt>(
  { tenantId, rows }: TenantScope,
  { table, lookedForMs }: WriteKind<Row>,
  { id, sentAt, lookUps }: Row,
  lookedAt: Date,
): Promise<void> {
  const next = lookedAt.getTime() + pauseBefore(lookUps + 1);
  if (next <= (sentAt ?? lookedAt).getTime() + lookedForMs) return;
  await rows(
    `UPDATE ${table} SET next_look_up_at = NULL, error_message = $3 WHERE tenant_id = $1 AND id = $2 AND state = 'UNKNOWN'`,
    [tenantId, id, NO_MORE_LOOKS[table]],
  );
}

const NOT_LOOKED_FOR =
  "The CRM's answer was lost, so the value may or may not be there. It was erased with a person here, and is not looked for any more.";
