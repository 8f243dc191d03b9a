import { runMigrations } from "graphile-worker";
import { Client } from "pg";
import type { DataSource } from "typeorm";
import { messageOf, ServiceError } from "../platform/errors";
import type { Secret } from "../platform/secret";
import { createDataSource } from "./data-source";
import { SESSION_LIMITS, withLimits } from "./session-limits";

/** Any fixed number: the name of "migrating" among this database's advisory locks. */
const MIGRATION_LOCK = 7_302_518;

/** Brings the tables and the job queue up to date. Processes that start together wait for each other. */
export async function migrate(url: Secret): Promise<void> {
  const lock = new Client({ connectionString: withLimits(url, SESSION_LIMITS.migrationTurn).reveal() });
  await lock.connect();
  try {
    await lock.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    const dataSource = createDataSource({ url, entities: [], limits: SESSION_LIMITS.migration });
    await dataSource.initialize();
    await dataSource.runMigrations({ transaction: "each" }).finally(() => dataSource.destroy());
    await runMigrations({ connectionString: withLimits(url, SESSION_LIMITS.migration).reveal() });
  } finally {
    await lock.end();
  }
}

/** The database cannot be used; the message says which and why, without its password. */
export class DatabaseUnavailableError extends ServiceError {
  readonly code = "DATABASE_UNAVAILABLE";
}

/** The error of a database that refuses or does not answer, without its password. */
export function unavailable(url: Secret, cause: unknown): DatabaseUnavailableError {
  const { host, pathname } = new URL(url.reveal());
  const what = `The database ${pathname.slice(1)} at ${host} cannot be reached: ${messageOf(cause)}.`;
  return new DatabaseUnavailableError(`${what} Check DATABASE_URL and that PostgreSQL runs.`, { cause });
}

/** Opens the pool. @throws DatabaseUnavailableError with what to do */
export async function connectDatabase(dataSource: DataSource, url: Secret): Promise<void> {
  try {
    await dataSource.initialize();
  } catch (cause) {
    throw unavailable(url, cause);
  }
}
