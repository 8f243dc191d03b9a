import { connectDatabase, createDataSource, migrate } from "../../src/database/data-source";
import { entities } from "../../src/entities";
import { createTestDatabase } from "../support/database";
import { useDatabase } from "../support/world";

const database = useDatabase({ empty: true });

const tableNames = () =>
  database.query(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1",
  );

test("migrations go up, down to nothing, and up again", async () => {
  await migrate(database.url);
  const once = await tableNames();
  for (const _ of database.dataSource.migrations) await database.dataSource.undoLastMigration();
  expect(await tableNames()).toEqual([{ table_name: "migration" }]);
  await migrate(database.url);
  expect(await tableNames()).toEqual(once);
});

test("entities and migrations agree: the schema builder has nothing to say", async () => {
  const { upQueries } = await database.dataSource.driver.createSchemaBuilder().log();
  expect(upQueries.map(({ query }) => query)).toEqual([]);
});

// Seen red: calls to the CRM could neither be stopped nor resumed.
test("every table has a key, without which PostgreSQL changes no row of it where a publication has all tables", async () => {
  const keyless = await database.query(
    `SELECT t.oid::regclass::text AS "table" FROM pg_class t
     WHERE t.relnamespace IN ('public'::regnamespace, 'graphile_worker'::regnamespace) AND t.relkind IN ('r', 'p')
       AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = t.oid AND i.indisprimary)`,
  );
  expect(keyless).toEqual([]);
});

test("two processes may migrate at once", async () => {
  const fresh = await createTestDatabase({ empty: true });
  try {
    await Promise.all([migrate(fresh.url), migrate(fresh.url)]);
    const done = await fresh.query("SELECT name FROM migration");
    expect(done).toHaveLength(fresh.dataSource.migrations.length);
  } finally {
    await fresh.drop();
  }
});

const OF_TENANTS = `SELECT a.attrelid FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid
  WHERE t.relnamespace = 'public'::regnamespace AND t.relkind = 'r' AND a.attname = 'tenant_id'`;

/** By which work that begins with no tenant finds what is next, at the end of one index. */
const ACROSS_TENANTS = [
  { table: "deal_change", name: "deal_change_by_age" },
  { table: "deal_silence", name: "deal_silence_untold" },
  { table: "sync_run", name: "sync_run_by_age" },
];

test("every unique index and foreign key of a tenant's table begins with tenant_id, and every index of a copy's but those of sweeps does", async () => {
  const begins = (relation: string, attribute: string) =>
    `EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = ${relation} AND a.attnum = ${attribute} AND a.attname = 'tenant_id')`;
  const offenders = await database.query(`
    SELECT conrelid::regclass::text AS "table", conname AS name FROM pg_constraint c
    WHERE conrelid IN (${OF_TENANTS}) AND contype IN ('p', 'u', 'f') AND NOT ${begins("c.conrelid", "c.conkey[1]")}
    UNION ALL
    SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text FROM pg_index i
    WHERE i.indrelid IN (${OF_TENANTS}) AND NOT ${begins("i.indrelid", "i.indkey[0]")}
      AND (i.indisunique OR i.indrelid IN (SELECT attrelid FROM pg_attribute WHERE attname = 'copy_id'))`);
  expect(offenders).toEqual(expect.arrayContaining(ACROSS_TENANTS));
  expect(offenders).toHaveLength(ACROSS_TENANTS.length);
  expect((await database.query(OF_TENANTS)).length).toBeGreaterThan(20);
});

test("every table is held apart by policies that its owner does not pass, and a tenant's by one comparison", async () => {
  const open = await database.query(`
    SELECT t.relname AS "table" FROM pg_class t
    WHERE t.relnamespace = 'public'::regnamespace AND t.relkind = 'r' AND t.relname <> 'migration'
      AND NOT (t.relrowsecurity AND t.relforcerowsecurity)`);
  expect(open).toEqual([]);
  const policies = await database.query<{ table: string; held: string[] }>(`
    SELECT t.relname AS "table", array(
      SELECT array_to_string(p.roles, ',') || ' ' || p.qual FROM pg_policies p
      WHERE p.schemaname = 'public' AND p.tablename = t.relname ORDER BY p.policyname) AS held
    FROM pg_class t WHERE t.oid IN (${OF_TENANTS})`);
  const held = [
    "crm_connection_across true",
    "public (tenant_id = (NULLIF(current_setting('crm.tenant'::text, true), ''::text))::bigint)",
  ];
  for (const policy of policies) expect(policy).toEqual({ table: policy.table, held });
});

test("tables that another text made are recognised and refused in one sentence, and nothing is changed", async () => {
  const old = await createTestDatabase({ empty: true });
  try {
    await migrate(old.url);
    await old.query("UPDATE migration SET name = 'Initial1763640000000'");
    await old.query("INSERT INTO migration (timestamp, name) VALUES (1795219200001, 'Later1795219200001')");
    const opening = connectDatabase(createDataSource({ url: old.url, entities }), old.url);
    await expect(opening).rejects.toThrow(
      /^The database cannot be used: its tables were made by Initial1763640000000, and this version begins with Initial_[0-9a-f]{12}_\d{13}; give DATABASE_URL an empty database, or run the version that made this one\.$/,
    );
    expect(await old.query("SELECT name FROM migration ORDER BY 1")).toHaveLength(2);
  } finally {
    await old.drop();
  }
});
