import { LRUCache } from "lru-cache";
import { types } from "pg";
import type { EntityMetadata } from "typeorm";

export type Row = Record<string, unknown>;

/** The kinds of columns that JSON and the driver both give; an instant comes as text in JSON. */
type KindOf<V> = V extends Date
  ? "instant"
  : V extends number
    ? "number"
    : V extends string
      ? "text"
      : V extends boolean
        ? "flag"
        : "json";

/** The columns of a statement's rows, each with its kind. A number is one that a float holds exactly. */
export type Shape<T> = { readonly [C in keyof T]-?: KindOf<NonNullable<T[C]>> };
type AnyShape = Readonly<Record<string, string>>;

/** By PostgreSQL's numbers of types. A decimal and a day are text to the driver; what is not here is "json". */
const KINDS = new Map<number, string>([
  ...[20, 21, 23, 700, 701].map((oid): [number, string] => [oid, "number"]),
  ...[25, 1042, 1043, 1082, 1700, 2950].map((oid): [number, string] => [oid, "text"]),
  ...([
    [16, "flag"],
    [1184, "instant"],
  ] as const),
]);

const [INT8, INT8_ARRAY, DATE] = [20, 1016, 1082];
/**
 * CRM ids are kept as bigint and are whole numbers that JavaScript holds exactly (the parser of the CRM's records sees
 * to it). A calendar day stays text: as a Date it would move with the time zone of the process.
 */
export function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === INT8) return Number;
  if (oid === INT8_ARRAY) return (value) => value.slice(1, -1).split(",").filter(Boolean).map(Number);
  if (oid === DATE) return (value) => value;
  return format === "binary" ? types.getTypeParser(oid, format) : types.getTypeParser(oid, format);
}

/** The texts are the code's own, so each is looked at once; some name an instant and come once. */
const fitting = new LRUCache<string, true>({ max: 1_000 });

/** @throws where a statement gives other columns than the code says: seen by whatever test runs the statement first */
export function requireShape(
  sql: string,
  fields: readonly { name: string; dataTypeID: number }[],
  shape: AnyShape,
): void {
  if (fitting.get(sql)) return;
  const given = fields.map(({ name, dataTypeID }) => `${name}: ${KINDS.get(dataTypeID) ?? "json"}`).sort();
  const said = Object.entries(shape)
    .map(([name, kind]) => `${name}: ${kind}`)
    .sort();
  if (given.join() !== said.join()) {
    throw new Error(`a statement gives (${given.join(", ")}), and the code says (${said.join(", ")}): ${sql}`);
  }
  fitting.set(sql, true);
}

/** SQL: an instant in milliseconds since 1970. */
export const ms = (instant: string) => `(date_part('epoch', ${instant}) * 1000)::bigint`;

/** SQL: what a query of one column finds, as one JSON value. An aggregate would take PostgreSQL longer to set up. */
export const gathered = (query: string) => `array_to_json(ARRAY(${query}))`;

/** SQL: rows as one JSON value, each a list of these columns in their order. The last says from where. */
export const listOf = (...columnsAndFrom: readonly string[]) =>
  gathered(`SELECT json_build_array(${columnsAndFrom.slice(0, -1)}) FROM ${columnsAndFrom.at(-1)}`);

/**
 * SQL: the rows of a copy's table that have one value in a column, by the index that has it behind tenant and copy. As a
 * range in that column's order: of tables that it knows nothing of yet PostgreSQL takes a copy for one row, and so any index
 * that begins with the copy for as good. Nor is one with an order joined before what it is looked up by.
 * @param order SQL, of rows `t`; begins with the column
 */
export const rowsOf = (table: string, column: string, value: string, order = `t.${column}`) =>
  `(SELECT * FROM ${table} t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.${column} BETWEEN ${value} AND ${value} ORDER BY ${order})`;

/**
 * SQL: true, and until the transaction ends that order decides. Of a copy that no statistics know, to read all of it for each
 * row and sort that seemed cheaper once an index had grown by a level: a page of a sync took a second.
 */
export const ORDER_DECIDES = "set_config('enable_sort', 'off', true) = 'off'";

/**
 * SQL: the rows of those that have one of many values, one value after the other for the same reason: of many at once PostgreSQL
 * goes through all of a copy's in another index that has the column as well, or reads it whole.
 * @param values SQL: an array
 */
export const rowsOfEach = (table: string, column: string, values: string) =>
  `(SELECT t.* FROM unnest(${values}) AS one (id) CROSS JOIN LATERAL ${rowsOf(table, column, "one.id")} t)`;

/** SQL: UUIDs, one by one, as `one.id`. @param known the parameter's: of a single one no list is made, nor gone through */
export const oneByOne = (parameter: string, known?: Ids<string>) =>
  known && !(known instanceof NamedIds) && known.length === 1
    ? `(SELECT (${parameter}::uuid[])[1]) AS one (id)`
    : `unnest(${parameter}::uuid[]) AS one (id)`;

/** SQL: the same of a table of the tenant's own, by its key. @param ids {@link oneByOne} */
export const rowsById = (table: string, ids: string, key = "id") =>
  `(SELECT t.* FROM ${ids} CROSS JOIN LATERAL (
    SELECT * FROM ${table} t WHERE t.tenant_id = $1 AND t.${key} = one.id LIMIT 1) t)`;

/**
 * How rows travel as JSON: each as the list of its values, which is half as long as with their names, and made in two
 * thirds of the time.
 */
export interface RowLayout {
  /** SQL: the values of a row `r`. A decimal goes as text: as a number it would come as a float. */
  values: string;
  names: readonly string[];
  instants: readonly number[];
  /** The column of one of the names. */
  columnOf(name: string): string;
}

/** Rows of an entity's table, as its properties; what SQL alone looks at is not read with them (`select: false`). */
interface EntityColumns {
  layout: RowLayout;
  properties: ReadonlyMap<string, string>;
}

const knownColumns = new WeakMap<EntityMetadata, EntityColumns>();

function columnsOf(metadata: EntityMetadata): EntityColumns {
  const found = knownColumns.get(metadata);
  if (found) return found;
  const columns = metadata.columns.filter(({ isSelect }) => isSelect);
  const properties = new Map(columns.map(({ databaseName, propertyName }) => [databaseName, propertyName]));
  const names = new Map(columns.map(({ databaseName, propertyName }) => [propertyName, databaseName]));
  const layout: RowLayout = {
    values: columns.map(({ databaseName, type }) => selected(databaseName, type === "numeric")).join(),
    names: columns.map(({ propertyName }) => propertyName),
    instants: columns.flatMap(({ type }, index) => (type === "timestamptz" ? [index] : [])),
    columnOf: (name) => names.get(name) ?? name,
  };
  const known = { layout, properties };
  knownColumns.set(metadata, known);
  return known;
}

const selected = (column: string, asText = false) => `r."${column}"${asText ? "::text" : ""}`;

const NAMED_AS_COLUMNS: RowLayout = { values: "", names: [], instants: [], columnOf: (name) => name };

/** Columns of a shape, behind those of an entity where there is one. */
export function rowLayoutOf(shape: AnyShape = {}, metadata?: EntityMetadata): RowLayout {
  const own = metadata ? columnsOf(metadata).layout : NAMED_AS_COLUMNS;
  const added = Object.keys(shape);
  if (added.length === 0) return own;
  const instants = added.flatMap((name, index) => (shape[name] === "instant" ? [own.names.length + index] : []));
  return {
    values: [own.values, ...added.map((name) => selected(name))].filter((values) => values !== "").join(),
    names: [...own.names, ...added],
    instants: [...own.instants, ...instants],
    columnOf: own.columnOf,
  };
}

/** Rows that have travelled. */
export function rowsIn(found: readonly unknown[][], { names, instants }: RowLayout): Row[] {
  return found.map((values) => {
    for (const index of instants) {
      const value = values[index];
      if (typeof value === "string") values[index] = new Date(value);
    }
    const row: Row = {};
    let index = 0;
    for (const name of names) row[name] = values[index++];
    return row;
  });
}

/** As the driver gives rows of an entity's table, joined likewise. */
export function entityOf(row: Row, metadata: EntityMetadata): Row {
  const { properties } = columnsOf(metadata);
  const properly: Row = {};
  for (const name in row) properly[properties.get(name) ?? name] = row[name];
  return properly;
}

/** Numbers in the CRM, or ids of our own. */
export type Id = number | string;

/** Ids that rows of the same statement name: a read takes them in the place of known ones, and so needs no statement of its own. */
export class NamedIds {
  /** @param by reads that are asked for before, and the properties of their rows */
  constructor(readonly by: readonly (readonly [Read, property: string])[]) {}

  /** Once the statement is answered; each once. */
  get known(): Id[] {
    return [...new Set(this.by.flatMap(([{ found }, property]) => found.map((row) => row[property]).filter(isId)))];
  }
}

const isId = (value: unknown): value is Id => typeof value === "number" || typeof value === "string";

/** Known, or found by the same statement. */
export type Ids<I extends Id = number> = readonly I[] | NamedIds;

/** How a read is asked for. */
export interface Asked {
  sql: string;
  parameters: readonly unknown[];
  layout: RowLayout;
}

/** A read of an operation. */
export interface Read extends Asked {
  found: Row[];
  readonly hearers: (() => void)[];
  resolve(rows: Row[]): void;
  reject(error: unknown): void;
}
