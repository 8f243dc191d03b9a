import { migrate } from "../../src/database/migrate";
import { createTestDatabase, type TestDatabase } from "../support/database";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
});
afterAll(() => database.drop());

const tableNames = () =>
  database.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1");

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

test("a copy that is there when matching learns of mailboxes and domains is filled, however large", async () => {
  const old = await createTestDatabase({ empty: true });
  try {
    await migrate(old.url);
    for (const migration of [...old.dataSource.migrations].reverse()) {
      await old.dataSource.undoLastMigration();
      if (migration.constructor.name.startsWith("Matching")) break;
    }
    await old.query(
      `INSERT INTO person_address (copy_id, address, person_id)
       SELECT 1 + g % 2, 'p.' || g || '+crm@' || CASE WHEN g % 2 = 0 THEN 'gmail.com' ELSE 'mail.acme.co.uk' END, g
       FROM generate_series(1, 12000) g`,
    );
    await old.query(
      `INSERT INTO organization (copy_id, crm_id, name, website, custom_fields)
       VALUES (1, 1, 'Acme', 'https://www.acme.co.uk/about', '{}'), (1, 2, 'None', NULL, '{}')`,
    );
    await migrate(old.url);
    const filled = await old.query(
      "SELECT DISTINCT regexp_replace(mailbox, '\\d+', 'N') AS mailbox, domain FROM person_address ORDER BY 2",
    );
    expect(filled).toEqual([
      { mailbox: "p.N@mail.acme.co.uk", domain: "acme.co.uk" },
      { mailbox: "pN@gmail.com", domain: "gmail.com" },
    ]);
    const websites = await old.query("SELECT website_domain FROM organization ORDER BY crm_id");
    expect(websites).toEqual([{ website_domain: "acme.co.uk" }, { website_domain: null }]);
  } finally {
    await old.drop();
  }
});

test("a reason that the version before does not know becomes the nearest when the database goes back", async () => {
  const newer = await createTestDatabase({ empty: true });
  try {
    await migrate(newer.url);
    await newer.query(
      `WITH copy AS (INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
         VALUES ('acme', 1, 1, 'LIVE', now()) RETURNING tenant_id, id)
       INSERT INTO connection (tenant_id, state, copy_id, reauthorization_reason)
       SELECT tenant_id, 'NEEDS_REAUTHORIZATION', id, 'IDENTITY_CHANGED' FROM copy`,
    );
    for (const migration of [...newer.dataSource.migrations].reverse()) {
      await newer.dataSource.undoLastMigration();
      if (migration.constructor.name.startsWith("PinnedIdentity")) break;
    }
    expect(await newer.query("SELECT reauthorization_reason AS reason FROM connection")).toEqual([
      { reason: "GRANT_REVOKED" },
    ]);
  } finally {
    await newer.drop();
  }
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

test("every unique index and foreign key contains its table's distribution column", async () => {
  const offenders = await database.query(`
    SELECT conrelid::regclass::text AS "table", conname AS name
    FROM pg_constraint c
    WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f') AND conrelid <> 'migration'::regclass
      AND NOT EXISTS (
        SELECT 1 FROM pg_attribute a
        WHERE a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
          AND a.attname IN ('tenant_id', 'copy_id'))
    UNION ALL
    SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text
    FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
    WHERE t.relnamespace = 'public'::regnamespace AND i.indisunique AND i.indrelid <> 'migration'::regclass
      AND NOT EXISTS (
        SELECT 1 FROM pg_attribute a
        WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname IN ('tenant_id', 'copy_id'))`);
  expect(offenders).toEqual([]);
});

test("every table holds its rows apart by tenant, its owner's sessions included", async () => {
  const open = await database.query(`
    SELECT t.relname AS "table" FROM pg_class t
    WHERE t.relnamespace = 'public'::regnamespace AND t.relkind = 'r' AND t.relname <> 'migration'
      AND NOT (t.relrowsecurity AND t.relforcerowsecurity AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = t.oid))`);
  expect(open).toEqual([]);
});
