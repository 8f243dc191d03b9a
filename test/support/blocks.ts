import { setTimeout as sleep } from "node:timers/promises";
import { APPLICATION_ROLE } from "../../src/database/application-role";
import { type CopyScope } from "../../src/database/database";
import { type TestDatabase, workers } from "./database";

const SETTLED_MS = 1_500;

/** A few of each index, and one of each table. */
export const FEW_BLOCKS = 40;

/** On a cluster each node counts the blocks that it reads, and is told the tenant by another statement. */
export const onOneServer = workers().length > 0 ? test.skip : test;

/** That were read of the tables and their indexes since the database began, with what is kept beside the rows. */
async function blocksOf(database: TestDatabase, tables: readonly string[]): Promise<number> {
  const [found] = await database.query<{ blocks: number }>(
    `SELECT sum(coalesce(idx_blks_hit + idx_blks_read, 0) + heap_blks_hit + heap_blks_read
       + coalesce(toast_blks_hit + toast_blks_read, 0))::int AS blocks FROM pg_statio_user_tables WHERE relname = ANY ($1)`,
    [tables],
  );
  return found?.blocks ?? 0;
}

/** Of a database that was filled: waits until nothing more is told of what was written. */
export async function settled(database: TestDatabase, tables: readonly string[]): Promise<void> {
  // Whose blocks would be counted with those of a read.
  for (const table of tables) await database.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
  await database.query("VACUUM ANALYZE");
  for (let before = -1, now = 0; before !== now; await sleep(SETTLED_MS))
    [before, now] = [now, await blocksOf(database, tables)];
}

/** SQL: the meeting of a number `g` of the tenant `$1`. */
export const MEETING_ID = "md5($1::bigint || ':' || g)::uuid";

export interface Sizes {
  small: { tenants: number; of: number };
  /** How many of each the last tenant has. */
  large: number;
}

/**
 * A large tenant among small ones. @param fill INSERTs; $1: the tenant, $2: how many of each
 * @returns the large one, and its first meeting
 */
export async function fillTenants(database: TestDatabase, fill: readonly string[], { small, large }: Sizes) {
  let tenantId = 0;
  for (let index = 0; index <= small.tenants; index += 1) {
    tenantId = await database.tenantId(`tenant-${index}`);
    for (const sql of fill) await database.query(sql, [tenantId, index < small.tenants ? small.of : large]);
  }
  await settled(
    database,
    fill.flatMap((sql) => /^INSERT INTO (\w+)/.exec(sql)?.[1] ?? []),
  );
  const [first] = await database.query<{ id: string }>(`SELECT ${MEETING_ID} AS id FROM generate_series(1, 1) g`, [
    tenantId,
  ]);
  return { tenantId, meetingId: first?.id ?? "" };
}

/** What a read of an operation, whose plans are made without its values, finds in copy 1 of a tenant, and how many blocks it looks at. */
export async function reading<T>(
  database: TestDatabase,
  tables: readonly string[],
  tenantId: number,
  read: (copy: CopyScope) => Promise<T>,
): Promise<{ found: T; blocks: number }> {
  await database.query("SELECT pg_stat_force_next_flush()");
  const before = await blocksOf(database, tables);
  const found = await database.scope(tenantId).transaction(async (scope) => {
    await scope.rows(`SET LOCAL ROLE ${APPLICATION_ROLE}`);
    await scope.rows("SET LOCAL plan_cache_mode = force_generic_plan");
    await scope.rows("SET LOCAL enable_bitmapscan = off");
    const done = await read({ ...scope, copyId: 1 });
    await scope.rows("SELECT pg_stat_force_next_flush()");
    return done;
  });
  return { found, blocks: (await blocksOf(database, tables)) - before };
}
