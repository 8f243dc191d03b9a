import { runMigrations } from "graphile-worker";
import { Client } from "pg";
import type { DataSource } from "typeorm";
import { ServiceError } from "../platform/errors";
import type { Secret } from "../platform/secret";
import { unavailable } from "./application-role";
import { createDataSource, migrationNames } from "./data-source";
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

/** The database's tables were made by another text than this version's first migration. */
export class ForeignTablesError extends ServiceError {
  readonly code = "FOREIGN_TABLES";
}

/** null where a database with this first migration is one of ours; else what it is, and what to do. */
export function foreignTables(first: string): { what: string; todo: string } | null {
  if (first === migrationNames[0]) return null;
  return {
    what: `its tables were made by ${first}, and this version begins with ${migrationNames[0]}`,
    todo: "give DATABASE_URL an empty database, or run the version that made this one",
  };
}

/** Opens the pool. @throws DatabaseUnavailableError, ForeignTablesError, with what to do */
export async function connectDatabase(dataSource: DataSource, url: Secret): Promise<void> {
  try {
    await dataSource.initialize();
  } catch (cause) {
    throw unavailable(url, cause);
  }
  const [table] = await dataSource.query("SELECT to_regclass('public.migration') IS NOT NULL AS exists");
  const [first] = table.exists ? await dataSource.query("SELECT name FROM migration ORDER BY timestamp, id") : [];
  const foreign = first && foreignTables(first.name);
  if (!foreign) return;
  await dataSource.destroy();
  throw new ForeignTablesError(`The database cannot be used: ${foreign.what}; ${foreign.todo}.`);
}
