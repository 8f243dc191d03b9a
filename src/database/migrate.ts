import { runMigrations } from "graphile-worker";
import { Client } from "pg";
import type { DataSource } from "typeorm";
import { ServiceError } from "../platform/errors";
import type { Secret } from "../platform/secret";
import { unavailable } from "./application-role";
import { type Ask, dropLocalRows, forSchemaChanges, readLayout, spreadTables } from "./cluster";
import { createDataSource, migrationNames } from "./data-source";
import { SESSION_LIMITS, withLimits } from "./session-limits";

/** Any fixed number: the name of "migrating" among this database's advisory locks. */
const MIGRATION_LOCK = 7_302_518;

/** Brings the tables and the job queue up to date. */
export function migrate(url: Secret): Promise<void> {
  return changingTables(url, async (ask, dataSource) => {
    await dataSource.runMigrations({ transaction: "each" });
    await runMigrations({ connectionString: withLimits(url, SESSION_LIMITS.migration).reveal() });
    const layout = await readLayout(ask);
    // A table of a later migration, which knows nothing of nodes.
    if (layout.kind === "DISTRIBUTED" && layout.local.length > 0) await distributeTables(dataSource);
  });
}

/** All of it or, where it is interrupted, nothing; done again, what is missing. */
export async function distributeTables(dataSource: DataSource): Promise<void> {
  await dataSource.transaction((manager) => spreadTables((sql) => manager.query(sql)));
  await dropLocalRows((sql) => dataSource.query(sql));
}

/** Work that changes tables, as their owner. Processes that start together wait for each other. */
export async function changingTables<T>(
  url: Secret,
  work: (ask: Ask, dataSource: DataSource) => Promise<T>,
): Promise<T> {
  const lock = new Client({ connectionString: withLimits(url, SESSION_LIMITS.migrationTurn).reveal() });
  await lock.connect();
  try {
    await lock.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    const limits = SESSION_LIMITS.migration;
    const dataSource = createDataSource({ url: forSchemaChanges(url), entities: [], limits });
    await dataSource.initialize();
    return await work((sql) => dataSource.query(sql), dataSource).finally(() => dataSource.destroy());
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
  const [first] = await appliedMigrations((sql) => dataSource.query(sql));
  const foreign = first && foreignTables(first);
  if (!foreign) return;
  await dataSource.destroy();
  throw new ForeignTablesError(`The database cannot be used: ${foreign.what}; ${foreign.todo}.`);
}

/** Their names, in their order. */
export async function appliedMigrations(ask: Ask): Promise<string[]> {
  const [table] = await ask<{ exists: boolean }>("SELECT to_regclass('public.migration') IS NOT NULL AS exists");
  if (!table?.exists) return [];
  const applied = await ask<{ name: string }>("SELECT name FROM public.migration ORDER BY timestamp, id");
  return applied.map(({ name }) => name);
}
