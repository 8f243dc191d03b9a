import { runMigrations } from "graphile-worker";
import { Pool, type PoolConfig } from "pg";
import { DataSource, DefaultNamingStrategy, type Table } from "typeorm";
import type { Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import { APPLICATION_ROLE, asApplication, CONNECT_TIMEOUT_MS, connectionTo, patience } from "./application-role";
import { type Ask, dropLocalRows, forSchemaChanges, readLayout, spreadTables } from "./cluster";
import { startEmbeddedPostgres } from "./embedded/embedded-postgres";
import { refuseUnfit, type Unfit, unavailable } from "./errors";
import { Initial } from "./migrations/0001-initial";
import { getTypeParser } from "./rows";
import { callOffUnanswered } from "./session";
import { POOL_SIZE, SESSION_LIFE_MS, SESSION_LIMITS, type SessionLimits, withLimits } from "./session-limits";

/** In the order in which they run. */
const migrations = [Initial];
/** As the table `migration` has them. */
export const migrationNames: readonly string[] = migrations.map((Migration) => new Migration().name);

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

const EACH_SESSION = { maxLifetimeSeconds: SESSION_LIFE_MS / 1_000, onConnect: callOffUnanswered };

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
    extra: { types: { getTypeParser }, ...EACH_SESSION, ...patience(limits) },
  });
}

/** Sessions beside the pool of `Database`; one that takes no writes stays so, and is ended. @param ended says in the log whose it was */
export function openPool(url: Secret, limits: SessionLimits, more: PoolConfig, logger: Logger, ended: string): Pool {
  const onError = (error: Error) => logger.warn({ err: error }, ended);
  const pool = new Pool({ connectionString: withLimits(url, limits).reveal(), ...patience(limits), ...more });
  return pool.on("error", onError).on("connect", (session) => {
    callOffUnanswered(session);
    session.on("error", onError).connection.on("errorMessage", ({ code }) => code === "25006" && void session.end());
  });
}

/** Any fixed number: the name of "migrating" among this database's advisory locks. */
const MIGRATION_LOCK = 7_302_518;
const EMBEDDED = { directory: ".data/postgres", durable: true };

/** Brings the tables and the job queue up to date. */
export function migrate(url: Secret, logger?: Logger): Promise<void> {
  const bring = async (ask: Ask, dataSource: DataSource) => {
    refuseUnfit(await newerQueue(ask));
    await dataSource.runMigrations({ transaction: "each" });
    await runMigrations({ connectionString: withLimits(url, SESSION_LIMITS.migration).reveal() });
    const layout = await readLayout(ask);
    // A table of a later migration, which knows nothing of nodes.
    if (layout.kind === "DISTRIBUTED" && layout.local.length > 0) await distributeTables(dataSource);
  };
  return changingTables(url, bring, () =>
    logger?.info("another process changes the tables, which may take long: this one waits for it"),
  );
}

/** All of it or, where it is interrupted, nothing; done again, what is missing. */
export async function distributeTables(dataSource: DataSource): Promise<void> {
  await dataSource.transaction((manager) => spreadTables((sql) => manager.query(sql)));
  await dropLocalRows((sql) => dataSource.query(sql));
}

/**
 * Work that changes tables, as their owner. Processes that start together wait for each other.
 * @param wait is told that another one is at it
 */
export async function changingTables<T>(
  url: Secret,
  work: (ask: Ask, dataSource: DataSource) => Promise<T>,
  wait: () => void = () => undefined,
): Promise<T> {
  const lock = connectionTo(withLimits(url, SESSION_LIMITS.migrationTurn));
  await lock.connect();
  try {
    const { rows } = await lock.query("SELECT pg_try_advisory_lock($1) AS ours", [MIGRATION_LOCK]);
    if (!rows[0]?.ours) {
      wait();
      await lock.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    }
    const limits = SESSION_LIMITS.migration;
    const dataSource = createDataSource({ url: forSchemaChanges(url), entities: [], limits });
    await dataSource.initialize();
    return await work((sql) => dataSource.query(sql), dataSource).finally(() => dataSource.destroy());
  } finally {
    await lock.end();
  }
}

export interface OpenDatabase {
  /** As the service's own role. */
  url: Secret;
  dataSource: DataSource;
  close(): Promise<void>;
}

/**
 * The pool of the configured database or, where none is configured, of the embedded one.
 * @throws DatabaseUnavailableError, DatabaseRoleError, UnfitDatabaseError, with what to do
 */
export async function openDatabase(
  configured: Secret | null,
  options: Omit<DatabaseOptions, "url">,
): Promise<OpenDatabase> {
  const server = configured ? { url: configured, stop: async () => {} } : await startEmbeddedPostgres(EMBEDDED);
  try {
    const url = await asApplication(server.url);
    const dataSource = createDataSource({ ...options, url });
    await connectDatabase(dataSource, url);
    const close = () => dataSource.destroy().then(() => server.stop());
    return { url, dataSource, close };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** The same for work that ends, and the pool with it. */
export async function whileOpen<T>(
  configured: Secret | null,
  options: Omit<DatabaseOptions, "url">,
  work: (open: OpenDatabase) => Promise<T>,
): Promise<T> {
  const open = await openDatabase(configured, options);
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}

/** @throws DatabaseUnavailableError, UnfitDatabaseError */
export async function connectDatabase(dataSource: DataSource, url: Secret): Promise<void> {
  try {
    await dataSource.initialize();
  } catch (cause) {
    throw unavailable(url, cause);
  }
  const { foreign } = await appliedMigrations((sql) => dataSource.query(sql));
  if (foreign) await dataSource.destroy();
  refuseUnfit(foreign);
}

export interface Applied {
  /** In their order. */
  names: string[];
  /** Where the tables are not of this version: what they are, and what to do. */
  foreign: Unfit | null;
}

/** Of a version that acted as the user of DATABASE_URL, the tables are that user's, and not to be read by our role. */
export async function appliedMigrations(ask: Ask): Promise<Applied> {
  const [table] = await ask<{ isReadable: boolean; owner: string; isWhole: boolean | null }>(
    `SELECT has_table_privilege(oid, 'SELECT') AS "isReadable", relowner::regrole::text AS owner,
       (SELECT t.relrowsecurity FROM pg_class t WHERE t.oid = to_regclass('public.tenant')) AS "isWhole" FROM pg_class WHERE oid = to_regclass('public.migration')`,
  );
  if (!table) return { names: [], foreign: null };
  if (!table.isReadable) return { names: [], foreign: table.owner === APPLICATION_ROLE ? DENIED : foreign(OF_ANOTHER) };
  const applied = await ask<{ name: string }>("SELECT name FROM public.migration ORDER BY timestamp, id");
  const names = applied.map(({ name }) => name);
  const [first = migrationNames[0]] = names;
  if (first === migrationNames[0]) return { names, foreign: table.isWhole === false ? HALF : null };
  return {
    names,
    foreign: foreign(`its tables were made by ${first}, and this version begins with ${migrationNames[0]}`),
  };
}

const KNOWN_QUEUE_REVISION = 19; // the library's last; it tells it nowhere, and a test of jobs says when it has more

/** Where a newer version's job library has changed the queue: so that this one's must not use it, or at all. */
export async function newerQueue(ask: Ask, isBreaking = true): Promise<Unfit | null> {
  const [table] = await ask("SELECT FROM pg_tables WHERE schemaname = 'graphile_worker' AND tablename = 'migrations'");
  if (!table) return null;
  const sql = `SELECT coalesce(max(id), 0) AS id FROM graphile_worker.migrations WHERE breaking OR NOT ${isBreaking}`;
  const [{ id: revision } = { id: 0 }] = await ask<{ id: number }>(sql);
  const what = `its job queue is of revision ${revision}, and this version knows those up to ${KNOWN_QUEUE_REVISION}`;
  return revision > KNOWN_QUEUE_REVISION ? { what, todo: "run the newer version that has changed it" } : null;
}

const EMPTY = "give DATABASE_URL an empty database, or run the version that made this one";
const foreign = (what: string): Unfit => ({ what, todo: EMPTY });
const OF_ANOTHER = "its tables belong to another role";
const GRANT = `as an administrator GRANT ALL ON ALL TABLES IN SCHEMA public TO ${APPLICATION_ROLE}`;
/** Of all that a restore makes, what turns on the policies comes last, and that of `tenant` after all others. */
const HALF: Unfit = { what: "a backup was restored into it by half", todo: "restore it into an empty database" };
const DENIED: Unfit = { what: `${APPLICATION_ROLE} was denied its own tables`, todo: GRANT };
