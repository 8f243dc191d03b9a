import { readFileSync } from "node:fs";
import { earlier } from "../support/database";
import { fieldOf, setMapping, writeFields } from "../support/fields";
import { writeNote } from "../support/notes";
import { recordMeeting } from "../support/stories";
import { useCrm } from "../support/world";

const { simulator, database, serve } = useCrm({ deals: 20 });
const service = serve({ connected: ["acme"] });

/** The handbook's statements below a heading. */
function statementsOf(heading: string): string[] {
  const handbook = readFileSync("docs/operations.md", "utf8");
  const [, section = ""] = new RegExp(`\\n## ${heading}\\n(.*?)\\n## `, "s").exec(handbook) ?? [];
  return section.match(/(?<=`)SELECT [^`]+/g) ?? [];
}

// Seen red: where one tenant of many was stale, the handbook named no way to it.
test("the handbook's SQL of its alerts runs, and names the tenant whose list is stale", async () => {
  const statements = statementsOf("Alerts");
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

// Seen red: a customer who asked three weeks later whose a note was had to wait for somebody who knows the tables.
test("the handbook's SQL of what happened names who wrote a note and a value, and what a sync could not read", async () => {
  const { email, dealId } = simulator.company.stories.singleDeal;
  const { id: meetingId } = await recordMeeting(service, [email]);
  const { reference } = await writeNote(service, { meetingId }, { sub: "bob", role: "member" });
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "varchar").field_code);
  await writeFields(service, meetingId, [{ entity: "DEAL", value: "Agreed." }], { as: { sub: "carl" } });
  const gaps = [{ resource: "PERSONS", code: "CRM_UNAVAILABLE", count: 1 }];
  await database.query(
    "UPDATE sync_run SET queued_at = '2026-12-01 11:50Z', finished_at = '2026-12-01 12:10Z', gaps = $1",
    [JSON.stringify(gaps)],
  );
  const [ofNote, ofDeal, ofRuns, ofStops, ...more] = statementsOf("What happened then");
  expect([ofStops, more]).toEqual([expect.stringContaining("crm_stop"), []]);
  const asked = (sql = "") =>
    database.query(sql.replace("CRM-D60NB8TEQF", reference).replace("target_id = 12", `target_id = ${dealId}`));
  expect(await asked(ofNote)).toMatchObject([{ requested_by: "bob", state: "WRITTEN", look_ups: 0 }]);
  expect(await asked(ofDeal)).toMatchObject([{ requested_by: "carl", state: "WRITTEN", value: "Agreed." }]);
  expect(await asked(ofRuns)).toMatchObject([{ kind: "FULL", gaps }]);
  expect(await asked(ofStops)).toEqual([]);
});
