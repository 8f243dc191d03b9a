import type { EntityMetadata, ObjectLiteral, ObjectType } from "typeorm";
import { DAY_MS, MINUTE_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import { forEachLogged } from "../platform/work";
import type { CopyScope, Database, TenantScope } from "./database";
import { rowsOfEach } from "./rows";

/** A synced row without the two that lead its key. An instant is text, as the CRM's parser gives it: the statement casts it. */
export type Synced<T> = {
  [K in keyof Omit<T, "tenantId" | "copyId">]: T[K] extends Date
    ? string
    : T[K] extends Date | null
      ? string | null
      : T[K];
};

export interface UpsertOptions {
  /** Columns that are set when a row is written, and do not count when rows are compared. */
  silent?: readonly string[];
  /** Columns that only a new row gets. */
  insertOnly?: readonly string[];
  /** SQL over `t`, a row: texts that are told of a row that is new, or where one of them changes. */
  told?: readonly string[];
}

/** A row that was inserted or changed. */
export interface WrittenRow {
  id: number;
  /** What `told` asks for, as it was and as it became; null: it is as it was. */
  told: { was: readonly (string | null)[]; became: readonly (string | null)[] } | "NEW" | null;
}

/**
 * Writes rows that were made ready, within the caller's transaction.
 * @param tells false: nobody looks at what would be told
 * @returns those that were inserted or changed
 */
export type Upsert = (copy: CopyScope, now: Date, tells?: boolean) => Promise<WrittenRow[]>;

/** A page may repeat a record that moved while it was read, which ON CONFLICT refuses: the newest by its time is kept. */
export function newestOf<T extends { id: number; updateTime?: string | null }>(records: readonly T[]): T[] {
  const newest = new Map<number, T>();
  for (const record of records) {
    const before = newest.get(record.id)?.updateTime;
    // The parser writes all times alike, so that text order is time order; of equals the later one in the page counts.
    if (!before || !record.updateTime || record.updateTime >= before) newest.set(record.id, record);
  }
  return [...newest.values()];
}

/**
 * A page of synced rows, written in one statement: `json_to_recordset` and ON CONFLICT, only rows that really differ,
 * and never an older state over a newer one (by `update_time`, where the table has it, while answers that have crossed may
 * be on their way). All rows need the same keys. The text is made here, so that a transaction does not wait for it.
 */
export function upsertPage<T extends ObjectLiteral>(
  entity: ObjectType<T>,
  page: readonly Synced<T>[],
  options: UpsertOptions = {},
): Upsert {
  const first = page[0];
  if (!first) return async () => [];
  const properties = Object.keys(first);
  // As bytes: a long text that waits for its transaction would be kept until the next full collection.
  const json = Buffer.from(jsonRows(page));
  return async ({ tenantId, copyId, rows, metadata }, now, tells = true) => {
    const told = tells ? options.told : undefined;
    const ids = told ? [page.map((row) => row.crmId)] : [];
    const sql = upsertStatement(metadata(entity), properties, { ...options, told }, now);
    return rows<WrittenRow>(sql, [tenantId, copyId, json, ...ids], { id: "number", told: "json" });
  };
}

/**
 * SQL: the row is of a later change than what the page says of it. An answer is on its way for a minute or two: one that comes
 * long after a stamp and says something else proves that stamp wrong, as does one that comes long before it. Otherwise a record
 * that was stamped ahead of its time once would never be brought up to date again. Instants stand in the text: ON CONFLICT of an
 * INSERT by SELECT takes no parameter on Citus, and no arithmetic on instants.
 */
const isLater = (now: Date): string => {
  const [from, to] = [-CROSSING_MS, CROSSING_MS].map((ms) => new Date(now.getTime() + ms).toISOString());
  return `t.update_time > EXCLUDED.update_time AND t.update_time BETWEEN '${from}' AND '${to}'`;
};
const CROSSING_MS = 10 * MINUTE_MS;

function upsertStatement(
  metadata: EntityMetadata,
  properties: string[],
  { silent = [], insertOnly = [], told = [] }: UpsertOptions,
  now: Date,
): string {
  const columns = properties.map((property) => {
    const column = metadata.findColumnWithPropertyName(property);
    if (!column) throw new Error(`${metadata.tableName} has no column for ${property}`);
    return { property, name: column.databaseName, type: `${column.type}${column.isArray ? "[]" : ""}` };
  });
  const table = metadata.tableName;
  const names = columns.map(({ name }) => name);
  const updated = columns.filter(({ property, name }) => name !== "crm_id" && !insertOnly.includes(property));
  const compared = updated.filter(({ property }) => !silent.includes(property));
  const differs = `(${compared.map(({ name }) => `t.${name}`)}) IS DISTINCT FROM (${compared.map(({ name }) => `EXCLUDED.${name}`)})`;
  const notOlder = names.includes("update_time") ? ` AND (${isLater(now)}) IS NOT TRUE` : "";
  // Parsed as jsonb first, flat rows take a tenth longer; rows of several documents a fifth less.
  const json = columns.filter(({ type }) => type === "jsonb").length > 1 ? "jsonb" : "json";
  const state = `ARRAY[${told}]::text[]`;
  const upsert = (result: string) => `
    INSERT INTO ${table} AS t (tenant_id, copy_id, ${names})
    SELECT $1, $2, ${columns.map(({ property }) => `r."${property}"`)}
    FROM ${json}_to_recordset($3::text::${json}) AS r (${columns.map(({ property, type }) => `"${property}" ${type}`)})
    ON CONFLICT (tenant_id, copy_id, crm_id) DO UPDATE SET ${updated.map(({ name }) => `${name} = EXCLUDED.${name}`)}
    WHERE ${differs}${notOlder}
    RETURNING t.crm_id AS id, ${result}`;
  if (told.length === 0) return upsert("NULL::jsonb AS told");
  // MATERIALIZED, or a cluster would read what is written by then. Where nothing is, PostgreSQL does not read it at all.
  return `
    WITH before AS MATERIALIZED (
      SELECT t.crm_id AS id, ${state} AS was
      FROM ${rowsOfEach(table, "crm_id", "$4::bigint[]")} t
    ), written AS (${upsert(`${state} AS became`)})
    SELECT written.id, CASE WHEN before.id IS NULL THEN '"NEW"' WHEN before.was <> written.became
      THEN jsonb_build_object('was', before.was, 'became', written.became) END AS told
    FROM written LEFT JOIN before ON before.id = written.id`;
}

/**
 * Rows as JSON text for `json_to_recordset`. PostgreSQL refuses NUL and half surrogate pairs, which a CRM's
 * text may hold: they become the replacement character rather than failing a whole page.
 */
export function jsonRows(values: readonly unknown[]): string {
  const json = JSON.stringify(values);
  if (!json.includes("\\u0000") && !json.includes("\\ud")) return json;
  return json.replace(/(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g, "$1\ufffd");
}

/** How long events and entries are kept; longer than a year, so that a yearly review finds all of it. */
export const KEPT_MS = 400 * DAY_MS;
/** Rows deleted of a tenant in one sweep: little work at a time, often. */
const [FORGOTTEN_A_SWEEP, TENANTS_A_SWEEP] = [1_000, 100];

interface Forgotten {
  table: string;
  instant: string;
  keptMs?: number;
  /** SQL: which rows `t` go. @param tenant SQL: theirs; by a value a cluster finds the one node in a part of a condition, too */
  which?(tenant: string): string;
}

/** A sweep: deletes the rows of a table that are older than they are kept, the oldest first, and by PostgreSQL's clock as well. */
export async function forgetOld(
  database: Database,
  { table, instant, keptMs = KEPT_MS, which = () => "true" }: Forgotten,
  logger: Logger,
  now: Date,
): Promise<void> {
  const before = (place: number) =>
    `least($${place}::timestamptz, now()) - $${place + 1}::float8 * interval '1 millisecond'`;
  const old = await database.acrossTenants<{ tenantId: number }>(
    `SELECT DISTINCT tenant_id AS "tenantId" FROM ${table} t WHERE ${instant} < ${before(1)} AND ${which("t.tenant_id")} LIMIT ${TENANTS_A_SWEEP}`,
    [now, keptMs],
    { tenantId: "number" },
  );
  const forget = ({ tenantId }: { tenantId: number }) =>
    database.tenant(tenantId).rows(
      `DELETE FROM ${table} WHERE tenant_id = $1 AND ctid = ANY (ARRAY (
         SELECT ctid FROM ${table} t WHERE t.tenant_id = $1 AND ${instant} < ${before(2)} AND ${which("$1")} ORDER BY ${instant} LIMIT ${FORGOTTEN_A_SWEEP}))`,
      [tenantId, now, keptMs],
    );
  await forEachLogged(old, forget, logger);
}

/** Rows a statement: small enough to hold no lock for long. */
const ROWS_A_BATCH = 1_000;

interface Batched {
  table: string;
  /** SQL: which rows, by the parameters behind the tenant's. */
  where: string;
  parameters?: readonly unknown[];
  /** SQL: what they are changed to; absent: they are deleted. */
  set?: string;
  size?: number;
}

/**
 * Changes a tenant's rows a batch a statement, until none is found. Of those that it has found a statement passes by what
 * another transaction changes at this moment, which the next one finds again. In the order of the key, which an index has: for
 * a few rows of a large tenant PostgreSQL began at the first row of the table, and all others' may stand before its own.
 * @param before called before each statement; it throws what ends the work
 * @returns how many were found
 */
export async function inBatches(
  { tenantId, rows, metadata }: TenantScope,
  { table, where, parameters = [], set, size = ROWS_A_BATCH }: Batched,
  before: () => void = () => undefined,
): Promise<number> {
  const keys = metadata(table).primaryColumns.map(({ databaseName }) => databaseName);
  const sql = `WITH batch AS MATERIALIZED (
        SELECT ctid FROM ${table} WHERE tenant_id = $1 AND (${where}) ORDER BY ${keys} LIMIT ${size}),
      changed AS (${set ? "UPDATE" : "DELETE FROM"} ${table} ${set ? `SET ${set}` : ""}
        WHERE tenant_id = $1 AND ctid = ANY (ARRAY (SELECT ctid FROM batch)))
    SELECT 1 AS found FROM batch`;
  let found = 0;
  for (let batch = size; batch > 0; found += batch) {
    before();
    batch = (await rows(sql, [tenantId, ...parameters])).length;
  }
  return found;
}
