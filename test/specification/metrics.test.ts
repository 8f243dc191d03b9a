import { Client } from "pg";
import { freePort } from "../../src/database/embedded/programs";
import { lineOf } from "../../src/operator/checks";
import { examine } from "../../src/operator/doctor";
import { readConfig } from "../../src/platform/config";
import { earlier } from "../support/database";
import { writeNote } from "../support/notes";
import type { Service } from "../support/service";
import { subscribe } from "../support/sockets";
import { connect, dataOf, noJobIsDue, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { makeStale } from "../support/tokens";
import { useCrm } from "../support/world";

let service: Service;
let metricsPort: number;

const { world, simulator, database } = useCrm({ deals: 20 });
beforeAll(async () => {
  metricsPort = await freePort();
  service = await world.startService({ config: { metricsPort }, connected: ["acme"] });
});

/** The value of one line of the exposition; 0 where it is missing. */
async function metric(line: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const found = text.split("\n").find((candidate) => candidate.startsWith(`${line} `));
  return Number(found?.slice(line.length + 1) ?? 0);
}

test("calls, pages, records and runs are counted as they happened", async () => {
  const participants = simulator.log.of("GET", /\/participants$/).length;
  expect(await metric('crm_call_seconds_count{route="GET /api/v1/deals/{id}/participants",status="200"}')).toBe(
    participants,
  );
  expect(await metric('sync_page_seconds_count{resource="PERSONS"}')).toBe(1);
  const [{ n }] = (await database.query("SELECT count(*)::int AS n FROM person")) as [{ n: number }];
  expect(await metric('sync_records_total{resource="PERSONS",outcome="written"}')).toBe(n);
  expect(await metric('sync_runs_total{kind="FULL",outcome="SUCCEEDED"}')).toBe(1);
});

// Seen red: it was INTERNAL, which wakes whoever mends bugs.
test("a run that ends for the app registration is counted as that, and not as a bug of ours", async () => {
  const ended = (outcome: string) => metric(`sync_runs_total{kind="INCREMENTAL",outcome="${outcome}"}`);
  simulator.control.fail({ match: "/oauth/token", with: { status: 401, body: '{"error":"invalid_client"}' } });
  await makeStale(database, "acme");
  dataOf(await service.ask("mutation { requestSync { __typename } }"));
  expect(await syncEnds(service)).toMatchObject({ state: "FAILED", error: { code: "INTERNAL" } });
  await until("it is counted", async () => (await ended("MISCONFIGURED")) === 1);
  expect(await ended("INTERNAL")).toBe(0);
  simulator.control.clearFaults();
});

// Seen red: a list that was never read to its end has no watermark, and nothing was told of it.
test("a first list that does not end is told by how long it goes on, beside the age of what others have read", async () => {
  const goesOn = () => metric("sync_first_lists_seconds");
  expect(await goesOn()).toBe(0);
  const mend = simulator.control.fail({ match: "/api/v2/deals", with: { status: 500, body: "" } });
  await connect(service, simulator, { tenant: "globex" });
  const globex = await database.tenantId("globex");
  const watermarks = () =>
    database.query(
      "SELECT resource FROM sync_list WHERE tenant_id = $1 AND watermark IS NULL AND resource IN ('USERS', 'DEALS')",
      [globex],
    );
  await until("what stands before it is read", async () => (await watermarks()).length === 1);
  await database.query(`UPDATE connection SET ${earlier("connected_at", "7 hours")} WHERE tenant_id = $1`, [globex]);
  expect(await goesOn()).toBeGreaterThan(25_000);
  expect(await metric("sync_oldest_watermark_seconds")).toBeLessThan(600);
  // Seen red: users are read every four hours, and were told as a stale copy for the second two.
  const ageOf = (resource: string) =>
    database.query(`UPDATE sync_list SET ${earlier("watermark", "3 hours")} WHERE resource = $1`, [resource]);
  for (const slow of ["USERS", "STAGES"]) {
    await ageOf(slow);
    expect(await metric("sync_oldest_watermark_seconds")).toBeLessThan(600);
  }
  // Seen red: whatever their age, nothing told of it.
  await ageOf("STAGES");
  await ageOf("STAGES");
  expect(await metric("sync_oldest_watermark_seconds")).toBeGreaterThan(17_000);
  await database.query("UPDATE sync_list SET watermark = now() WHERE resource = 'STAGES'");
  await ageOf("NOTES");
  expect(await metric("sync_oldest_watermark_seconds")).toBeGreaterThan(10_000);
  // Seen red: where lists are read by request only, each was a stale copy two hours later, for good.
  const planned = await database.query<{ tenant_id: string; next_sync_at: Date | null }>(
    "SELECT tenant_id, next_sync_at FROM connection",
  );
  await database.query("UPDATE connection SET next_sync_at = NULL");
  expect(await metric("sync_oldest_watermark_seconds")).toBe(0);
  for (const { tenant_id, next_sync_at } of planned)
    await database.query("UPDATE connection SET next_sync_at = $2 WHERE tenant_id = $1", [tenant_id, next_sync_at]);
  // Seen red: one company that does not pay was a stale copy for weeks, and hid all others.
  const trouble = (values: string) =>
    database.query(
      `UPDATE connection SET (trouble_code, trouble_message, trouble_since, trouble_last_seen_at) = (${values})`,
    );
  await trouble("'CRM_ACCOUNT_CLOSED', 'closed', now(), now()");
  expect([await metric("sync_oldest_watermark_seconds"), await goesOn()]).toEqual([0, 0]);
  await trouble("NULL, NULL, NULL, NULL");
  mend();
  // Seen red: so did one list that the CRM refuses to one user, whether it was ever read or not; others of that user count.
  const allow = simulator.control.fail({ match: "/api/v2/deals", with: { status: 403 } });
  const owner = { tenant: "globex", role: "owner" } as const;
  await until("no first list is waited for", async () => {
    await service.ask("mutation { requestSync { __typename } }", {}, owner);
    return (await goesOn()) === 0;
  });
  expect(await metric("sync_oldest_watermark_seconds")).toBeGreaterThan(10_000);
  const notes = `INSERT INTO data_gap SELECT tenant_id, copy_id, 'NOTES', $1::int, 'CRM_REFUSED', 'refused', now() FROM connection`;
  await database.query(notes, [1]);
  expect(await metric("sync_oldest_watermark_seconds")).toBeGreaterThan(10_000);
  await database.query(notes, [0]);
  expect(await metric("sync_oldest_watermark_seconds")).toBeLessThan(600);
  await database.query("DELETE FROM data_gap WHERE resource = 'NOTES'");
  allow();
  await syncAgain(service, database, owner);
  expect(await goesOn()).toBe(0);
});

// Seen red: of two workers one was counted as none.
test("doctor counts each process as a worker, which it cannot tell", async () => {
  const listener = new Client({
    connectionString: database.url.reveal(),
    application_name: "crm-connection listener",
  });
  await listener.connect();
  const said = (await examine(() => readConfig(world.environment))).map(lineOf).join("\n");
  await listener.end();
  expect(said).toMatch(/2 process\(es\) of the service want up to 78\b/);
});

// Seen red: it stayed for good for a receipt of a tenant that had left, and for one that nobody looks for any more; in the
// gauge, and in doctor.
test("a write is unsettled for so long as it is looked for", async () => {
  const as = { tenant: "initech" };
  await connect(service, simulator, as);
  await syncEnds(service, as);
  await noJobIsDue(database);
  const { id: meetingId } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
  expect(await writeNote(service, { meetingId, content: "Lost" }, as)).toMatchObject({ state: "WRITTEN" });
  const leave = (next: string) =>
    database.query(`UPDATE note_write SET state = 'UNKNOWN', crm_note_id = NULL, settled_at = NULL, requested_at = now() - interval '2 hours',
      sent_at = now() - interval '2 hours', next_look_up_at = ${next}`);
  const unsettled = async () => {
    const said = (await examine(() => readConfig(world.environment))).map(lineOf).join("\n");
    expect(said).toMatch((await metric("crm_writes_unsettled")) > 0 ? /writes: 1 are UNKNOWN/ : /^ok +writes: none /m);
    return metric("crm_writes_unsettled");
  };
  await leave("now() + interval '1 hour'");
  expect(await unsettled()).toBe(1);
  await leave("NULL");
  expect(await unsettled()).toBe(0);
  await leave("now() + interval '1 hour'");
  await service.ask("mutation { disconnect { __typename } }", {}, as);
  expect(await unsettled()).toBe(0);
});

// Seen red: the form in which the page and the documents ask for a briefing was counted as a query, and its slowness told nobody.
test("a briefing is measured apart, also where it is asked for with its meeting", async () => {
  const { id } = await recordMeeting(service, ["buyer@stranger.example"]);
  const answered = () => metric('graphql_operation_seconds_count{kind="briefing",outcome="OK"}');
  const before = await answered();
  dataOf(await service.ask("query ($id: ID!) { briefing(meetingId: $id) { asOf } }", { id }));
  dataOf(await service.ask("query ($id: ID!) { meeting(id: $id) { title briefing { asOf } } }", { id }));
  dataOf(await service.ask("query ($id: ID!) { meeting(id: $id) { title } }", { id }));
  expect(await answered()).toBe(before + 2);
});

// Seen red: a wrong AUTH_ISSUER refused everybody, and nothing counted it.
test("who is not let in is counted, by HTTP and on a socket", async () => {
  const refused = (outcome: string) => metric(`graphql_operation_seconds_count{kind="none",outcome="${outcome}"}`);
  const comeIn = async (as: { token: string } | { tenant: string }) => {
    const { errors } = await service.ask("{ connection { state } }", {}, as);
    const options = "token" in as ? as : { as };
    const { closed } = await subscribe(service.url, "subscription { connectionStatusChanged { state } }", options);
    return [errors?.[0]?.extensions.code, (await closed).code];
  };
  expect(await comeIn({ token: "none" })).toEqual(["UNAUTHENTICATED", 4403]);
  expect(await refused("UNAUTHENTICATED")).toBe(2);
  await database.query("ALTER TABLE tenant RENAME TO away");
  expect(await comeIn({ tenant: "new" })).toEqual(["TEMPORARILY_UNAVAILABLE", 1013]);
  await database.query("ALTER TABLE away RENAME TO tenant");
  expect(await refused("TEMPORARILY_UNAVAILABLE")).toBe(2);
});

test("operations, statements, sockets and the queue are measured", async () => {
  const before = await metric('graphql_operation_seconds_count{kind="query",outcome="OK"}');
  const statements = await metric("sql_statement_seconds_count");
  await service.ask("{ connection { state } }");
  await service.ask("{ syncRuns(first: 0) { nodes { id } } }");
  expect(await metric('graphql_operation_seconds_count{kind="query",outcome="OK"}')).toBe(before + 1);
  expect(await metric('graphql_operation_seconds_count{kind="query",outcome="BAD_USER_INPUT"}')).toBe(1);
  expect(await metric("sql_statement_seconds_count")).toBeGreaterThan(statements);
  const watching = await subscribe(service.url, "subscription { connectionStatusChanged { state } }");
  await until("the socket is counted", async () => (await metric("sockets_open")) === 1);
  await watching.end();
  await until("its end is counted", async () => (await metric("sockets_open")) === 0);
  await database.query("SELECT graphile_worker.add_job('nobody_does_this', run_at => now() - interval '1 hour')");
  expect(await metric("jobs_waiting")).toBeGreaterThanOrEqual(1);
  expect(await metric("jobs_oldest_waiting_seconds")).toBeGreaterThan(3_500);
  // Seen red: a worker that hangs in a job says that it is at work, and nothing told of it.
  expect(await metric("jobs_oldest_in_hand_seconds")).toBeLessThan(60);
  const takenBefore = (minutes: number) =>
    database.query(
      `UPDATE graphile_worker._private_jobs SET locked_at = now() - interval '${minutes} minutes', locked_by = 'alive' WHERE key IS NULL`,
    );
  // Seen red: what the last worker had in hand when it was killed did not wait, and the process that hangs was to be ended.
  await takenBefore(7);
  expect(await metric("jobs_oldest_in_hand_seconds")).toBeLessThan(60);
  expect(await metric("jobs_oldest_waiting_seconds")).toBeGreaterThan(3_500);
  await takenBefore(0);
  expect(await metric("jobs_oldest_in_hand_seconds")).toBeGreaterThan(3_500);
  // Seen red: for the six hours after its last failure a job that was given up was told by nothing.
  expect(await metric("jobs_given_up")).toBe(0);
  await database.query(
    `UPDATE graphile_worker._private_jobs SET key = 'nobody', attempts = max_attempts, locked_at = NULL, locked_by = NULL,
       run_at = now() + interval '6 hours' WHERE locked_by = 'alive'`,
  );
  expect(await metric("jobs_given_up")).toBe(1);
});

test("tokens of the CRM are counted by purpose, and companies that are short", async () => {
  expect(await metric('crm_tokens_spent_total{purpose="LISTS"}')).toBeGreaterThan(0);
  const remaining = await metric("crm_tokens_remaining");
  expect(remaining).toBeGreaterThan(0);
  expect(await metric("crm_tokens_limit")).toBeGreaterThan(remaining);
  expect(await metric("crm_companies_short")).toBe(0);
  await database.query("UPDATE crm_budget SET remaining = 1");
  expect(await metric("crm_companies_short")).toBe(1);
});

test("metrics are not served with the API", async () => {
  expect((await fetch(`${service.url}/metrics`)).status).toBe(404);
});
