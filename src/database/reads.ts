import type { Connection, PoolClient, QueryConfig, QueryResult } from "pg";
import type { EntityMetadata } from "typeorm";

/** Rows of an entity's table are read by these. */
interface EntityColumns {
  /** The property of a column, and of what {@link asText} names. */
  properties: ReadonlyMap<string, string>;
  instants: ReadonlySet<string>;
  decimals: readonly string[];
}

/** Selects a decimal as text beside it; the decimal itself would come as a float. */
const asText = (decimal: string) => `${decimal} as text`;

const knownColumns = new WeakMap<EntityMetadata, EntityColumns>();

function columnsOf(metadata: EntityMetadata): EntityColumns {
  const found = knownColumns.get(metadata);
  if (found) return found;
  const named = (type: string) =>
    metadata.columns.filter((column) => column.type === type).map(({ databaseName }) => databaseName);
  const properties = new Map(metadata.columns.map(({ databaseName, propertyName }) => [databaseName, propertyName]));
  const decimals = named("numeric");
  for (const name of decimals) properties.set(asText(name), properties.get(name) ?? name);
  const columns = { properties, instants: new Set(named("timestamptz")), decimals };
  knownColumns.set(metadata, columns);
  return columns;
}

export type Row = Record<string, unknown>;

/** Columns by the names of an entity's properties. The text of a decimal stands behind its float, and replaces it. */
export function entityOf(row: Row, metadata: EntityMetadata): Row {
  const { properties, instants } = columnsOf(metadata);
  const properly: Row = {};
  for (const name in row) {
    const value = row[name];
    const isInstant = typeof value === "string" && instants.has(name);
    properly[properties.get(name) ?? name] = isInstant ? new Date(value) : value;
  }
  return properly;
}

/** A statement on an entity's table in a form that loses nothing on its way through JSON. */
export function exactly(sql: string, metadata: EntityMetadata): string {
  const decimals = columnsOf(metadata).decimals.map((name) => `, r.${name}::text AS "${asText(name)}"`);
  return decimals.length > 0 ? `SELECT r.*${decimals.join("")} FROM (${sql}) r` : sql;
}

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

/** By PostgreSQL's numbers of types. A decimal and a day are text to the driver; what is not here is "json". */
const KINDS = new Map<number, string>([
  ...[20, 21, 23, 700, 701].map((oid): [number, string] => [oid, "number"]),
  ...[25, 1042, 1043, 1082, 1700, 2950].map((oid): [number, string] => [oid, "text"]),
  ...([
    [16, "flag"],
    [1184, "instant"],
  ] as const),
]);

/** The texts are the code's own, so each is looked at once. */
const fitting = new Set<string>();
const MAX_FITTING = 1_000;

/** @throws where a statement gives other columns than the code says: seen by whatever test runs the statement first */
export function requireShape(
  sql: string,
  fields: readonly { name: string; dataTypeID: number }[],
  shape: Readonly<Record<string, string>>,
): void {
  if (fitting.has(sql)) return;
  const given = fields.map(({ name, dataTypeID }) => `${name}: ${KINDS.get(dataTypeID) ?? "json"}`).sort();
  const said = Object.entries(shape)
    .map(([name, kind]) => `${name}: ${kind}`)
    .sort();
  if (given.join() !== said.join()) {
    throw new Error(`a statement gives (${given.join(", ")}), and the code says (${said.join(", ")}): ${sql}`);
  }
  if (fitting.size < MAX_FITTING) fitting.add(sql);
}

/** Rows as JSON has them, with their instants as the driver gives them. */
export function revived(rows: Row[], shape: Readonly<Record<string, string>> = {}): Row[] {
  const instants = Object.keys(shape).filter((name) => shape[name] === "instant");
  if (instants.length === 0) return rows;
  return rows.map((row) => {
    const dates = instants.map((name) => [name, typeof row[name] === "string" ? new Date(row[name]) : row[name]]);
    return { ...row, ...Object.fromEntries(dates) };
  });
}

/** A read of an operation. */
interface Read {
  sql: string;
  parameters: readonly unknown[];
  resolve(rows: Row[]): void;
  reject(error: unknown): void;
}

/**
 * Reads that are asked for together go to PostgreSQL as one statement: one round trip for each level of a query,
 * however many kinds of records stand on it. Each read comes back as one JSON value.
 */
export class JointReads {
  #waiting: Read[] = [];

  /** @param namesTenant each table's comparison names the tenant by its id, as statements that go to one of many nodes have to */
  constructor(
    private readonly ask: <T>(sql: string, parameters: readonly unknown[]) => Promise<T[]>,
    private readonly namesTenant: boolean,
  ) {}

  /** Rows as JSON has them: an instant is text, and a number that must be exact has to be selected as text. */
  rows(sql: string, parameters: readonly unknown[]): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      // After this turn of the event loop: loaders, which gather for a moment themselves, have then all asked.
      if (this.#waiting.length === 0) setImmediate(() => void this.#send());
      this.#waiting.push({ sql, parameters, resolve, reject });
    });
  }

  async #send(): Promise<void> {
    const reads = this.#waiting;
    this.#waiting = [];
    const parameters = new Parameters(this.namesTenant);
    const parts = reads.map((read, index) => {
      const sql = parameters.placeIn(read);
      return `(SELECT coalesce(json_agg(r), '[]') FROM (${sql}) r) AS r${index}`;
    });
    try {
      const sql = `SELECT ${parts.join(",\n")}${parameters.condition}`;
      const [row] = await this.ask<Record<string, Row[]>>(sql, parameters.values);
      for (const [index, read] of reads.entries()) read.resolve(row?.[`r${index}`] ?? []);
    } catch (error) {
      for (const read of reads) read.reject(error);
    }
  }
}

/**
 * SQL, word for word that of the row policies. Where a table's rows are named by it PostgreSQL takes both for one condition,
 * which it finds by an index; by a value it would compare the two before each look at a table.
 */
const OF_SESSION = "nullif(current_setting('crm.tenant', true), '')::bigint";

/** The texts of reads are the code's own, so there are few; in pieces, between which their parameters stand. */
const pieces = new Map<string, readonly string[]>();
const MAX_PIECES = 500;

function piecesOf(sql: string): readonly string[] {
  const known = pieces.get(sql) ?? sql.split(/\$(\d+)/);
  if (pieces.size < MAX_PIECES) pieces.set(sql, known);
  return known;
}

/** The parameters of a joint statement: its tenant, and with it the copy, once for all of its reads. */
class Parameters {
  readonly values: unknown[] = [];
  readonly #shared = new Map<unknown, string>();

  constructor(private readonly namesTenant: boolean) {}

  /** SQL: that the session is set to the statement's tenant. Else it has no row. */
  get condition(): string {
    return this.#shared.has(TENANT) && !this.namesTenant ? `\nWHERE ${OF_SESSION} = ${this.#shared.get(TENANT)}` : "";
  }

  placeIn({ sql, parameters }: Pick<Read, "sql" | "parameters">): string {
    const isOfCopy = sql.includes("copy_id = $2");
    const places = parameters.map((value, index) => {
      if (index === 0) return this.#placeTenant(value);
      return index === 1 && isOfCopy ? this.#placeOnce(value, value) : this.#place(value);
    });
    return piecesOf(sql)
      .map((piece, index) => (index % 2 === 0 ? piece : places[Number(piece) - 1]))
      .join("");
  }

  #placeTenant(id: unknown): string {
    const place = this.#placeOnce(TENANT, id);
    return this.namesTenant ? place : OF_SESSION;
  }

  #placeOnce(key: unknown, value: unknown): string {
    const place = this.#shared.get(key) ?? this.#place(value);
    this.#shared.set(key, place);
    return place;
  }

  #place(value: unknown): string {
    return `$${this.values.push(value)}`;
  }
}

const TENANT = Symbol("tenant");

/** Rows by a key of theirs, in their order. */
export function grouped<Key, Row>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, Row[]> {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return groups;
}

/** What was read for many, for each of them: all its rows, in their order. */
export function rowsOfEach<Key, Row>(
  keys: readonly Key[],
  rows: readonly Row[],
  keyOf: (row: Row) => Key | null,
): Row[][] {
  const groups = grouped(rows, keyOf);
  return keys.map((key) => groups.get(key) ?? []);
}

/** The one row of each; null where there is none. */
export function rowOfEach<Key, Row>(
  keys: readonly Key[],
  rows: readonly Row[],
  keyOf: (row: Row) => Key | null,
): (Row | null)[] {
  const found = new Map(rows.map((row) => [keyOf(row), row]));
  return keys.map((key) => found.get(key) ?? null);
}

/** What a session is set to for the statements that follow: by one of no rows, which it has parsed by this name. */
export interface Setting extends QueryConfig<string[]> {
  name: string;
  values: string[];
  done(): void;
}

/**
 * A setting and the statement that needs it in one message with one Sync, so one transaction: where the setting
 * fails the statement is passed by, and where the statement fails the setting is taken back.
 */
export async function withSetting(
  client: PoolClient & { connection: Connection },
  setting: Setting | null,
  statement: QueryConfig,
): Promise<QueryResult> {
  if (!setting) return client.query(statement);
  client.connection.stream.cork();
  // Only bound: a Parse here would be taken for the statement's, which may then be passed by.
  client.connection.bind({ statement: setting.name, values: setting.values }, true);
  client.connection.execute(null, true);
  const asked = client.query(statement);
  client.connection.stream.uncork();
  const results = await asked;
  setting.done();
  // Of both, as a list that the driver's types do not tell of.
  return [results].flat().at(-1) ?? results;
}
