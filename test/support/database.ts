import "reflect-metadata";
import { randomBytes } from "node:crypto";
import { Client } from "pg";
import type { DataSource } from "typeorm";
import { createDataSource } from "../../src/database/data-source";
import { Database, type TenantScope } from "../../src/database/database";
import { entities } from "../../src/entities";
import { Secret, withOptions } from "../../src/platform/keyring";

export interface TestDatabase {
  url: Secret;
  /** A pool of the test's own, connected. */
  dataSource: DataSource;
  /** Rows of one statement. */
  query<T = Record<string, unknown>>(sql: string, parameters?: unknown[]): Promise<T[]>;
  /** Rows of one statement from each node of a cluster, where a table is found as `table_123`; elsewhere of the one server. */
  queryNodes(sql: string): Promise<Record<string, unknown>[]>;
  /** The sessions that wait for another one's lock, wherever on a cluster that is held. */
  lockWaits(): Promise<LockWait[]>;
  /** The service's way to ask, with `options` of {@link Database}. */
  opened(options?: DatabaseOptions): Database;
  scope(tenantId: number): TenantScope;
  /** The id of a tenant, whether or not the service has seen it. */
  tenantId(name: string): Promise<number>;
  drop(): Promise<void>;
}

type DatabaseOptions = ConstructorParameters<typeof Database>[1];

interface LockWait {
  pid: number;
  /** The session that holds it, or waits before. */
  by: number;
  sql: string;
}

/** A trigger's function: whatever it stands before meets a full disk. */
export const FILL_DISK = `CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN RAISE ''No space left on device'' USING ERRCODE = ''disk_full''; END'`;

/** Ends the sessions by which the processes hear of changes: what happens until they are back is told to nobody. */
export const END_LISTENERS =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'crm-connection listener' AND datname = current_database()";

const LOCK_WAITS = `SELECT pid, unnest(pg_blocking_pids(pid)) AS by, query AS sql
  FROM pg_stat_activity WHERE datname = current_database()`;
/** Of sessions with the coordinator, which themselves wait for a node's answer. */
const LOCK_WAITS_OF_CLUSTER = `SELECT citus_pid_for_gpid(waiting_gpid)::int AS pid,
  citus_pid_for_gpid(blocking_gpid)::int AS by, blocked_statement AS sql FROM citus_lock_waits`;

/** Of this run alone: two runs may share a server. Migrated and, on a Citus cluster, distributed. */
const TEMPLATE = `crm_template_${process.env.CRM_TEST_RUN ?? process.pid}`;

export function serverUrl(database?: string): string {
  const url = new URL(process.env.CRM_TEST_SERVER_URL ?? "");
  if (database) url.pathname = `/${database}`;
  return url.href;
}

/** host:port of the nodes beside the server, where that is a Citus coordinator; none on any other. */
export const workers = (): string[] => (process.env.CRM_TEST_WORKERS ?? "").split(",").filter(Boolean);

/** SQL, for an UPDATE: an instant so much earlier than it is. In one zone, for a cluster takes nothing there that hangs on a session's. */
export const earlier = (column: string, by: string) =>
  `${column} = (${column} AT TIME ZONE 'UTC' - interval '${by}') AT TIME ZONE 'UTC'`;

/** A cluster's tables have none that look into another, and those that are distributed none at all. */
export const hasTriggers = () => workers().length === 0;

export const onServer = (sql: string) => on(serverUrl(), sql);

export async function on(address: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: address });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

const nodes = (database?: string) =>
  workers().map((host) => Object.assign(new URL(serverUrl(database)), { host }).href);

/** The nodes' databases of that name know each other by it: what is done to one is done to all. */
async function onNodes(sql: string, database?: string): Promise<Record<string, unknown>[]> {
  const addresses = [serverUrl(database), ...nodes(database)];
  return (await Promise.all(addresses.map((address) => on(address, sql)))).flat();
}

/** The database that all others of this run are clones of. @param fill makes its tables and, on a cluster, distributes them */
export async function createTemplate(fill: (url: Secret, isCluster: boolean) => Promise<void>): Promise<void> {
  await dropTemplate();
  await createEmpty(TEMPLATE);
  await fill(new Secret(serverUrl(TEMPLATE)), workers().length > 0);
  // Citus keeps sessions of its own in its databases, and one that is in use cannot be cloned.
  await onNodes(`ALTER DATABASE ${TEMPLATE} ALLOW_CONNECTIONS false`);
  await onNodes(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '${TEMPLATE}'`);
}

export async function dropTemplate(): Promise<void> {
  await onNodes(`DROP DATABASE IF EXISTS ${TEMPLATE} WITH (FORCE)`);
}

async function createEmpty(name: string, isPlain = false): Promise<void> {
  const create = `CREATE DATABASE ${name} ${isPlain ? "TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER libc LOCALE 'C'" : ""}`;
  await onServer(workers().length > 0 ? `CREATE DATABASE ${name}` : create);
  for (const node of nodes()) await on(node, create);
  if (workers().length === 0) return;
  await onNodes("CREATE EXTENSION citus", name);
  const { hostname, port } = new URL(serverUrl());
  await on(serverUrl(name), `SELECT citus_set_coordinator_host('${hostname}', ${port})`);
  for (const node of workers()) {
    const [host, nodePort] = node.split(":");
    await on(serverUrl(name), `SELECT citus_add_node('${host}', ${nodePort})`);
  }
}

/**
 * A database for one test file: migrated, empty, and its own. `empty` leaves even the tables out; on a cluster it has the nodes.
 * `plain`: empty, and where rows lie no letters are known but ASCII's; a cluster's coordinator knows them.
 */
export async function createTestDatabase({ empty = false, plain = false } = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  if (empty || plain) await createEmpty(name, plain);
  else await onNodes(`CREATE DATABASE ${name} TEMPLATE ${TEMPLATE} STRATEGY file_copy`);
  // A cluster takes triggers on tenants' tables, as tests set them, only when it is told so.
  if (workers().length > 0) await onServer(`ALTER DATABASE ${name} SET citus.enable_unsafe_triggers = on`);
  const url = new Secret(serverUrl(name));
  // What a transaction is set to reaches the nodes, which else take longer to compile the judging of a deal than a test has.
  const reaching = workers().length > 0 ? withOptions(url, "-c citus.propagate_set_commands=local") : url;
  const dataSource = await createDataSource({ url: reaching, entities }).initialize();
  return {
    url,
    dataSource,
    query: (sql, parameters) => dataSource.query(sql, parameters),
    queryNodes: (sql) => onNodes(sql, name),
    lockWaits: () => dataSource.query(workers().length > 0 ? LOCK_WAITS_OF_CLUSTER : LOCK_WAITS),
    opened: (options) => openOn(dataSource, options),
    scope: (tenantId) => openOn(dataSource).tenant(tenantId),
    tenantId: (name) => openOn(dataSource).idOf(name),
    drop: async () => {
      await dataSource.destroy();
      await onNodes(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

/** As the service asks there. By session, a cluster's nodes would show no row, and the test's own statements have no values to be planned by. */
export const openOn = (dataSource: DataSource, options?: DatabaseOptions): Database =>
  new Database(dataSource, { reach: workers().length > 0 ? "transaction" : "session", ...options });

/** On a cluster a statement that stands alone has a transaction around it. */
export const isAround = (text: string) => workers().length > 0 && /^(START TRANSACTION|SET LOCAL|COMMIT)\b/.test(text);

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
  const acrossTenants = database.acrossTenants.bind(database);
  return Object.assign(Object.create(database), { tenant, acrossTenants });
}
