import type { Connection, PoolClient, QueryConfig, QueryResult } from "pg";
import type { EntityMetadata } from "typeorm";

/** Rows of an entity's table are read by these. */
interface EntityColumns {
  /** The property of a column, and of what {@link asText} names. */
  properties: ReadonlyMap<string, string>;
  /** The other way. */
  columns: ReadonlyMap<string, string>;
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
  const columns = new Map([...properties].map(([column, property]) => [property, column]));
  const decimals = named("numeric");
  for (const name of decimals) properties.set(asText(name), properties.get(name) ?? name);
  const known = { properties, columns, instants: new Set(named("timestamptz")), decimals };
  knownColumns.set(metadata, known);
  return known;
}

/** The column of a property of an entity's rows; what is joined to them has the same name. */
export const columnOf = (property: string, metadata: EntityMetadata): string =>
  columnsOf(metadata).columns.get(property) ?? property;

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

/** Numbers in the CRM, or ids of our own. */
export type Id = number | string;

/** Ids that rows of the same statement name: a read takes them in the place of known ones, and so needs no statement of its own. */
export class NamedIds<I extends Id = Id> {
  /** @param by reads that are asked for before, and the properties of their rows */
  constructor(readonly by: readonly (readonly [Read, property: string])[]) {}

  /** Once the statement is answered; each once. */
  get known(): I[] {
    const values = new Set(this.by.flatMap(([{ found }, property]) => found.map((row) => row[property])));
    values.delete(null);
    return [...values] as I[];
  }
}

/** Known, or found by the same statement. */
export type Ids<I extends Id = number> = readonly I[] | NamedIds<I>;

/** How a read is asked for. */
interface Asked {
  sql: string;
  parameters: readonly unknown[];
  /** Of rows as JSON has them: an instant is text, and a number that must be exact is selected as text. */
  convert(rows: Row[]): Row[];
  /** The column of a property of its rows. */
  columnOf(property: string): string;
}

/** A read of an operation. */
export interface Read extends Asked {
  found: Row[];
  /** Told when it is found, before any that wait for rows of this statement go on. */
  told(): void;
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

  rows(asked: Asked): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      // After this turn of the event loop: loaders, which gather for a moment themselves, have then all asked.
      if (this.#waiting.length === 0) setImmediate(() => void this.#send());
      this.#waiting.push({ ...asked, found: [], told: () => undefined, resolve, reject });
    });
  }

  /** A piece of work, and the first read that it asks for at once; null: it asks for none. */
  within<T>(work: () => Promise<T>): { done: Promise<T>; read: Read | null } {
    const at = this.#waiting.length;
    const done = work();
    return { done, read: this.#waiting[at] ?? null };
  }

  async #send(): Promise<void> {
    const reads = this.#waiting;
    this.#waiting = [];
    const { sql, places } = jointStatement(reads, this.namesTenant);
    const parameters = places.map(([read, index]) => reads[read]?.parameters[index]);
    try {
      const [row] = await this.ask<{ found: Row[][] }>(sql, parameters);
      for (const [index, read] of reads.entries()) read.found = read.convert(row?.found[index] ?? []);
      for (const read of reads) read.told();
      for (const read of reads) read.resolve(read.found);
    } catch (error) {
      for (const read of reads) read.reject(error);
    }
  }
}

/** Of which read the parameter is, and which of it. */
type Place = readonly [read: number, index: number];

/** A statement for reads of these texts, each of which takes ids from the same others. */
interface Joint {
  texts: readonly string[];
  links: string;
  sql: string;
  places: readonly Place[];
}

/** By what is told apart at a glance; a process has some hundreds. */
const joints = new Map<string, Joint[]>();
const MAX_JOINTS = 500;

function jointStatement(reads: readonly Read[], namesTenant: boolean): Joint {
  const links = linksOf(reads);
  const glance = `${reads.map(({ sql }) => sql.length)} ${namesTenant}`;
  const alike = joints.get(glance) ?? [];
  const isSame = (joint: Joint) => joint.links === links && joint.texts.every((text, index) => text === reads[index]?.sql);
  const joint = alike.find(isSame) ?? compose(reads, links, namesTenant);
  if (!alike.includes(joint) && joints.size < MAX_JOINTS) joints.set(glance, [...alike, joint]);
  return joint;
}

/** From which reads ids are taken, and where. */
function linksOf(reads: readonly Read[]): string {
  let links = "";
  for (const { parameters } of reads) {
    for (const [at, value] of parameters.entries()) {
      if (value instanceof NamedIds) links += `${at}${value.by.map(([read, property]) => `${reads.indexOf(read)}${property}`)};`;
    }
    links += "|";
  }
  return links;
}

/** Reads that others take ids from, with the properties that they take. */
function taken(reads: readonly Read[]): Map<Read, Set<string>> {
  const properties = new Map<Read, Set<string>>();
  for (const { parameters } of reads) {
    for (const value of parameters) {
      if (!(value instanceof NamedIds)) continue;
      for (const [read, property] of value.by) properties.set(read, (properties.get(read) ?? new Set()).add(property));
    }
  }
  return properties;
}

/**
 * What others take ids from stands before the rest, each as one row: of all its rows, and of the ids in each of their columns
 * that is asked for. So it is gone through once, whoever takes from it.
 */
function compose(reads: readonly Read[], links: string, namesTenant: boolean): Joint {
  const sources = taken(reads);
  const placing = new Placing(reads, namesTenant);
  const [rows, from]: [string[], string[]] = [[], []];
  for (const [index, read] of reads.entries()) {
    const all = `coalesce(json_agg(r), '[]')`;
    const sql = `(${placing.placeIn(read, index)}) r`;
    const properties = sources.get(read);
    if (!properties) {
      rows.push(`(SELECT ${all} FROM ${sql})`);
      continue;
    }
    const columns = [...properties].map((name) => `array_agg(r."${read.columnOf(name)}") AS "${name}"`);
    from.push(`LATERAL (SELECT ${[`${all} AS found`, ...columns].join()} FROM ${sql}) r${index}`);
    rows.push(`r${index}.found`);
  }
  const sources_ = from.length > 0 ? `\nFROM ${from.join(",\n")}` : "";
  const sql = `SELECT json_build_array(${rows.join(",\n")}) AS found${sources_}${placing.condition}`;
  return { texts: reads.map((read) => read.sql), links, sql, places: placing.places };
}

/**
 * SQL, word for word that of the row policies. Where a table's rows are named by it PostgreSQL takes both for one condition,
 * which it finds by an index; by a value it would compare the two before each look at a table.
 */
const OF_SESSION = "nullif(current_setting('crm.tenant', true), '')::bigint";

/** Where the parameters of a joint statement stand: its tenant, and its copy, once for all of its reads. */
class Placing {
  readonly places: Place[] = [];
  readonly #shared = new Map<unknown, string>();

  constructor(
    private readonly reads: readonly Read[],
    private readonly namesTenant: boolean,
  ) {}

  /** SQL: that the session is set to the statement's tenant. Else it has no row. */
  get condition(): string {
    return this.#shared.has(TENANT) && !this.namesTenant ? ` WHERE ${OF_SESSION} = ${this.#shared.get(TENANT)}` : "";
  }

  placeIn({ sql, parameters }: Read, read: number): string {
    const isOfCopy = sql.includes("copy_id = $2");
    const places = parameters.map((value, index) => {
      if (index === 0) return this.#placeTenant([read, index]);
      if (value instanceof NamedIds) return this.#selectionOf(value, sql.includes(`unnest($${index + 1}`));
      return index === 1 && isOfCopy ? this.#placeOnce(value, [read, index]) : this.#place([read, index]);
    });
    return sql.replaceAll(/\$(\d+)/g, (_, number) => places[Number(number) - 1] ?? "");
  }

  /** Each once where they are gone through one by one: else of many of one id a list would come as often. */
  #selectionOf({ by }: NamedIds, isListed: boolean): string {
    const ids = by.map(([read, property]) => `r${this.reads.indexOf(read)}."${property}"`).join(" || ");
    return isListed ? `(SELECT array_agg(DISTINCT id) FROM unnest(${ids}) id)` : `(${ids})`;
  }

  #placeTenant(place: Place): string {
    const named = this.#placeOnce(TENANT, place);
    return this.namesTenant ? named : OF_SESSION;
  }

  #placeOnce(key: unknown, place: Place): string {
    const known = this.#shared.get(key) ?? this.#place(place);
    this.#shared.set(key, known);
    return known;
  }

  #place(place: Place): string {
    return `$${this.places.push(place)}`;
  }
}

const TENANT = Symbol("tenant");

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
