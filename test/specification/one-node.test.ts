import { Client } from "pg";
import { buildGraphQLSchema } from "../../src/resolvers/graphql-schema";
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
const ACROSS_TENANTS: readonly string[] = [];

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

  /** How a statement would be run: the number of nodes' tasks, null where no distributed table is asked. */
  async function tasksOf({ sql, values }: Sent): Promise<string | null> {
    const literals = values.map((value) => (value === null ? "NULL" : session.escapeLiteral(value)));
    await session.query(`PREPARE one AS ${sql}`);
    try {
      const execute = literals.length > 0 ? `EXECUTE one (${literals.join(", ")})` : "EXECUTE one";
      const { rows } = await session.query(`EXPLAIN (COSTS OFF) ${execute}`);
      const plan = rows.map((row) => String(row["QUERY PLAN"])).join("\n");
      if (!plan.includes("Custom Scan (Citus")) return null;
      const counts = [...plan.matchAll(/Task Count: (\d+)/g)].map(([, count]) => count);
      const extra = /Distributed Subplan|repartition/.exec(plan)?.[0];
      if (plan.includes("pull to coordinator") && counts.length === 0) return "1";
      return extra ? `${counts.join(" + ")} and ${extra}` : counts.join(" + ");
    } finally {
      await session.query("DEALLOCATE one");
    }
  }

  const words = (sql: string) => sql.replace(/\s+/g, " ").trim();

  async function notToOneNode(sent: readonly Sent[]): Promise<Record<string, string>> {
    const found: Record<string, string> = {};
    const texts = new Map(sent.map((one) => [`${one.sql} ${one.values.length}`, one]));
    for (const one of texts.values()) {
      if (!/^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b/i.test(one.sql)) continue;
      const tasks = await tasksOf(one).catch((error: Error) => `refused: ${error.message}`);
      if (tasks !== null && tasks !== "1") found[words(one.sql)] = tasks;
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
    const several = await notToOneNode(sent);
    const unlisted = Object.entries(several).filter(([sql]) => !ACROSS_TENANTS.some((first) => sql.startsWith(first)));
    expect(unlisted).toEqual([]);
  }, 180_000);
});
