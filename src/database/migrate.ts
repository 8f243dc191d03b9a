import { runMigrations } from "graphile-worker";
import { Client } from "pg";
import type { DataSource } from "typeorm";
import type { Secret } from "../platform/secret";

/** Any fixed number: the name of "migrating" among this database's advisory locks. */
const MIGRATION_LOCK = 7_302_518;

/** Brings the tables and the job queue up to date. Processes that start together wait for each other. */
export async function migrate(dataSource: DataSource, url: Secret): Promise<void> {
  const connectionString = url.reveal();
  const lock = new Client({ connectionString });
  await lock.connect();
  try {
    await lock.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    await dataSource.runMigrations({ transaction: "each" });
    await runMigrations({ connectionString });
  } finally {
    await lock.end();
  }
}
