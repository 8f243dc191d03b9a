import type { DataSource } from "typeorm";
import { type Secret, withOptions } from "../platform/keyring";
import type { Unfit } from "./errors";
import type { SessionParts } from "./sessions";

/** How the tables lie: on one server, or spread by tenant over the nodes of a Citus cluster (decision 0062). */
export type Layout =
  | { kind: "ONE_SERVER" }
  /** The extension is there, and all tables are the coordinator's own: as good as one server. */
  | { kind: "NOT_DISTRIBUTED" }
  /** `local`: tenants' tables that a migration added, or was about to when it was interrupted */
  | { kind: "DISTRIBUTED"; nodes: string[]; local: string[] }
  | ({ kind: "UNUSABLE" } & Unfit);

/** Runs a statement and gives its rows. */
export type Ask = <T>(sql: string) => Promise<T[]>;

export interface Table {
  name: string;
  ofTenant: boolean;
  /** As Citus has it: h is distributed by hash, n a copy on each node; null where the table is the coordinator's own. */
  method: string | null;
  column: string | null;
  colocation: number | null;
}

/** The only table that stands whole on each node: rows of tenants' tables refer to it. */
const COPIED_TABLE = "tenant";
const DISTRIBUTED_BY = "tenant_id";

/** How sessions are told their tenant: on a cluster by each transaction, which takes it along to the shards. */
export async function reachOf(dataSource: DataSource): Promise<SessionParts["reach"]> {
  const { kind } = await readLayout((sql) => dataSource.query(sql));
  return kind === "DISTRIBUTED" ? "transaction" : "session";
}

export async function readLayout(ask: Ask): Promise<Layout> {
  const [extension] = await ask("SELECT FROM pg_extension WHERE extname = 'citus'");
  if (!extension) return { kind: "ONE_SERVER" };
  const [node] = await ask<{ coordinates: boolean }>("SELECT citus_is_coordinator() AS coordinates");
  if (!node?.coordinates) return WORKER;
  const nodes = await ask<{ name: string }>(NODES);
  return layoutOf(
    await ask<Table>(TABLES),
    nodes.map(({ name }) => name),
  );
}

const NODES = `SELECT nodename || ':' || nodeport AS name FROM pg_dist_node
  WHERE noderole = 'primary' AND shouldhaveshards ORDER BY 1`;

const TABLES = `
  SELECT c.relname AS name, p.partmethod AS method, column_to_column_name(p.logicalrelid, p.partkey) AS "column",
    p.colocationid AS colocation, EXISTS (
      SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = '${DISTRIBUTED_BY}') AS "ofTenant"
  FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1`;

const WORKER: Layout = {
  kind: "UNUSABLE",
  what: "it is a worker node of a Citus cluster",
  todo: "give DATABASE_URL the coordinator's address",
};

export function layoutOf(tables: readonly Table[], nodes: string[]): Layout {
  const spread = tables.filter(({ method }) => method !== null);
  if (spread.length === 0) return { kind: "NOT_DISTRIBUTED" };
  const ofTenants = spread.filter(({ ofTenant }) => ofTenant);
  const other = ofTenants.filter(({ method, column }) => method !== "h" || column !== DISTRIBUTED_BY);
  const copied = tables.find(({ name }) => name === COPIED_TABLE);
  if (other.length > 0) return otherwise(`${namesOf(other)} not by ${DISTRIBUTED_BY}`);
  if (new Set(ofTenants.map(({ colocation }) => colocation)).size > 1) return otherwise("not all of them co-located");
  if (copied?.method !== "n" || copied.column !== null) return otherwise(`${COPIED_TABLE} not as a reference table`);
  const local = tables.filter(({ ofTenant, method }) => ofTenant && method === null).map(({ name }) => name);
  return { kind: "DISTRIBUTED", nodes, local };
}

const namesOf = (tables: readonly { name: string }[]) => tables.map(({ name }) => name).join(", ");

const otherwise = (how: string): Layout => ({
  kind: "UNUSABLE",
  what: `its tables were distributed otherwise than this version does it: ${how}`,
  todo: "undistribute_table() them on the coordinator, then npm run db:distribute",
});

/** Nodes that tables can be spread over, and sessions of processes of the service, each of which listens. */
export async function readReadiness(ask: Ask): Promise<{ sessions: number; nodes: number }> {
  const [now] = await ask<{ sessions: number; nodes: number }>(
    `SELECT (SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database()
        AND application_name = 'crm-connection listener') AS sessions,
      (SELECT count(*)::int FROM pg_dist_node WHERE shouldhaveshards AND isactive) AS nodes`,
  );
  return now ?? { sessions: 0, nodes: 0 };
}

/** Nodes that do not know the roles, or not that the one acts as the other: made before Citus was, they are not told of. */
export async function readNodesWithout(ask: Ask, acting: string, as: string): Promise<string[]> {
  const without = await ask<{ name: string }>(
    `SELECT nodename || ':' || nodeport AS name
     FROM run_command_on_workers($$SELECT pg_has_role('${acting}', '${as}', 'USAGE')$$)
     WHERE NOT success OR result <> 't' ORDER BY 1`,
  );
  return without.map(({ name }) => name);
}

/**
 * Spreads the tenants' tables that are the coordinator's own over the nodes, those that rows refer to first. Wants a
 * transaction of the tables' owner in a session `forSchemaChanges`: interrupted anywhere, nothing was done. Rows are
 * copied, which a forced row policy would refuse. The old rows stay on the coordinator's disk until `dropLocalRows`.
 */
export async function spreadTables(ask: Ask): Promise<void> {
  const tables = (await ask<Table>(TABLES)).filter(({ ofTenant }) => ofTenant);
  const spread = tables.find(({ method }) => method !== null)?.name;
  const local = tables.filter(({ method }) => method === null).map(({ name }) => name);
  const ordered = referredFirst(local, await ask<Reference>(REFERENCES));
  const filled = spread ? ordered : [COPIED_TABLE, ...ordered];
  for (const name of filled) await ask(`ALTER TABLE ${name} NO FORCE ROW LEVEL SECURITY`);
  if (!spread) await ask(`SELECT create_reference_table('${COPIED_TABLE}')`);
  for (const name of ordered) {
    const beside = spread ?? (name === ordered[0] ? "none" : ordered[0]);
    await ask(`SELECT create_distributed_table('${name}', '${DISTRIBUTED_BY}', colocate_with => '${beside}')`);
  }
  for (const name of filled) await ask(`ALTER TABLE ${name} FORCE ROW LEVEL SECURITY`);
}

/** Frees the coordinator's disk of rows that the nodes have now. Done again, it does nothing. */
export async function dropLocalRows(ask: Ask): Promise<void> {
  const tables = await ask<Table>(TABLES);
  for (const { name, method } of tables) {
    if (method !== null) await ask(`SELECT truncate_local_data_after_distributing_table('${name}')`);
  }
}

/**
 * The address for sessions that change tables. Where these are distributed and refer to each other, Citus has to take
 * one shard after the other, and must not make copies of what refers to the copied table. To a server without Citus
 * these are names without a meaning.
 */
export const forSchemaChanges = (url: Secret): Secret => withOptions(url, FOR_SCHEMA_CHANGES);

const FOR_SCHEMA_CHANGES =
  "-c citus.multi_shard_modify_mode=sequential -c citus.enable_local_reference_table_foreign_keys=off";

export interface Reference {
  from: string;
  to: string;
}

const REFERENCES = `SELECT DISTINCT c.conrelid::regclass::text AS "from", c.confrelid::regclass::text AS "to"
  FROM pg_constraint c WHERE c.contype = 'f' AND c.conrelid <> c.confrelid`;

/** A table after those that its rows refer to. */
export function referredFirst(tables: readonly string[], references: readonly Reference[]): string[] {
  const ordered = new Set<string>();
  const add = (name: string, above: readonly string[]): void => {
    if (above.includes(name)) return;
    for (const { from, to } of references) {
      if (from === name && tables.includes(to)) add(to, [...above, name]);
    }
    ordered.add(name);
  };
  for (const name of tables) add(name, []);
  return [...ordered];
}

/** Nodes that do not answer another; takes as long as the slowest connection between two. */
export async function readNodesAway(ask: Ask): Promise<string[]> {
  const away = await ask<{ name: string }>(
    `SELECT DISTINCT to_nodename || ':' || to_nodeport AS name FROM citus_check_cluster_node_health()
     WHERE NOT result ORDER BY 1`,
  );
  return away.map(({ name }) => name);
}
