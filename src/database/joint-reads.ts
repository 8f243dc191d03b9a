import type { EntityManager, ObjectLiteral, ObjectType } from "typeorm";
import { asText, columnsOf, type EntityColumns } from "./entity-columns";

type JsonRow = Record<string, unknown>;

interface Read {
  sql: string;
  parameters: readonly unknown[];
  resolve(rows: JsonRow[]): void;
  reject(error: unknown): void;
}

/**
 * Reads that are asked for together go to PostgreSQL as one statement: one round trip for each level of a query,
 * however many kinds of records stand on it. Each read comes back as one JSON value.
 */
export class JointReads {
  #waiting: Read[] = [];

  constructor(private readonly manager: EntityManager) {}

  /** Rows as JSON has them: an instant is text, and a number that must be exact has to be selected as text. */
  rows<T>(sql: string, parameters: readonly unknown[]): Promise<T[]> {
    return new Promise((resolve, reject) => {
      // After this turn of the event loop: loaders, which gather for a moment themselves, have then all asked.
      if (this.#waiting.length === 0) setImmediate(() => this.#send());
      this.#waiting.push({ sql, parameters, resolve: (rows) => resolve(rows as T[]), reject });
    });
  }

  /** Rows of an entity's table (`SELECT t.*`) as that entity's properties; other selected columns as in {@link rows}. */
  async entities<T extends ObjectLiteral, Extra = unknown>(
    entity: ObjectType<T>,
    sql: string,
    parameters: readonly unknown[],
  ): Promise<(T & Extra)[]> {
    const columns = columnsOf(this.manager.connection.getMetadata(entity));
    const decimals = columns.decimals.map((name) => `, r.${name}::text AS "${asText(name)}"`).join("");
    const found = await this.rows<JsonRow>(decimals ? `SELECT r.*${decimals} FROM (${sql}) r` : sql, parameters);
    return found.map((row) => revived(row, columns) as T & Extra);
  }

  #send(): void {
    const reads = this.#waiting;
    this.#waiting = [];
    const parameters: unknown[] = [];
    const parts = reads.map((read, index) => {
      const sql = moveParameters(read.sql, parameters.length);
      parameters.push(...read.parameters);
      return `(SELECT coalesce(json_agg(r), '[]') FROM (${sql}) r) AS r${index}`;
    });
    this.manager.query(`SELECT ${parts.join(",\n")}`, parameters).then(
      ([row]: [Record<string, JsonRow[]>]) => reads.forEach((read, index) => void read.resolve(row[`r${index}`] ?? [])),
      (error: unknown) => reads.forEach((read) => void read.reject(error)),
    );
  }
}

/** The text of a decimal stands behind the float of the same property, and replaces it. */
function revived(row: JsonRow, { properties, instants }: EntityColumns): JsonRow {
  const properly: JsonRow = {};
  for (const name in row) {
    const value = row[name];
    const isInstant = typeof value === "string" && instants.has(name);
    properly[properties.get(name) ?? name] = isInstant ? new Date(value) : value;
  }
  return properly;
}

/** The texts of reads are the code's own, so there are few; with their parameters' numbers moved by so many. */
const moved = new Map<string, string[]>();
const MAX_MOVED = 500;

function moveParameters(sql: string, by: number): string {
  if (by === 0) return sql;
  const known = moved.get(sql) ?? [];
  const text = known[by] ?? sql.replaceAll(/\$(\d+)/g, (_, number) => `$${Number(number) + by}`);
  known[by] = text;
  if (moved.size < MAX_MOVED) moved.set(sql, known);
  return text;
}
