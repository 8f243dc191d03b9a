import { asApplication } from "../../src/database/application-role";
import { readNodesWithout } from "../../src/database/cluster";
import { changingTables, migrate } from "../../src/database/data-source";
import { JWT_SECRET } from "../support/actors";
import { createTestDatabase, onServer, serverUrl, type TestDatabase, workers } from "../support/database";
import { dumpDatabase } from "../support/dump";
import { type Program, startProgram } from "../support/processes";
import { ENCRYPTION_KEYS } from "../support/service";
import { until } from "../support/stories";

/** Needs TEST_DATABASE_URL to name a Citus coordinator. */
const onCluster = workers().length > 0 ? describe : describe.skip;

const program = (url: string, ...args: string[]): Program =>
  startProgram(
    "src/main.js",
    {
      DATABASE_URL: url,
      PORT: "0",
      AUTH_JWT_SECRET: JWT_SECRET,
      ENCRYPTION_KEYS,
      LOG_LEVEL: "silent",
      CRM_CLIENT_ID: "id",
      CRM_CLIENT_SECRET: "secret",
      CRM_REDIRECT_URL: "http://localhost:1/back",
    },
    args,
  );

async function ended(url: string, ...args: string[]): Promise<{ code: number | string; text: string }> {
  const running = program(url, ...args);
  return { code: await running.ended, text: running.output() };
}

const MADE_OTHERWISE = "SELECT create_distributed_table('deal', 'copy_id', colocate_with => 'none')";

test("a database without the extension is refused in words", async () => {
  const plain = "crm_plain_machine";
  await onServer(`CREATE DATABASE ${plain}`);
  try {
    const { code, text } = await ended(serverUrl(plain), "db-distribute");
    expect(code).toBe(1);
    expect(text).toContain("the extension Citus is not in it; follow docs/operations.md, Many machines.");
  } finally {
    await onServer(`DROP DATABASE ${plain} WITH (FORCE)`);
  }
}, 60_000);

onCluster("on a Citus cluster", () => {
  let database: TestDatabase;
  const address = () => database.url.reveal();

  beforeEach(async () => {
    database = await createTestDatabase({ empty: true });
  });
  afterEach(() => database.drop());

  const migrated = async () => migrate(await asApplication(database.url));

  /** Two tenants with something in a few tables. */
  async function fill(): Promise<void> {
    for (const name of ["acme", "globex"]) {
      const tenantId = await database.tenantId(name);
      const [copy] = await database.query<{ id: number }>(
        `INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
         VALUES ($1, 1, 1, 'LIVE', now()) RETURNING id`,
        [tenantId],
      );
      await database.query("INSERT INTO connection (tenant_id, state, copy_id) VALUES ($1, 'CONNECTED', $2)", [
        tenantId,
        copy?.id,
      ]);
      await database.query(
        "INSERT INTO pipeline (tenant_id, copy_id, crm_id, name, position) SELECT $1, $2, g, 'P', g FROM generate_series(1, 50) g",
        [tenantId, copy?.id],
      );
    }
  }

  const distributed = () =>
    database.query<{ name: string }>(
      "SELECT logicalrelid::text AS name FROM pg_dist_partition WHERE partmethod = 'h' ORDER BY 1",
    );

  test("db:distribute spreads every tenant's table with its rows, says so, and the second time that it is done", async () => {
    await migrated();
    await fill();
    const before = await dumpDatabase(database);
    const first = await ended(address(), "db-distribute");
    expect(first).toEqual({
      code: 0,
      text: expect.stringContaining(`Tenants are spread over ${workers().length} node(s)`),
    });
    expect(await dumpDatabase(database)).toEqual(before);
    const local = await database.query(
      `SELECT a.attrelid::regclass::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
       LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
       WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attname = 'tenant_id'
         AND (p.logicalrelid IS NULL OR NOT c.relforcerowsecurity)`,
    );
    expect(local).toEqual([]);
    const [group] = await database.query(
      "SELECT count(DISTINCT colocationid)::int AS n FROM pg_dist_partition WHERE partmethod = 'h'",
    );
    expect(group).toEqual({ n: 1 });
    const second = await ended(address(), "db-distribute");
    expect(second).toEqual({ code: 0, text: expect.stringContaining("Nothing to do") });
    expect((await ended(address(), "doctor")).text).toContain(
      `ok       machines: tenants are spread over ${workers().length} node(s), and each answers`,
    );
  }, 120_000);

  test("interrupted half-way, nothing is distributed and no row is lost; the next time does it all", async () => {
    await migrated();
    await fill();
    const before = await dumpDatabase(database);
    const running = program(address(), "db-distribute");
    await until("a table is being distributed", async () => {
      const found = await database.query(
        "SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT create_distributed_table%' AND datname = current_database()",
      );
      return found.length > 0;
    });
    running.child.kill("SIGKILL");
    await running.ended;
    await until("the session has ended", async () => {
      const open = await database.query(
        "SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT create_distributed_table%' AND datname = current_database() AND pid <> pg_backend_pid()",
      );
      return open.length === 0;
    });
    expect(await distributed()).toEqual([]);
    expect(await dumpDatabase(database)).toEqual(before);
    expect((await ended(address(), "db-distribute")).code).toBe(0);
    expect(await dumpDatabase(database)).toEqual(before);
  }, 120_000);

  test("a worker, old tables, a running process and tables that were distributed otherwise are refused in words, and nothing changes", async () => {
    const worker = Object.assign(new URL(address()), { host: workers()[0] }).href;
    for (const args of [["db-distribute"], []]) {
      const { code, text } = await ended(worker, ...args);
      expect(code).toBe(1);
      expect(text).toBe(
        "The database cannot be used: it is a worker node of a Citus cluster; give DATABASE_URL the coordinator's address.\n",
      );
    }
    expect((await ended(address(), "db-distribute")).text).toContain(
      "its migrations are not up to date; start this version",
    );
    await migrated();
    const serving = program(address());
    await until("it listens", async () => {
      const found = await database.query(
        "SELECT FROM pg_stat_activity WHERE application_name = 'crm-connection listener' AND datname = current_database()",
      );
      return found.length > 0;
    });
    expect((await ended(address(), "db-distribute")).text).toContain(
      "1 process(es) of the service work on it; end them first.",
    );
    serving.child.kill("SIGTERM");
    await serving.ended;
    expect(await distributed()).toEqual([]);
    await database.query("ALTER TABLE deal DROP CONSTRAINT deal_pkey");
    await database.query(MADE_OTHERWISE);
    for (const args of [["db-distribute"], []]) {
      const { code, text } = await ended(address(), ...args);
      expect(code).toBe(1);
      expect(text).toContain("its tables were distributed otherwise than this version does it: deal not by tenant_id");
    }
    expect(await distributed()).toEqual([{ name: "deal" }]);
  }, 120_000);

  test("nodes that were not told of a role, or not as whom it acts, are named: their tenants would be refused afterwards", async () => {
    const without = (acting: string) => readNodesWithout((sql) => database.query(sql), acting, "crm_connection");
    expect(await without("crm_connection_across")).toEqual([]);
    const alone = `alone_${process.pid}`;
    // As without Citus: the coordinator alone.
    const onServerAlone = (sql: string) => onServer(`SET citus.enable_ddl_propagation = off; ${sql}`);
    await onServerAlone(`CREATE ROLE ${alone}; GRANT crm_connection TO ${alone}`);
    try {
      expect(await without(alone)).toEqual([...workers()].sort());
    } finally {
      await onServerAlone(`DROP ROLE ${alone}`);
    }
  }, 60_000);

  test("a later migration's table is distributed beside the others by the next start", async () => {
    await migrated();
    await fill();
    expect((await ended(address(), "db-distribute")).code).toBe(0);
    const url = await asApplication(database.url);
    // As a migration runs: a transaction of the owner, one statement a message.
    await changingTables(url, (_ask, dataSource) =>
      dataSource.transaction(async (manager) => {
        for (const statement of LATER) await manager.query(statement);
      }),
    );
    expect((await ended(address(), "doctor")).text).toContain("machines: later not distributed");
    await migrate(url);
    expect((await distributed()).map(({ name }) => name)).toContain("later");
    await database.query(
      "INSERT INTO later (tenant_id, copy_id, said) SELECT tenant_id, id, 'it' FROM synced_copy ON CONFLICT DO NOTHING",
    );
    expect(await database.query("SELECT count(*)::int AS n FROM later WHERE said = 'it' AND id IS NOT NULL")).toEqual([
      { n: 2 },
    ]);
    expect(await database.query("SELECT shade FROM pipeline LIMIT 1")).toEqual([{ shade: "none" }]);
  }, 120_000);
});

const LATER = [
  "ALTER TABLE pipeline ADD COLUMN shade text NOT NULL DEFAULT 'none'",
  `CREATE TABLE later (
    tenant_id bigint NOT NULL,
    id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
    copy_id bigint NOT NULL,
    said text NOT NULL,
    CONSTRAINT later_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT later_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT later_copy_fkey FOREIGN KEY (tenant_id, copy_id) REFERENCES synced_copy (tenant_id, id)
  )`,
  "CREATE INDEX later_by_copy ON later (tenant_id, copy_id)",
  "CREATE INDEX pipeline_by_shade ON pipeline (tenant_id, shade)",
  "ALTER TABLE later ENABLE ROW LEVEL SECURITY",
  "ALTER TABLE later FORCE ROW LEVEL SECURITY",
  "CREATE POLICY of_tenant ON later USING (tenant_id = nullif(current_setting('crm.tenant', true), '')::bigint)",
  "CREATE POLICY across_tenants ON later TO crm_connection_across USING (true)",
];
