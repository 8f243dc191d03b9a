import "reflect-metadata";
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import type { DataSource } from "typeorm";
import { createDataSource } from "../../src/database/data-source";
import { Database, type TenantScope } from "../../src/database/database";
import { entities } from "../../src/entities";
import { Secret } from "../../src/platform/secret";

export interface TestDatabase {
  url: Secret;
  /** A pool of the test's own, connected. */
  dataSource: DataSource;
  /** Rows of one statement. */
  query<T = Record<string, unknown>>(sql: string, parameters?: unknown[]): Promise<T[]>;
  /** The id of a tenant, whether or not the service has seen it. */
  tenantId(name: string): Promise<number>;
  drop(): Promise<void>;
}

/** Of this run alone: two runs may share a server. */
export const TEMPLATE = `crm_template_${process.env.CRM_TEST_RUN ?? process.pid}`;

export function serverUrl(database?: string): string {
  const url = new URL(process.env.CRM_TEST_SERVER_URL ?? "");
  if (database) url.pathname = `/${database}`;
  return url.href;
}

export async function onServer(sql: string): Promise<void> {
  const client = new Client({ connectionString: serverUrl() });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** A database for one test file: migrated, empty, and its own. `empty` leaves even the tables out. */
export async function createTestDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  await onServer(`CREATE DATABASE ${name} ${empty ? "" : `TEMPLATE ${TEMPLATE} STRATEGY file_copy`}`);
  const url = new Secret(serverUrl(name));
  const dataSource = await createDataSource({ url, entities }).initialize();
  return {
    url,
    dataSource,
    query: (sql, parameters) => dataSource.query(sql, parameters),
    tenantId: (name) => new Database(dataSource).idOf(name),
    drop: async () => {
      await dataSource.destroy();
      await onServer(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

type Work<T> = (scope: TenantScope) => Promise<T>;

/** The same database, whose transactions are done `around` the usual ones. */
export function withTransactions(
  database: Database,
  around: <T>(transaction: (work: Work<T>) => Promise<T>, work: Work<T>) => Promise<T>,
): Database {
  const tenant: Database["tenant"] = (tenantId, signal) => {
    const scope = database.tenant(tenantId, signal);
    return { ...scope, transaction: (work) => around(scope.transaction, work) };
  };
  return Object.assign(Object.create(database), { tenant });
}
