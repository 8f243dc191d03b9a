import type { ObjectLiteral, ObjectType } from "typeorm";
import type { TenantScope } from "./database";
import { behindOthers } from "./errors";
import type { Shape } from "./rows";

/** How a key's value leaves the database as exact text and comes back; `pattern` is what may come back. */
interface KeyType {
  text(sql: string): string;
  value(parameter: string): string;
  pattern: RegExp;
}

/** SQL of an instant that came as a key: whole microseconds since 1970, which is all that PostgreSQL keeps of one. */
export const instantOf = (parameter: string) =>
  `('epoch'::timestamptz + ${parameter}::bigint * interval '1 microsecond')`;
export const textOfInstant = (instant: Date) => String(instant.getTime() * 1_000);

const KEY_TYPES = {
  instant: {
    text: (sql) => `(extract(epoch FROM ${sql}) * 1000000)::bigint::text`,
    value: instantOf,
    pattern: /^(-\d{1,17}|\d{1,18})$/,
  },
  integer: {
    text: (sql) => `(${sql})::text`,
    value: (parameter) => `${parameter}::bigint`,
    pattern: /^-?\d{1,18}$/,
  },
  decimal: {
    text: (sql) => `(${sql})::text`,
    value: (parameter) => `${parameter}::numeric`,
    pattern: /^-?\d{1,1000}(\.\d{1,1000})?$/,
  },
  text: {
    text: (sql) => `(${sql})::text`,
    value: (parameter) => `${parameter}::text`,
    pattern: /^[^\0]*$/,
  },
  uuid: {
    text: (sql) => `(${sql})::text`,
    value: (parameter) => `${parameter}::uuid`,
    pattern: /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/,
  },
} as const satisfies Record<string, KeyType>;

/** One key of a list's order: SQL over the row `t` that is never null. */
export interface SortKey {
  sql: string;
  type: keyof typeof KEY_TYPES;
  /** One value for all rows of a walk: its cursors carry it, and nothing is compared with it. */
  isCarried?: true;
}

/** A total order: all keys in one direction, the last of them unique, so that no two rows tie. */
export interface ListOrder {
  keys: readonly [SortKey, ...SortKey[]];
  direction: "ASC" | "DESC";
}

/** A list is counted and summed up so far, and where it is longer no number is given: what one costs has an end. */
export const MOST_COUNTED = 10_000;

/** Where a page ended: the keys of its last row, as exact text. */
export type Position = readonly string[];

export function isPosition(order: ListOrder, values: readonly unknown[]): values is Position {
  const fits = (value: unknown, type: SortKey["type"] | undefined) =>
    typeof value === "string" && type !== undefined && KEY_TYPES[type].pattern.test(value);
  return values.length === order.keys.length && values.every((value, index) => fits(value, order.keys[index]?.type));
}

export interface PageRequest {
  order: ListOrder;
  first: number;
  after: Position | null;
}

export interface Page<Row> {
  rows: (Row & { position: Position })[];
  hasMore: boolean;
}

/** How a walk goes on, over a row `t`: for a source that itself reads no more than a page needs. */
export interface Step {
  /** A condition, with AND before it; empty on the first page. */
  beyond: string;
  orderBy: string;
  limit: number;
}

/** What a page is read from. */
interface Source {
  /** Gives `t`. */
  from: string | ((step: Step) => string);
  /** What of it is the row, where that is not all of `t`. */
  columns?: string;
  where: readonly string[];
  /** $1 is the tenant, these come behind it. */
  parameters: readonly unknown[];
}
/** By itself the entity's table. */
type PartialSource = Omit<Source, "from"> & Partial<Pick<Source, "from">>;

/**
 * One page of an entity's table in one statement, by keyset: what follows a position is found by comparing keys, never
 * by counting, so rows that come and go elsewhere move nothing.
 */
export function readPage<T extends ObjectLiteral>(
  { tenantId, metadata, entities }: TenantScope,
  entity: ObjectType<T>,
  { from = `${metadata(entity).tableName} t`, ...source }: PartialSource,
  request: PageRequest,
): Promise<Page<T>> {
  const { sql, parameters } = statementOf(tenantId, { from, ...source }, request);
  return pageOf(entities<T, Placed>(entity, sql, parameters, PLACED), request);
}

/** The same of what is no entity's table. */
export function readPageOf<T>(
  { tenantId, rows }: TenantScope,
  shape: Shape<T & Placed>,
  source: Source,
  request: PageRequest,
): Promise<Page<T>> {
  const { sql, parameters } = statementOf(tenantId, source, request);
  return pageOf(rows(sql, parameters, shape), request);
}

interface Placed {
  position: Position;
}
const PLACED: Shape<Placed> = { position: "json" };

async function pageOf<T>(reading: Promise<(T & Placed)[]>, { first }: PageRequest): Promise<Page<T>> {
  const found = await reading;
  return { rows: found.slice(0, first), hasMore: found.length > first };
}

function statementOf(
  tenantId: number,
  { from, columns = "t.*", where, parameters }: Source,
  { order: { keys, direction }, first, after }: PageRequest,
) {
  const compared = keys.flatMap((key, index) => (key.isCarried ? [] : [{ ...key, reached: after?.[index] }]));
  const placeholder = (index: number) => `$${parameters.length + 2 + index}`;
  const position = keys.map(({ sql, type }) => KEY_TYPES[type].text(sql));
  const reached = compared.map(({ type }, index) => KEY_TYPES[type].value(placeholder(index)));
  const sorted = compared.map(({ sql }) => sql);
  const sign = direction === "ASC" ? ">" : "<";
  // Row policies let no index compare decimals: it begins where the keys before them do.
  const coarse = compared.findIndex(({ type }) => type === "decimal");
  const near = coarse > 0 ? ` AND (${sorted.slice(0, coarse)}) ${sign}= (${reached.slice(0, coarse)})` : "";
  const step: Step = {
    beyond: after ? `${near} AND (${sorted}) ${sign} (${reached})` : "",
    orderBy: sorted.map((sql) => `${sql} ${direction}`).join(),
    limit: first + 1,
  };
  // A source that takes the step has left out what lies before it.
  const beyond = typeof from === "function" ? "" : step.beyond;
  return {
    sql: `SELECT ${columns}, ARRAY[${position}] AS position FROM ${typeof from === "function" ? from(step) : from}
     WHERE ${["t.tenant_id = $1", ...where].join(" AND ")}${beyond} ORDER BY ${step.orderBy} LIMIT ${step.limit}`,
    parameters: [tenantId, ...parameters, ...(after ? compared.map((key) => key.reached) : [])],
  };
}

/** A table of tenants, and the columns of its key. */
export interface KeyedTable {
  table: string;
  keys: string[];
}

/** Rows that one statement looks through where it reads all their texts: a tenant may have a million notes. */
const ROWS_A_WINDOW = 1_000;

/** Behind the first of these keys and up to the second; null: from the first row, to the last. */
type Window = readonly [after: object | null, last: object | null];

/** An index begins at a key only behind the tenant's column, which has its one value; and with no OR beside it. */
function isBehind({ table, keys }: KeyedTable, comparison: ">" | "<=", key: object | null, parameter: string): string {
  if (key === null) return `${parameter}::jsonb IS NULL`;
  const own = keys.filter((name) => name !== "tenant_id" || keys.length === 1);
  return `(${own}) ${comparison} (SELECT ${own.map((name) => `k.${name}`)} FROM jsonb_populate_record(NULL::${table}, ${parameter}) k)`;
}

/**
 * SQL: whether a row is of the window. $3 and $4: its keys. In their order, and no more than a window has with what came
 * meanwhile: PostgreSQL knows not how few those are, and read all of a tenant's rows for each window.
 */
export const isWithin = (of: KeyedTable, [after, last]: Window): string =>
  `(${of.keys}) IN (SELECT ${of.keys} FROM ${of.table} WHERE tenant_id = $1 AND ${isBehind(of, ">", after, "$3")}
    AND ${isBehind(of, "<=", last, "$4")} ORDER BY ${of.keys} LIMIT ${10 * ROWS_A_WINDOW})`;

/** For a transaction, which keeps no plan of other values: rows are looked up by their keys, however many it seems there are. */
const BY_KEYS = `SELECT set_config('enable_' || way, 'off', true) FROM unnest(ARRAY['hashjoin', 'mergejoin', 'seqscan', 'bitmapscan', 'sort']) way`;

/** Statements on the rows of a window; whoever records meetings locks some of them in another order. */
export const inWindow = <T>({ transaction }: TenantScope, work: (rows: TenantScope["rows"]) => Promise<T>) =>
  behindOthers(() => transaction(async ({ rows }) => rows(BY_KEYS).then(() => work(rows))));

async function endBehind(scope: TenantScope, of: KeyedTable, after: object | null): Promise<object | null> {
  const sql = `SELECT to_jsonb(k) AS last FROM (SELECT ${of.keys} FROM ${of.table}
    WHERE tenant_id = $1 AND ${isBehind(of, ">", after, "$2")} ORDER BY ${of.keys} OFFSET ${ROWS_A_WINDOW - 1} LIMIT 1) k`;
  const [end] = await inWindow(scope, (rows) => rows<{ last: object }>(sql, [scope.tenantId, after], { last: "json" }));
  return end?.last ?? null;
}

/** A tenant's rows of a table, in pieces that one statement looks through in little time. */
export async function* windowsOf(scope: TenantScope, of: KeyedTable): AsyncGenerator<Window> {
  let after: object | null = null;
  do {
    const last = await endBehind(scope, of, after);
    yield [after, last];
    after = last;
  } while (after);
}
