import { connect, dataOf, noJobIsDue, recordMeeting, syncAgain, syncEnds } from "../support/stories";
import { useCrm } from "../support/world";

// Two versions side by side: a process whose version ends with its own migrations, and tables that a later one has changed.
// Seen red with: a kept statement of a transaction that gives all columns of a table; entries, and security events, of every kind read, where a later version writes one that this one does not know.

jest.setTimeout(300_000);

const { world, simulator, database } = useCrm({ deals: 20 });
const environment = { SYNC_INTERVAL_SECONDS: "0", RECONCILE_INTERVAL_SECONDS: "0" };
type Process = Awaited<ReturnType<typeof world.startProcess>>;
const start = (roles: string) => world.startProcess({ ...environment, ROLES: roles });

/** Of statements whose plans sessions keep. */
const KEPT = ["synced_copy", "connection", "sync_run", "sync_step", "matched_record", "deal_participant", "data_gap"];
/** What the next version may do while this one works: columns with a default, another kind, an index, a table of its own. */
const LATER = [
  ...KEPT.map((table) => `ALTER TABLE ${table} ADD COLUMN said_later text NOT NULL DEFAULT ''`),
  "ALTER TABLE deal_change ADD COLUMN seen_by text NOT NULL DEFAULT 'sync', ADD COLUMN run_id uuid",
  "ALTER TABLE deal ADD COLUMN forecast numeric, ADD COLUMN probability integer NOT NULL DEFAULT 0",
  "ALTER TABLE deal_change DROP CONSTRAINT deal_change_kind",
  "ALTER TABLE deal_change ADD CONSTRAINT deal_change_kind CHECK (kind <> '')",
  "ALTER TABLE audit_event DROP CONSTRAINT audit_event_action",
  "CREATE INDEX deal_change_by_kind ON deal_change (tenant_id, copy_id, kind)",
  "CREATE TABLE forecast (tenant_id bigint NOT NULL, id bigint NOT NULL, CONSTRAINT forecast_pkey PRIMARY KEY (tenant_id, id))",
  "ALTER TABLE forecast OWNER TO crm_connection",
  "INSERT INTO migration (timestamp, name) VALUES (1895219200000, 'Later1895219200000')",
];

interface Change {
  kind: string;
  from: string | null;
  to: string | null;
}
async function journalAt({ service }: Process): Promise<Change[]> {
  const query = "{ deals(first: 50) { nodes { crmId changes(first: 50) { kind from to } } } }";
  const { deals } = dataOf(await service.ask<{ deals: { nodes: { crmId: string; changes: Change[] }[] } }>(query));
  const { dealId } = simulator.company.stories.singleDeal;
  return deals.nodes.find(({ crmId }) => crmId === String(dealId))?.changes ?? [];
}
async function end({ program }: Process): Promise<void> {
  program.child.kill("SIGTERM");
  expect(await program.ended).toBe(0);
}

async function eventsAt({ service }: Process): Promise<string[]> {
  const query = "{ auditEvents(first: 50) { nodes { action } } }";
  const asked = await service.ask<{ auditEvents: { nodes: { action: string }[] } }>(query, {}, { role: "owner" });
  return dataOf(asked).auditEvents.nodes.map(({ action }) => action);
}

test("while tables are a version ahead, each process writes the journal and reads what the others wrote, also one of before", async () => {
  const { dealId, email } = simulator.company.stories.singleDeal;
  const change = async (title: string, by: Process) => {
    simulator.control.change("deal", dealId, { title });
    await syncAgain(by.service, database, { role: "owner" });
  };
  const titles = ({ kind }: Change) => kind === "TITLE";
  const before = await start("api,worker");
  await connect(before.service, simulator);
  await syncEnds(before.service);
  await noJobIsDue(database);
  await recordMeeting(before.service, [email]);
  await change("One", before);
  // The later version migrates as it starts; the process of before goes on with its statements and sessions.
  for (const sql of LATER) await database.query(sql);
  await change("Two", before);
  const after = await start("api");
  expect(await journalAt(after)).toEqual(await journalAt(before));
  await end(before);
  const alone = await start("worker,api");
  await change("Three", alone);
  await database.query(
    `INSERT INTO deal_change (tenant_id, copy_id, deal_id, seen_at, kind, was, became, seen_by)
     SELECT tenant_id, copy_id, deal_id, now(), 'FORECAST', '1', '2', 'later' FROM deal_change LIMIT 1`,
  );
  await database.query(
    "INSERT INTO audit_event (tenant_id, at, action, refused) SELECT id, now(), 'FORECAST_MADE', false FROM tenant",
  );
  await change("Four", alone);
  const [read, other] = [await journalAt(after), await journalAt(alone)];
  expect(read).toEqual(other);
  const told = read.filter(titles).reverse();
  expect(told.map(({ to }) => to)).toEqual(["One", "Two", "Three", "Four"]);
  // No change is missed between two processes, or told by both: each entry begins where the one before ended.
  expect(told.slice(1).map(({ from }) => from)).toEqual(["One", "Two", "Three"]);
  expect(await database.query("SELECT 1 FROM deal_change WHERE kind = 'TITLE'")).toHaveLength(4);
  expect(read.map(({ kind }) => kind)).not.toContain("FORECAST");
  const events = await eventsAt(after);
  expect(events).toContain("CONSENT_COMPLETED");
  expect(events).not.toContain("FORECAST_MADE");
  await end(alone);
  await end(after);
});
