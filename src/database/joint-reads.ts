import { LRUCache } from "lru-cache";
import { type Asked, listOf, NamedIds, type Read, type Row, rowsIn } from "./rows";

/** A piece of work, and the first read that it asks for at once; null: it asks for none. */
export interface Begun<T> {
  done: Promise<T>;
  read: Read | null;
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
      this.#waiting.push({ ...asked, found: [], hearers: [], resolve, reject });
    });
  }

  /** @param hear told when the work's read is found, before any that wait for rows of its statement go on */
  within<T>(work: () => Promise<T>, hear: (() => void) | null): Begun<T> {
    const at = this.#waiting.length;
    const done = work();
    const read = this.#waiting[at] ?? null;
    if (hear) read?.hearers.push(hear);
    return { done, read };
  }

  async #send(): Promise<void> {
    const reads = this.#waiting;
    this.#waiting = [];
    try {
      const { sql, places } = jointStatement(reads, this.namesTenant);
      const parameters = places.map(([read, index]) => reads[read]?.parameters[index]);
      const [row] = await this.ask<{ found: unknown[][][][] }>(sql, parameters);
      const found = row?.found.flat() ?? [];
      for (const [index, read] of reads.entries()) read.found = rowsIn(found[index] ?? [], read.layout);
      for (const read of reads) for (const tell of read.hearers) tell();
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
  reads: readonly Pick<Read, "sql" | "layout">[];
  links: string;
  sql: string;
  places: readonly Place[];
}

/** By what is told apart at a glance, those that were asked for last. A process has some hundreds. */
const joints = new LRUCache<string, Joint[]>({
  maxSize: 8 * 1024 * 1024,
  sizeCalculation: (alike) => alike.reduce((size, { sql }) => size + sql.length, 0),
});
const MOST_ALIKE = 20;

/** @param namesTenant see {@link JointReads} */
function jointStatement(reads: readonly Read[], namesTenant: boolean): Joint {
  const links = linksOf(reads);
  const glance = `${reads.map(({ sql, layout }) => sql.length + layout.values.length)} ${namesTenant}`;
  const alike = joints.get(glance) ?? [];
  const isSame = (joint: Joint) =>
    joint.links === links &&
    reads.every(({ sql, layout }, index) => {
      const known = joint.reads[index];
      return known?.sql === sql && known.layout.values === layout.values;
    });
  const known = alike.find(isSame);
  if (known) return known;
  const joint = compose(reads, links, namesTenant);
  joints.set(glance, [joint, ...alike].slice(0, MOST_ALIKE));
  return joint;
}

/** From which reads ids are taken, and where. */
function linksOf(reads: readonly Read[]): string {
  let links = "";
  for (const { parameters } of reads) {
    for (const [at, value] of parameters.entries()) {
      if (value instanceof NamedIds) links += `${at}${value.by.map(([read, name]) => reads.indexOf(read) + name)};`;
    }
    // Copies that are the same have one place.
    links += `${reads.findIndex(({ parameters: [, copyId] }) => copyId === parameters[1])}|`;
  }
  return links;
}

/** Reads that others take ids from, with the properties that they take. */
function taken(reads: readonly Read[]): Map<Read, Set<string>> {
  const names = new Map<Read, Set<string>>();
  for (const value of reads.flatMap(({ parameters }) => parameters)) {
    if (!(value instanceof NamedIds)) continue;
    for (const [read, name] of value.by) names.set(read, (names.get(read) ?? new Set()).add(name));
  }
  return names;
}

/** SQL: what the reads found, in lists of lists: a function of PostgreSQL takes 100 arguments. */
function listed(found: readonly string[]): string {
  const lists = Array.from({ length: Math.ceil(found.length / 100) }, (_, list) =>
    found.slice(list * 100, list * 100 + 100),
  );
  return `json_build_array(${lists.map((list) => `json_build_array(${list.join(",\n")})`)})`;
}

/**
 * What others take ids from stands before the rest, each as one row: of all its rows, and of the ids in each of their columns
 * that is asked for. So it is gone through once, whoever takes from it. Each is joined to those before it by itself, which OFFSET
 * keeps so: PostgreSQL would look for the best order of all of them, and take seconds to plan two dozen.
 */
function compose(reads: readonly Read[], links: string, namesTenant: boolean): Joint {
  const sources = taken(reads);
  const placing = new Placing(reads, namesTenant);
  let from = "";
  const found = reads.map((read, index) => {
    const { values, columnOf } = read.layout;
    const sql = `(${placing.placeIn(read, index)}) r`;
    const names = sources.get(read);
    if (!names) return listOf(values, sql);
    const rows = `coalesce(json_agg(json_build_array(${values})), '[]')`;
    const ids = [...names].map((name) => `array_agg(r."${columnOf(name)}") AS "${index} ${name}"`);
    const source = `(SELECT ${[`${rows} AS "${index}"`, ...ids]} FROM ${sql})`;
    from = from ? `(SELECT * FROM ${from} taken, LATERAL ${source} one OFFSET 0)` : source;
    return `taken."${index}"`;
  });
  const sql = `SELECT ${listed(found)} AS found${from && `\nFROM ${from} taken`}${placing.condition}`;
  return { reads: reads.map(({ sql, layout }) => ({ sql, layout })), links, sql, places: placing.places };
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
    const ids = by.map(([read, property]) => `taken."${this.reads.indexOf(read)} ${property}"`).join(" || ");
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
