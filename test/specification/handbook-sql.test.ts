import { readFileSync } from "node:fs";
import { earlier } from "../support/database";
import { useCrm } from "../support/world";

const { world, database } = useCrm({ deals: 20 });
beforeAll(() => world.startService({ connected: ["acme"] }));

// Seen red: where one tenant of many was stale, the handbook named no way to it.
test("the handbook's SQL of its alerts runs, and names the tenant whose list is stale", async () => {
  const [, section = ""] = /\n## Alerts\n(.*?)\n## /s.exec(readFileSync("docs/operations.md", "utf8")) ?? [];
  const statements = section.match(/(?<=`)SELECT [^`]+/g) ?? [];
  expect(statements.length).toBeGreaterThan(2);
  const tenant_id = await database.tenantId("acme");
  await database.query(
    `UPDATE sync_list SET ${earlier("watermark", "1 day")} WHERE tenant_id = $1 AND resource = 'NOTES'`,
    [tenant_id],
  );
  const found = await Promise.all(statements.map((sql) => database.query(sql)));
  const [ofLists = []] = found.filter((_rows, at) => statements[at]?.includes("sync_list"));
  expect(ofLists.find((row) => (row as { watermark: Date | null }).watermark !== null)).toMatchObject({
    tenant_id,
    resource: "NOTES",
  });
});
