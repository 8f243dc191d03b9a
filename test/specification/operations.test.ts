import { readFileSync } from "node:fs";
import { writeNote } from "../support/notes";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

const leaving = { tenant: "leaving" };
const staying = { tenant: "staying" };

const { simulator, database, service } = useService({ deals: 10 });
beforeAll(async () => {
  for (const as of [leaving, staying]) {
    await connect(service, simulator, as);
    await syncEnds(service, as);
    const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
    expect(await writeNote(service, { meetingId: id }, as)).toMatchObject({ state: "WRITTEN" });
  }
});

/** The statements of docs/operations.md for a tenant, run as the service's own role. */
async function purge(tenant: string): Promise<void> {
  const [, sql = ""] =
    /```sql\n-- purge of one tenant[^\n]*\n(.*?)```/s.exec(readFileSync("docs/operations.md", "utf8")) ?? [];
  const statements = sql.replace(/^(BEGIN|COMMIT);$/gm, "").replace(":'tenant'", `'${tenant}'`);
  await database.dataSource.transaction(async (manager) => {
    await manager.query("SET LOCAL ROLE crm_connection");
    await manager.query(statements);
  });
}

/** How many rows each table holds of a tenant. */
async function rowsOf(tenant: string): Promise<Record<string, number>> {
  const tables = await database.query<{ name: string }>(
    "SELECT table_name AS name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'tenant_id'",
  );
  const counts = tables.map(
    ({ name }) =>
      `SELECT '${name}' AS name, count(*)::int AS n FROM ${name} WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
  );
  const found = await database.query<{ name: string; n: number }>(counts.join(" UNION ALL "), [tenant]);
  return Object.fromEntries(found.filter(({ n }) => n > 0).map(({ name, n }) => [name, n]));
}

test("a tenant that leaves is purged by the statements of the handbook, once its copy is gone, and no other tenant is", async () => {
  const others = await rowsOf("staying");
  expect(Object.keys(others)).toEqual(expect.arrayContaining(["connection", "meeting", "meeting_match", "note_write"]));
  await expect(purge("leaving")).rejects.toThrow("still has a copy");

  dataOf(
    await service.ask("mutation { disconnect { ... on DisconnectSuccess { connection { state } } } }", {}, leaving),
  );
  await until(
    "the copy is purged",
    async () =>
      (
        await database.query(
          "SELECT 1 FROM synced_copy WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'leaving')",
        )
      ).length === 0,
  );
  expect(await rowsOf("leaving")).not.toEqual({});
  await purge("leaving");
  expect(await rowsOf("leaving")).toEqual({});
  expect(await rowsOf("staying")).toEqual(others);
});
