import { setTimeout as sleep } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import type { DataSource } from "typeorm";
import type { PostgresDriver } from "typeorm/driver/postgres/PostgresDriver";
import { ACROSS_TENANTS_ROLE, APPLICATION_ROLE, asApplication } from "../../src/database/application-role";
import { createDataSource } from "../../src/database/data-source";
import { Database, type TenantScope } from "../../src/database/database";
import { Session } from "../../src/database/session";
import { entities } from "../../src/entities";
import { Secret } from "../../src/platform/keyring";
import { workers } from "../support/database";
import { recordMeeting, until } from "../support/stories";
import { useService } from "../support/world";

const TENANTS = ["acme", "globex"];
/** As the service works: in sessions that no policy is waived for. */
let dataSource: DataSource;
/** Told of its tenant by a setting of the session, or in each transaction (decision 0042). A cluster knows the latter alone. */
const REACHES = workers().length > 0 ? (["transaction"] as const) : (["session", "transaction"] as const);
let db: Database;
const ids = new Map<string, number>();
const enter = (tenant: string, signal?: AbortSignal) => db.tenant(ids.get(tenant) ?? 0, signal);

const { simulator, database, service } = useService({ deals: 20, connected: TENANTS });
beforeAll(async () => {
  for (const tenant of TENANTS) {
    await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, { tenant });
  }
  for (const tenant of [...TENANTS, "nobody"]) ids.set(tenant, await database.tenantId(tenant));
});

async function tables(): Promise<string[]> {
  const found = await database.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.columns
     WHERE table_schema = 'public' AND column_name = 'tenant_id' ORDER BY 1`,
  );
  return found.map(({ name }) => name);
}

// Planted and seen red by the transaction: SET LOCAL left out; no ROLLBACK after the deadline.
describe.each(REACHES)("reached by the %s,", (reach) => {
  beforeAll(async () => {
    dataSource = await createDataSource({ url: await asApplication(database.url), entities }).initialize();
    db = new Database(dataSource, { reach });
  });
  afterAll(() => dataSource.destroy());
  // What a test left behind would be some other tenant's to see, and its locks everybody's to wait for.
  afterEach(async () => {
    // The service's own sweeps pass.
    await until("no session is left in a transaction", async () => {
      const open = await database.query(
        "SELECT 1 FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND datname = current_database()",
      );
      return open.length === 0;
    });
  });

  test("a session of one tenant sees exactly that tenant's rows of every table, however the statement is written", async () => {
    for (const name of await tables()) {
      const counted = await database.query<{ owner: number; n: number }>(
        `SELECT tenant_id AS owner, count(*)::int AS n FROM ${name} GROUP BY 1`,
      );
      for (const tenant of TENANTS) {
        const [seen] = await enter(tenant).rows(`SELECT count(*)::int AS n FROM ${name}`);
        const held = counted.find(({ owner }) => owner === ids.get(tenant))?.n ?? 0;
        expect([name, tenant, seen?.n]).toEqual([name, tenant, held]);
      }
      const [nobody] = await enter("nobody").rows(`SELECT count(*)::int AS n FROM ${name}`);
      expect([name, nobody?.n]).toEqual([name, 0]);
    }
  });

  test("work across tenants sees them all, and no session keeps its role", async () => {
    for (const name of await tables()) {
      const [seen] = await db.acrossTenants(`SELECT count(*)::int AS n FROM ${name}`);
      expect([name, seen]).toEqual([name, (await database.query(`SELECT count(*)::int AS n FROM ${name}`))[0]]);
    }
    const roles = await Promise.all(Array.from({ length: 40 }, () => dataSource.query("SELECT current_user AS role")));
    for (const found of roles) expect(found).toEqual([{ role: APPLICATION_ROLE }]);
  });

  const openAs = async (username: string) => {
    const url = Object.assign(new URL((await asApplication(database.url)).reveal()), { username, password: "alone" });
    return createDataSource({ url: new Secret(url.href), entities }).initialize();
  };

  test("work across tenants that fails, or may not be done, is told so at once, and leaves nothing of its role", async () => {
    await expect(db.acrossTenants("SELECT 1 / 0")).rejects.toThrow("division by zero");
    expect(await enter("nobody").rows("SELECT current_user AS role")).toEqual([{ role: APPLICATION_ROLE }]);
    await database.query(`CREATE ROLE alone_${reach} LOGIN PASSWORD 'alone' IN ROLE ${APPLICATION_ROLE}`);
    const alone = await openAs(`alone_${reach}`);
    try {
      const denied = new Database(alone, { reach });
      const own = () => denied.tenant(0).rows("SELECT current_user AS role");
      // In a session that is in use already, and after it.
      expect(await own()).toEqual([{ role: APPLICATION_ROLE }]);
      await expect(denied.acrossTenants("SELECT 1")).rejects.toThrow("permission denied to set role");
      expect(await own()).toEqual([{ role: APPLICATION_ROLE }]);
    } finally {
      await alone.destroy();
      await database.query(`DROP ROLE alone_${reach}`);
    }
  });

  // Seen red: it was refused for as long as it was asked for again, until it was half an hour old.
  test("a session whose first statement finds that its user was dropped is the last to do so, once the user is made anew", async () => {
    const make = `CREATE ROLE anew_${reach} LOGIN PASSWORD 'alone' IN ROLE ${APPLICATION_ROLE}, ${ACROSS_TENANTS_ROLE}`;
    await database.query(make);
    const anew = await openAs(`anew_${reach}`);
    try {
      const dropped = new Database(anew, { reach });
      await dropped.answers();
      await database.query(`DROP ROLE anew_${reach}`);
      await database.query(make);
      await expect(dropped.acrossTenants("SELECT 1")).rejects.toThrow("permission denied to set role");
      expect(await dropped.acrossTenants("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    } finally {
      await anew.destroy();
      await database.query(`DROP ROLE anew_${reach}`);
    }
  });

  // Seen red where such a statement went as a plain query: PostgreSQL passed it by, and waited for ever for what it had not been sent.
  test("a session whose setting failed answers the next statement, though neither has a parameter", async () => {
    const session = new Session(
      dataSource.driver as PostgresDriver,
      (_text, run) => run(),
      () => undefined,
    );
    session.setFirst({ name: "unknown", text: "SELECT 1", values: [], done: () => undefined });
    await expect(session.rows("SELECT 1 AS one", [])).rejects.toThrow('"unknown" does not exist');
    expect(await session.rows("SELECT 1 AS one", [])).toEqual([{ one: 1 }]);
    await session.release();
  });

  test("who the tenants are is told to no tenant's session", async () => {
    expect(await enter("acme").rows("SELECT 1 FROM tenant")).toEqual([]);
    await expect(enter("acme").rows("INSERT INTO tenant (external_id) VALUES ('x')")).rejects.toThrow(
      "row-level security",
    );
  });

  test("a tenant has one id, however many see it first at once; one that is known costs no write", async () => {
    const processes = Array.from({ length: 10 }, () => new Database(dataSource, { reach }));
    const seen = await Promise.all(
      processes.flatMap((one) => [one.idOf(`first seen by the ${reach}`), one.idOf(`first seen by the ${reach}`)]),
    );
    expect(new Set(seen).size).toBe(1);
    expect(
      await database.query("SELECT id FROM tenant WHERE external_id = $1", [`first seen by the ${reach}`]),
    ).toEqual([{ id: seen[0] }]);
    const texts: string[] = [];
    const observed = new Database(dataSource, {
      reach,
      observe: (text, run) => {
        texts.push(text);
        return run();
      },
    });
    expect([
      await observed.idOf(`first seen by the ${reach}`),
      await observed.idOf(`first seen by the ${reach}`),
    ]).toEqual([seen[0], seen[0]]);
    expect(texts.filter((text) => /tenant/.test(text))).toEqual(["SELECT id FROM tenant WHERE external_id = $1"]);
    texts.length = 0;
    await observed.acrossTenants("SELECT 1");
    // One round trip, but on a cluster.
    if (reach === "session") expect(texts).toEqual(["SELECT 1"]);
  });

  // Seen red with ids that are counted, and with ids that are remembered for ever: after a failover that had lost its first
  // second a tenant was shown the rows of the next one, or had "Something went wrong" until a restart.
  test("where a database takes over that has not seen a tenant, nobody gets its id, and it gets another one", async () => {
    const process = new Database(dataSource, { reach });
    const lost = await process.idOf(`lost by the ${reach}`);
    await database.query("SELECT setval(pg_get_serial_sequence('tenant', 'id'), $1, false)", [lost]);
    await database.query("DELETE FROM tenant WHERE id = $1", [lost]);
    expect(await process.idOf(`first after the ${reach}`)).not.toBe(lost);
    const { now } = performance;
    performance.now = () => now.call(performance) + 601_000;
    try {
      await sleep(10); // by so much it looks at the time again
      const found = await process.idOf(`lost by the ${reach}`);
      expect(found).not.toBe(lost);
      expect(await database.query("SELECT id FROM tenant WHERE external_id = $1", [`lost by the ${reach}`])).toEqual([
        { id: found },
      ]);
    } finally {
      performance.now = now;
    }
  });

  test("a session that was set to no tenant sees nothing", async () => {
    for (const name of await tables()) expect(await dataSource.query(`SELECT 1 FROM ${name} LIMIT 1`)).toEqual([]);
  });

  const tenantsSeen = async ({ rows }: TenantScope) => rows("SELECT DISTINCT tenant_id AS id FROM meeting");
  const only = (tenant: string) => [{ id: ids.get(tenant) }];

  // Planted and seen red: the session of a statement that failed is kept for the operation's next one.
  test("after a statement that fails an operation's next one sees its own tenant's rows", async () => {
    for (const tenant of [...TENANTS, ...TENANTS]) {
      const operation = enter(tenant, AbortSignal.timeout(60_000));
      await expect(operation.rows("SELECT 1 / (count(*) - count(*)) FROM meeting")).rejects.toThrow("division by zero");
      expect(await tenantsSeen(operation)).toEqual(only(tenant));
    }
  });

  // A cluster is told the tenant by another statement.
  if (reach === "session")
    // Planted and seen red: the statement follows the setting whatever came of it; the setting is parsed with it.
    test("a statement is not run where its session cannot be told the tenant, and the next one tells it again", async () => {
      const spoilt = (what: string) =>
        database.query(`CREATE OR REPLACE FUNCTION spoilt.set_config(name text, value text, is_local boolean) RETURNS text
          LANGUAGE plpgsql AS $$ BEGIN
            IF value = '${ids.get("globex")}' THEN ${what}; END IF;
            RETURN pg_catalog.set_config(name, value, is_local);
          END $$`);
      await database.query("CREATE SCHEMA spoilt CREATE SEQUENCE runs");
      await database.query("GRANT USAGE ON SCHEMA spoilt TO PUBLIC");
      await database.query("GRANT USAGE ON SEQUENCE spoilt.runs TO PUBLIC");
      await spoilt("NULL");
      const source = createDataSource({ url: await asApplication(database.url), entities });
      await source.initialize();
      // In the place of PostgreSQL's own, for each of its sessions. An address cannot say so: ours names the schema.
      const pool: Pool = Object(source.driver).master;
      const place = (client: PoolClient) => client.query("SET search_path = spoilt, pg_catalog, public");
      pool.on("connect", (client) => void place(client));
      const first = await pool.connect();
      await place(first);
      first.release();
      const reached = new Database(source, { reach });
      const of = (tenant: string) => reached.tenant(ids.get(tenant) ?? 0);
      const run = () => of("globex").rows("SELECT nextval('spoilt.runs')::int AS runs");
      for (const tenant of TENANTS) expect(await tenantsSeen(of(tenant))).toEqual(only(tenant));
      expect(await tenantsSeen(of("acme"))).toEqual(only("acme"));
      await spoilt("RAISE EXCEPTION 'spoilt'");
      for (const ask of [run, () => tenantsSeen(of("globex")), () => of("globex").transaction(tenantsSeen), run])
        await expect(ask()).rejects.toThrow("spoilt");
      expect(await tenantsSeen(of("acme"))).toEqual(only("acme"));
      await spoilt("NULL");
      for (const tenant of TENANTS) expect(await of(tenant).transaction(tenantsSeen)).toEqual(only(tenant));
      // A sequence counts also what is rolled back.
      expect(await run()).toEqual([{ runs: 1 }]);
      expect(await tenantsSeen(of("globex"))).toEqual(only("globex"));
      await source.destroy();
    });

  test("another tenant's rows can be neither written, changed nor deleted", async () => {
    const { rows } = enter("acme");
    const globex = [ids.get("globex")];
    const before = await database.query("SELECT * FROM meeting WHERE tenant_id = $1", globex);
    const updated = await rows("UPDATE meeting SET title = 'taken' WHERE tenant_id = $1 RETURNING 1", globex);
    const deleted = await rows("DELETE FROM meeting WHERE tenant_id = $1 RETURNING 1", globex);
    expect([updated, deleted]).toEqual([[], []]);
    await expect(
      rows("INSERT INTO connection (tenant_id, state) VALUES ($1, 'NOT_CONNECTED')", [ids.get("nobody")]),
    ).rejects.toThrow("row-level security");
    // A cluster lets no row move to another tenant, whosever it is.
    await expect(rows("UPDATE meeting SET tenant_id = $1", globex)).rejects.toThrow(
      /row-level security|modifying the partition value/,
    );
    expect(await database.query("SELECT * FROM meeting WHERE tenant_id = $1", globex)).toEqual(before);
  });

  test("sessions go from tenant to tenant, and each statement sees its own", async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const tenant = TENANTS[index % 2] ?? "";
        const found = await enter(tenant).rows("SELECT tenant_id FROM connection");
        return [ids.get(tenant), found];
      }),
    );
    for (const [tenantId, found] of answers) expect(found).toEqual([{ tenant_id: tenantId }]);
  });

  test("a transaction that is rolled back leaves its session set to nobody else's tenant", async () => {
    await expect(
      enter("globex").transaction(async ({ rows }) => {
        await rows("SELECT 1");
        throw new Error("rolled back");
      }),
    ).rejects.toThrow("rolled back");
    const found = await Promise.all(
      Array.from({ length: 40 }, () => enter("acme").rows("SELECT tenant_id FROM connection")),
    );
    for (const rows of found) expect(rows).toEqual([{ tenant_id: ids.get("acme") }]);
  });

  // Planted and seen red: the session is never given back; it is given back at once; one of another operation is taken.
  test("an operation's statements go on in one session, which is given back when none follows", async () => {
    // TypeORM does not tell of its pool.
    const pool = (dataSource.driver as unknown as { master: { totalCount: number; idleCount: number } }).master;
    const mine = enter("acme", AbortSignal.timeout(60_000));
    const others = enter("globex", AbortSignal.timeout(60_000));
    const session = async ({ rows } = mine) => {
      const [found] = await rows("SELECT pg_backend_pid() AS pid, current_setting('crm.tenant') AS tenant");
      return found as { pid: number; tenant: string };
    };
    const [first, theirs, second] = [await session(), await session(others), await session()];
    expect([first.tenant, theirs.tenant, second.tenant]).toEqual(
      ["acme", "globex", "acme"].map((tenant) => String(ids.get(tenant))),
    );
    expect(second.pid).toBe(first.pid);
    expect(theirs.pid).not.toBe(first.pid);
    await until("all sessions are given back", async () => pool.idleCount === pool.totalCount);
  });

  // Planted and seen red: what one of an operation is set to stays for the work that takes the session after it.
  test("a session plans an operation's reads once and without bitmaps, and what follows in it as PostgreSQL sees fit", async () => {
    const settings =
      "SELECT current_setting('plan_cache_mode') AS kept, current_setting('enable_bitmapscan') AS bitmaps";
    const ofMany = (signal?: AbortSignal) =>
      Promise.all(Array.from({ length: 40 }, () => enter("acme", signal).rows(settings)));
    const others = { kept: "auto", bitmaps: "on" };
    // A cluster plans by the values of a statement.
    const reads = reach === "session" ? { kept: "force_generic_plan", bitmaps: "off" } : others;
    for (const [signal, planned] of [
      [AbortSignal.timeout(60_000), reads],
      [undefined, others],
      [AbortSignal.timeout(60_000), reads],
    ] as const) {
      for (const rows of await ofMany(signal)) expect(rows).toEqual([planned]);
    }
  });

  // Planted and seen red: `keyed` as `rows`; `rows` as `keyed`.
  test("what finds rows by keys is planned once in a session, in transactions too, and nothing else of those is", async () => {
    const once = "SELECT 1 FROM meeting WHERE tenant_id = $1";
    const each = "SELECT 2 FROM meeting WHERE tenant_id = $1";
    const kept = () =>
      enter("acme").transaction(async ({ tenantId, keyed, rows }) => {
        await keyed(once, [tenantId]);
        await rows(each, [tenantId]);
        return rows("SELECT statement FROM pg_prepared_statements WHERE statement = ANY ($1)", [[once, each]]);
      });
    expect(await kept()).toEqual([]);
    // A cluster plans by the values of a statement.
    expect(await kept()).toEqual(reach === "session" ? [{ statement: once }] : []);
  });

  test("a statement that runs at its deadline is called off in the database, and its session serves others after it", async () => {
    const slow = enter("acme", AbortSignal.timeout(200));
    await expect(slow.rows("SELECT pg_sleep(20)")).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
    await expect(slow.rows("SELECT 1")).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
    await until("no such statement runs", async () => {
      const running = await database.query(
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active' AND datname = current_database()",
      );
      return running.length === 0;
    });
    const found = await Promise.all(
      Array.from({ length: 40 }, () => enter("acme").rows("SELECT tenant_id FROM connection")),
    );
    expect(found).toHaveLength(40);
  });

  test("a statement that gives other columns than the code says is refused", async () => {
    const { rows } = enter("acme");
    const said = { at: "instant", n: "number" } as const;
    const ask = (columns: string) => rows<{ at: Date; n: number }>(`SELECT ${columns} FROM connection`, [], said);
    await expect(ask("now() AS at, 1 AS n")).resolves.toHaveLength(1);
    for (const columns of [
      "now()::text AS at, 1 AS n",
      "now() AS at",
      "now() AS at, 1.5 AS n",
      "now() AS then, 1 AS n",
    ])
      await expect(ask(columns)).rejects.toThrow("and the code says (at: instant, n: number)");
  });

  test("a read whose columns a newer release changed while its plan was kept is answered all the same", async () => {
    const { rows } = enter("acme");
    const read = () => rows("SELECT m.* FROM meeting m");
    const before = await Promise.all(Array.from({ length: 30 }, read));
    await database.query("ALTER TABLE meeting ADD COLUMN added_later text DEFAULT 'x'");
    const after = await Promise.all(Array.from({ length: 30 }, read));
    for (const rows of after) expect(rows).toEqual(before[0]?.map((row: object) => ({ ...row, added_later: "x" })));
    await database.query("ALTER TABLE meeting DROP COLUMN added_later");
  });
});
