import type { DataSource } from "typeorm";
import { ServiceError } from "../platform/errors";
import type { Secret } from "../platform/secret";
import { asApplication, unavailable } from "./application-role";
import { createDataSource, type DatabaseOptions } from "./data-source";
import { startEmbeddedPostgres } from "./embedded/embedded-postgres";
import { appliedMigrations } from "./migrate";

const EMBEDDED = { directory: ".data/postgres", durable: true };

/** The database's tables were made by another text than this version's first migration. */
export class ForeignTablesError extends ServiceError {
  readonly code = "FOREIGN_TABLES";
}

export interface OpenDatabase {
  /** As the service's own role. */
  url: Secret;
  dataSource: DataSource;
  close(): Promise<void>;
}

/**
 * The pool of the configured database or, where none is configured, of the embedded one.
 * @throws DatabaseUnavailableError, DatabaseRoleError, ForeignTablesError, with what to do
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
    const close = async () => {
      await dataSource.destroy();
      await server.stop();
    };
    return { url, dataSource, close };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** @throws DatabaseUnavailableError, ForeignTablesError */
export async function connectDatabase(dataSource: DataSource, url: Secret): Promise<void> {
  try {
    await dataSource.initialize();
  } catch (cause) {
    throw unavailable(url, cause);
  }
  const { foreign } = await appliedMigrations((sql) => dataSource.query(sql));
  if (!foreign) return;
  await dataSource.destroy();
  throw new ForeignTablesError(`The database cannot be used: ${foreign.what}; ${foreign.todo}.`);
}
