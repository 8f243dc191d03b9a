import { Client } from "pg";
import { withDatabase } from "../../src/database/database";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
import { SWEEP_MS } from "../../src/sync/schedule";
import { workers } from "../support/database";
import { askRaw } from "../support/http";
import { coordinates, operation } from "../support/schema-walk";
import { type Service, startService } from "../support/service";
import { countStatements, type Sent, type StatementCounter } from "../support/statements";
import { syncEnds, until } from "../support/stories";
import { tenancyRows } from "../support/tenancy-rows";
import { startTenants, type Tenants } from "../support/tenants";

/** Needs TEST_DATABASE_URL to name a Citus coordinator; elsewhere there is one node only. */
const onCluster = workers().length > 0 ? describe : describe.skip;

/** What begins with no tenant, by its first words after spaces are made one: these may ask every node. */
const ACROSS_TENANTS = [
  "WITH late AS MATERIALIZED ( SELECT tenant_id, id, state FROM sync_run",
  "WITH due AS MATERIALIZED ( SELECT tenant_id, next_sync_at > $2 AS astray FROM connection",
  "WITH soon AS MATERIALIZED ( SELECT m.tenant_id FROM meeting",
  "WITH retired AS MATERIALIZED (SELECT tenant_id, id FROM synced_copy",
  "WITH rejudged AS MATERIALIZED (SELECT tenant_id, copy_id FROM judged_copy",
  "SELECT s.holds_from AS at FROM deal_silence s",
  'SELECT DISTINCT tenant_id AS "tenantId" FROM audit_event',
  'SELECT DISTINCT tenant_id AS "tenantId" FROM authorization_request',
  'SELECT DISTINCT tenant_id AS "tenantId" FROM sync_run t',
  'SELECT DISTINCT tenant_id AS "tenantId" FROM deal_change t',
  'SELECT DISTINCT tenant_id AS "tenantId" FROM field_write',
  'SELECT tenant_id AS "tenantId", id AS "writeId" FROM note_write',
  'SELECT tenant_id AS "tenantId", id AS "writeId" FROM field_write',
  'SELECT tenant_id AS "tenantId", id AS "writeId", greatest(now(), $1::timestamptz) AS present',
  "WITH unknown AS MATERIALIZED ( SELECT w.tenant_id, w.id, w.look_ups, w.next_look_up_at FROM note_write",
  "WITH unknown AS MATERIALIZED ( SELECT w.tenant_id, w.id, w.look_ups, w.next_look_up_at FROM field_write",
];

/** Counts: where by its parameters it changes nothing in the run, its last part asks no node. */
const MAY_ASK_NONE = "WITH counted AS ( UPDATE sync_step";

onCluster("on a Citus cluster", () => {
  let tenants: Tenants;
  let counter: StatementCounter;
  let service: Service;
  let session: Client;

  beforeAll(async () => {
    tenants = await startTenants();
    counter = await countStatements(tenants.database.url);
    session = new Client({ connectionString: tenants.database.url.reveal() });
    await session.connect();
    service = await startService(tenants.simulator, tenants.database, { databaseUrl: counter.url });
  }, 180_000);
  afterAll(async () => {
    await service?.stop();
    await session?.end();
    await counter?.close();
    await tenants?.stop();
  });

  /** How a statement would be run: the nodes' tasks of each of its commands; none where no distributed table is asked. */
  async function tasksOf({ sql, values }: Sent): Promise<string[]> {
    // Citus plans by the values; a statement is prepared only to learn their types.
    await session.query(`PREPARE one AS ${sql}`);
    const prepared = await session.query(
      "SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'one'",
    );
    await session.query("DEALLOCATE one");
    const types: string[] = prepared.rows[0].types;
    const literals = values.map(
      (value, index) => `${value === null ? "NULL" : session.escapeLiteral(value)}::${types[index]}`,
    );
    const text = sql.replace(/\$(\d+)/g, (_, number) => `(${literals[Number(number) - 1]})`);
    const { rows } = await session.query(`EXPLAIN (COSTS OFF) ${text}`);
    const plan = rows.map((row) => String(row["QUERY PLAN"])).join("\n");
    const counts = [...plan.matchAll(/Task Count: (\d+)/g)].map(([, count]) => count ?? "");
    if (plan.includes("repartition")) counts.push("repartition");
    // Rows that come from no table: an INSERT of them goes where their tenant lies.
    if (plan.includes("pull to coordinator")) counts.push("1");
    return counts;
  }

  const words = (sql: string) => sql.replace(/\s+/g, " ").trim();

  /** What is not one command to one node, by its first words. */
  async function notOneCommand(sent: readonly Sent[]): Promise<Map<string, string[]>> {
    const found = new Map<string, string[]>();
    const texts = new Map(sent.map((one) => [`${one.sql} ${one.values.length}`, one]));
    for (const one of texts.values()) {
      if (!/^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b/i.test(one.sql)) continue;
      const tasks = await tasksOf(one).catch((error: Error) => [`refused: ${error.message}`]);
      if (tasks.some((count) => count !== "1") || tasks.length > 1) found.set(words(one.sql), tasks);
    }
    return found;
  }

  test("every statement of every query and mutation, of syncs and matching goes to one node; sweeps alone ask all", async () => {
    const schema = buildGraphQLSchema();
    const table = tenancyRows(schema);
    const own = { meeting: tenants.meetingOf("acme"), deal: tenants.ids.own.Deal ?? "" };
    const asked = new Set<string>();
    const sent = await counter.sentDuring(async () => {
      for (const name of coordinates(schema)) {
        const [, kind, field = ""] = /^(Query|Mutation)\.(\w+)/.exec(name) ?? [];
        // It ends what the others need.
        if ((kind !== "Query" && kind !== "Mutation") || field === "disconnect") continue;
        for (const row of table.get(name) ?? []) {
          if (row.kind !== "operation" && row.kind !== "id") continue;
          const id = row.kind === "id" ? (tenants.ids.own[row.type] ?? "") : "";
          const args = row.args(id, own);
          const query = operation(
            schema,
            kind,
            field,
            Object.keys(args),
            field === "node" && row.kind === "id" ? row.type : undefined,
          );
          const { text } = await askRaw(service.url, { query, variables: args }, { tenant: "acme" });
          expect({ name, text: text.includes("INTERNAL") ? text : "" }).toEqual({ name, text: "" });
          asked.add(`${kind}.${field}`);
        }
      }
      for (const kind of ["INCREMENTAL", "RECONCILE", "FULL"]) {
        await service.ask(`mutation { requestSync(kind: ${kind}) { __typename } }`);
        expect((await syncEnds(service)).state).toBe("SUCCEEDED");
      }
      // The sweeps of a worker come by themselves.
      await new Promise((resolve) => setTimeout(resolve, SWEEP_MS + 2_000));
      await service.ask("mutation { disconnect { __typename } }");
      await until("the retired copy is gone", async () => {
        const rows = await tenants.database.query("SELECT 1 FROM synced_copy WHERE state = 'RETIRED'");
        return rows.length === 0;
      });
    });
    const roots = [schema.getQueryType(), schema.getMutationType()];
    const all = roots.flatMap((root) => Object.keys(root?.getFields() ?? {}).map((field) => `${root?.name}.${field}`));
    expect(all.filter((name) => !asked.has(name) && name !== "Mutation.disconnect")).toEqual([]);
    expect(sent.length).toBeGreaterThan(500);
    const found = await notOneCommand(sent);
    const isAcross = (sql: string) => ACROSS_TENANTS.some((first) => sql.startsWith(first));
    const asksNone = (sql: string, count: string) => sql.startsWith(MAY_ASK_NONE) && count === "0";
    const toSeveral = [...found].filter(([sql, tasks]) =>
      tasks.some((count) => count !== "1" && !asksNone(sql, count)),
    );
    expect(toSeveral.filter(([sql]) => !isAcross(sql))).toEqual([]);
    const inSeveral = [...found].filter(([, tasks]) => tasks.every((count) => count === "1"));
    // What is inserted is read first; each command of it goes to the tenant's node.
    expect(inSeveral.filter(([sql]) => !/\bINSERT INTO\b/.test(sql))).toEqual([]);
    // A SELECT behind an INSERT of its own WITH is of no tenant's table, and runs on any node.
    expect(inSeveral.filter(([sql]) => /\bINSERT INTO\b.* SELECT \(SELECT count/.test(sql))).toEqual([]);
    // Each of the lists was put to the test.
    expect(ACROSS_TENANTS.filter((first) => !toSeveral.some(([sql]) => sql.startsWith(first)))).toEqual([]);
  }, 180_000);

  // Seen red: a deal was judged in six to nine seconds, compiled anew each time, and who waited for its locks gave up.
  test("statements have on the nodes what our sessions begin with here, a tenant's and those across tenants", async () => {
    const { url: databaseUrl } = tenants.database;
    const settings = `SELECT DISTINCT current_setting('jit') AS jit, current_setting('synchronous_commit') AS commits,
      current_setting('lock_timeout') AS lock, current_setting('port') <> $1 AS "isNode" FROM connection`;
    const here = new URL(databaseUrl.reveal()).port;
    const there = [{ jit: "off", commits: "on", lock: "8s", isNode: true }];
    await withDatabase({ databaseUrl }, { entities: [] }, async (database) => {
      const tenantId = await database.idOf("acme");
      const { rows } = database.tenant(tenantId);
      expect(await rows(`${settings} WHERE tenant_id = $2`, [here, tenantId])).toEqual(there);
      expect(await database.acrossTenants(settings, [here])).toEqual(there);
    });
  });
});
