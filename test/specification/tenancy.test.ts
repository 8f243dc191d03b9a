import type { DataSource } from "typeorm";
import { type Simulator, startSimulator } from "../../simulator";
import { withoutBypass } from "../../src/database/application-role";
import { createDataSource } from "../../src/database/data-source";
import { TenantDoor } from "../../src/database/tenant-door";
import { entities } from "../../src/entities";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Service, startService } from "../support/service";
import { connect, recordMeeting, syncEnds, until } from "../support/stories";

const TENANTS = ["acme", "globex"];
let simulator: Simulator;
let database: TestDatabase;
let service: Service;
/** As the service works: in sessions that no policy is waived for. */
let dataSource: DataSource;
let door: TenantDoor;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 20 }), createTestDatabase()]);
  service = await startService(simulator, database);
  for (const tenant of TENANTS) {
    await connect(service, simulator, { tenant });
    await syncEnds(service, { tenant });
    await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, { tenant });
  }
  dataSource = await createDataSource({ url: await withoutBypass(database.url), entities }).initialize();
  door = new TenantDoor(dataSource);
});
afterAll(async () => {
  await service.stop();
  await dataSource.destroy();
  await Promise.all([simulator.stop(), database.drop()]);
});

interface Table {
  name: string;
  column: "tenant_id" | "copy_id";
}

async function tables(): Promise<Table[]> {
  const found = await database.query<{ name: string; of_tenant: boolean }>(
    `SELECT table_name AS name, bool_or(column_name = 'tenant_id') AS of_tenant FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name IN ('tenant_id', 'copy_id') GROUP BY 1 ORDER BY 1`,
  );
  return found.map(({ name, of_tenant }) => ({ name, column: of_tenant ? "tenant_id" : "copy_id" }));
}

test("a session of one tenant sees exactly that tenant's rows of every table, however the statement is written", async () => {
  const owner = { tenant_id: "t.tenant_id", copy_id: "(SELECT c.tenant_id FROM synced_copy c WHERE c.id = t.copy_id)" };
  for (const { name, column } of await tables()) {
    const counted = await database.query<{ owner: string; n: number }>(
      `SELECT ${owner[column]} AS owner, count(*)::int AS n FROM ${name} t GROUP BY 1`,
    );
    for (const tenant of TENANTS) {
      const [seen] = await door.enter(tenant).manager.query(`SELECT count(*)::int AS n FROM ${name}`);
      expect([name, tenant, seen.n]).toEqual([name, tenant, counted.find((row) => row.owner === tenant)?.n ?? 0]);
    }
    const [nobody] = await door.enter("nobody").manager.query(`SELECT count(*)::int AS n FROM ${name}`);
    expect([name, nobody.n]).toEqual([name, 0]);
  }
});

test("a session that was set to no tenant sees nothing", async () => {
  for (const { name } of await tables()) expect(await dataSource.query(`SELECT 1 FROM ${name} LIMIT 1`)).toEqual([]);
});

test("another tenant's rows can be neither written, changed nor deleted", async () => {
  const { manager } = door.enter("acme");
  const before = await database.query("SELECT * FROM meeting WHERE tenant_id = 'globex'");
  const [, updated] = await manager.query("UPDATE meeting SET title = 'taken' WHERE tenant_id = 'globex'");
  const [, deleted] = await manager.query("DELETE FROM meeting WHERE tenant_id = 'globex'");
  expect([updated, deleted]).toEqual([0, 0]);
  await expect(
    manager.query(
      "INSERT INTO connection (tenant_id, state, state_changed_at) VALUES ('initech', 'NOT_CONNECTED', now())",
    ),
  ).rejects.toThrow("row-level security");
  await expect(manager.query("UPDATE meeting SET tenant_id = 'globex'")).rejects.toThrow("row-level security");
  expect(await database.query("SELECT * FROM meeting WHERE tenant_id = 'globex'")).toEqual(before);
});

test("sessions go from tenant to tenant, and each statement sees its own", async () => {
  const answers = await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const tenantId = TENANTS[index % 2] ?? "";
      const found = await door.enter(tenantId).manager.query("SELECT tenant_id FROM connection");
      return [tenantId, found];
    }),
  );
  for (const [tenantId, found] of answers) expect(found).toEqual([{ tenant_id: tenantId }]);
});

test("a transaction that is rolled back leaves its session set to nobody else's tenant", async () => {
  await expect(
    door.transaction("globex", async ({ manager }) => {
      await manager.query("SELECT 1");
      throw new Error("rolled back");
    }),
  ).rejects.toThrow("rolled back");
  const found = await Promise.all(
    Array.from({ length: 40 }, () => door.enter("acme").manager.query("SELECT tenant_id FROM connection")),
  );
  for (const rows of found) expect(rows).toEqual([{ tenant_id: "acme" }]);
});

// Planted and seen red: the session is never given back; it is given back at once; one of another operation is taken.
test("an operation's statements go on in one session, which is given back when none follows", async () => {
  // TypeORM does not tell of its pool.
  const pool = (dataSource.driver as unknown as { master: { totalCount: number; idleCount: number } }).master;
  const { manager } = door.enter("acme", AbortSignal.timeout(60_000));
  const others = door.enter("globex", AbortSignal.timeout(60_000)).manager;
  const session = async (of = manager) => {
    const [found] = await of.query("SELECT pg_backend_pid() AS pid, current_setting('crm.tenant') AS tenant");
    return found as { pid: number; tenant: string };
  };
  const [first, theirs, second] = [await session(), await session(others), await session()];
  expect([first.tenant, theirs.tenant, second.tenant]).toEqual(["acme", "globex", "acme"]);
  expect(second.pid).toBe(first.pid);
  expect(theirs.pid).not.toBe(first.pid);
  await until("all sessions are given back", async () => pool.idleCount === pool.totalCount);
});

test("a statement that runs at its deadline is called off in the database, and its session serves others after it", async () => {
  const slow = door.enter("acme", AbortSignal.timeout(200)).manager;
  await expect(slow.query("SELECT pg_sleep(20)")).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
  await expect(slow.query("SELECT 1")).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
  await until("no such statement runs", async () => {
    const running = await database.query(
      "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active' AND datname = current_database()",
    );
    return running.length === 0;
  });
  const found = await Promise.all(
    Array.from({ length: 40 }, () => door.enter("acme").manager.query("SELECT tenant_id FROM connection")),
  );
  expect(found).toHaveLength(40);
});

test("a read whose columns a newer release changed while its plan was kept is answered all the same", async () => {
  const { manager } = door.enter("acme");
  const read = () => manager.query("SELECT m.* FROM meeting m");
  const before = await Promise.all(Array.from({ length: 30 }, read));
  await database.query("ALTER TABLE meeting ADD COLUMN added_later text DEFAULT 'x'");
  const after = await Promise.all(Array.from({ length: 30 }, read));
  for (const rows of after) expect(rows).toEqual(before[0].map((row: object) => ({ ...row, added_later: "x" })));
  await database.query("ALTER TABLE meeting DROP COLUMN added_later");
});
