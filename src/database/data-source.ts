import { Client, Pool, types } from "pg";
import { DataSource, DefaultNamingStrategy, type Table } from "typeorm";
import { SECOND_MS } from "../platform/clock";
import type { Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import { unavailable } from "./application-role";
import { Initial } from "./migrations/0001-initial";
import { heldUpOf } from "./session";
import { POOL_SIZE, SESSION_LIMITS, type SessionLimits, withLimits } from "./session-limits";

/** In the order in which they run. */
const migrations = [Initial];
/** As the table `migration` has them. */
export const migrationNames: readonly string[] = migrations.map((Migration) => new Migration().name);

const CONNECT_TIMEOUT_MS = 10_000;
const OID_INT8 = 20;
const OID_INT8_ARRAY = 1016;
const OID_DATE = 1082;

/** snake_case columns, and PostgreSQL's own name for a primary key, so that entities and hand-written SQL agree. */
class SnakeCaseNames extends DefaultNamingStrategy {
  override columnName(propertyName: string, customName: string | undefined): string {
    return customName || propertyName.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  }

  override primaryKeyName(tableOrName: Table | string): string {
    return `${this.getTableName(tableOrName)}_pkey`;
  }
}

export interface DatabaseOptions {
  url: Secret;
  entities: readonly (new () => object)[];
  logger?: Logger;
  limits?: SessionLimits;
}

/** The one pool of a process. Not yet connected: call `initialize`. */
export function createDataSource({ url, entities, logger, limits = SESSION_LIMITS.work }: DatabaseOptions): DataSource {
  return new DataSource({
    type: "postgres",
    url: withLimits(url, limits).reveal(),
    entities: [...entities],
    migrations,
    migrationsTableName: "migration",
    namingStrategy: new SnakeCaseNames(),
    synchronize: false,
    logging: false,
    installExtensions: false,
    poolSize: POOL_SIZE,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    applicationName: "crm-connection",
    poolErrorHandler: (error: unknown) => logger?.warn({ err: error }, "an idle database connection ended"),
    extra: { types: { getTypeParser }, keepAlive: true },
  });
}

/**
 * CRM ids are kept as bigint and are whole numbers that JavaScript holds exactly (the parser of the CRM's records sees
 * to it). A calendar day stays text: as a Date it would move with the time zone of the process.
 */
function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === OID_INT8) return Number;
  if (oid === OID_INT8_ARRAY) return (value) => value.slice(1, -1).split(",").filter(Boolean).map(Number);
  if (oid === OID_DATE) return (value) => value;
  return format === "binary" ? types.getTypeParser(oid, format) : types.getTypeParser(oid, format);
}

/** An operator waits for it. */
const LOOK_TIMEOUT_MS = 10 * SECOND_MS;

/** A database session that can change nothing. */
export interface Look {
  rows<T>(sql: string, parameters?: unknown[]): Promise<T[]>;
}

/** @throws DatabaseUnavailableError */
export async function withLook<T>(url: Secret, work: (look: Look) => Promise<T>): Promise<T> {
  const client = new Client({
    connectionString: url.reveal(),
    connectionTimeoutMillis: LOOK_TIMEOUT_MS,
    query_timeout: LOOK_TIMEOUT_MS,
    application_name: "crm-connection doctor",
  });
  client.on("error", () => undefined);
  try {
    await client.connect().catch((cause: unknown) => {
      throw unavailable(url, cause);
    });
    await client.query("SET default_transaction_read_only = on");
    return await work({ rows: async (sql, parameters = []) => (await client.query(sql, parameters)).rows });
  } finally {
    await client.end().catch(() => undefined);
  }
}

export interface LockParts {
  url: Secret;
  limits: SessionLimits;
  /** At once in this process, and how long one waits for a session to come free. */
  sessions: number;
  withinMs: number;
  /** Any fixed number: keeps these locks apart from the database's others. */
  space: number;
  /** What is thrown where the lock, or a session to ask for it, cannot be had for now. */
  heldUp(cause: unknown): Error;
  logger: Logger;
}

/** Locks that are held across processes while something else is waited for: in sessions beside the pool. */
export class AdvisoryLocks {
  readonly #pool: Pool;

  constructor(private readonly parts: LockParts) {
    this.#pool = new Pool({
      connectionString: withLimits(parts.url, parts.limits).reveal(),
      max: parts.sessions,
      connectionTimeoutMillis: parts.withinMs,
      keepAlive: true,
    });
    const onError = (error: Error) => parts.logger.warn({ err: error }, "a lock session ended");
    this.#pool.on("error", onError);
    this.#pool.on("connect", (session) => session.on("error", onError));
  }

  /** @param asked called as the lock is asked for; what it gives is there for the work under the lock */
  async hold<H, T>(subject: string, asked: () => H, work: (held: H) => Promise<T>): Promise<T> {
    const refuse = (error: unknown): never => {
      throw heldUpOf(error) ? this.parts.heldUp(error) : error;
    };
    const session = await this.#pool.connect().catch(refuse);
    try {
      await session.query("BEGIN");
      const held = asked();
      await session.query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [this.parts.space, subject]).catch(refuse);
      return await work(held);
    } finally {
      await session.query("ROLLBACK").then(
        () => session.release(),
        (error: Error) => session.release(error),
      );
    }
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}
