import { setTimeout as sleep } from "node:timers/promises";
import { CrmStops, OBEYED_WITHIN_MS, resumeCrm, stopCrm } from "../../src/connections/crm-stops";
import { CrmStoppedError, stopBehind } from "../../src/crm/errors";
import { CrmHttp } from "../../src/crm/http";
import type { Database } from "../../src/database/database";
import { createMetrics } from "../../src/platform/metrics";
import { inWork, limitWork } from "../../src/platform/work";
import { createTestDatabase } from "../support/database";
import { setMapping, writeFields } from "../support/fields";
import { askNote, posts, writeNote } from "../support/notes";
import { startProgram } from "../support/processes";
import type { Service } from "../support/service";
import { subscribe } from "../support/sockets";
import { completeConsent, connect, dataOf, recordMeeting, startConsent, syncEnds, until } from "../support/stories";
import { makeStale, startTokens } from "../support/tokens";
import { useCrm } from "../support/world";

let services: Service[];
let db: Database;

// Each command is a process of its own, and a busy machine takes its time to start it.
jest.setTimeout(120_000);

const { world, simulator, database } = useCrm({ deals: 50 });
beforeAll(async () => {
  db = database.opened();
  services = (await Promise.all([world.startProcess(), world.startProcess()])).map(({ service }) => service);
  await connect(services[0] as Service, simulator);
  await syncEnds(services[0] as Service);
});
afterEach(async () => {
  simulator.control.clearFaults();
  await resumeCrm(db, new Date());
  await syncEnds(services[0] as Service);
});

const startCommand = (...words: string[]) =>
  startProgram("src/main.js", { ...world.environment, LOG_LEVEL: "info" }, words);

async function command(name: string, ...words: string[]): Promise<string> {
  const program = startCommand(name, ...words);
  expect(await program.ended).toBe(0);
  return program.output();
}

const REASON = "Notes go to wrong deals, we look into it.";
interface Seen {
  trouble: { code: string; message: string } | null;
}
const WATCHED = "{ connectionStatusChanged { trouble { code message } } }";
const TROUBLE = "{ connection { trouble { code message } } }";
const troubleSeenBy = async (service: Service) =>
  dataOf(await service.ask<{ connection: Seen }>(TROUBLE)).connection.trouble;
const unfinished = () => database.query("SELECT state FROM sync_run WHERE state <> 'SUCCEEDED'");
const requestSync = (service: Service, kind = "FULL", as?: { tenant: string }) =>
  service.ask(
    `mutation { requestSync(kind: ${kind}) { ... on SyncRequested { run { id } } ... on Refusal { code } } }`,
    {},
    as,
  );

test("after crm:stop no process calls the CRM, every customer is told why, and after crm:resume all goes on", async () => {
  const [one, two] = services as [Service, Service];
  const { email } = simulator.company.stories.singleDeal;
  const { id: meetingId } = await recordMeeting(one, [email]);
  const watching = await subscribe<{ connectionStatusChanged: Seen }>(two.url, `subscription ${WATCHED}`);
  const lastSeen = () => watching.results.at(-1)?.connectionStatusChanged.trouble;
  await until("the subscriber sees the present state", async () => watching.results.length > 0);
  const begun = [await startConsent(one, { tenant: "newcomer" }), await startConsent(two, { tenant: "newcomer" })];
  const letGo = simulator.control.fail({ match: "/api/v2/organizations", times: 1, with: { kind: "hang" } });
  await requestSync(one);
  await until("the run reads", async () => simulator.log.of("GET", "/api/v2/organizations").length > 0);

  expect(await command("crm-stop", REASON)).toContain(REASON);
  await until("the subscriber sees the stop", async () => lastSeen()?.message.includes(REASON));
  await sleep(OBEYED_WITHIN_MS);
  letGo();
  await until("the run is given back", async () => (await unfinished()).every(({ state }) => state === "QUEUED"));
  simulator.log.clear();
  for (const service of services) {
    expect(await askNote(service, { meetingId })).toMatchObject({ code: "CRM_UNAVAILABLE" });
    expect((await askNote(service, { meetingId })).message).toContain(REASON);
    expect(await troubleSeenBy(service)).toMatchObject({ code: "CRM_UNAVAILABLE" });
    expect((await troubleSeenBy(service))?.message).toContain(REASON);
    const fields = await writeFields(service, meetingId, [{ entity: "DEAL", value: "x" }]);
    expect(fields).toMatchObject({ code: "CRM_UNAVAILABLE", message: expect.stringContaining(REASON) });
    const mapping = await setMapping(service, "DEAL", "some-field");
    expect(mapping).toMatchObject({ code: "CRM_UNAVAILABLE", message: expect.stringContaining(REASON) });
    const { startConnect } = dataOf(
      await service.ask<{ startConnect: object }>(
        "mutation { startConnect { ... on Refusal { code message } } }",
        {},
        { tenant: "newcomer" },
      ),
    );
    expect(startConnect).toMatchObject({ code: "CRM_UNAVAILABLE", message: expect.stringContaining(REASON) });
    const { viewer } = dataOf(
      await service.ask<{ viewer: object }>("{ viewer { connectRefusal } }", {}, { tenant: "newcomer" }),
    );
    expect(viewer).toEqual({ connectRefusal: "CRM_UNAVAILABLE" });
    const state = String(begun.shift());
    const refused = await completeConsent(
      service,
      { code: simulator.control.approve({ state }), state },
      { tenant: "newcomer" },
    );
    expect(refused).toMatchObject({ code: "CRM_UNAVAILABLE" });
    expect(refused.message).toContain(REASON);
  }
  await sleep(1_500);
  expect(simulator.log.all()).toEqual([]);
  expect(await unfinished()).toEqual([{ state: "QUEUED" }]);
  expect(await database.query("SELECT id FROM note_write UNION ALL SELECT id FROM field_write")).toEqual([]);

  expect(await command("crm-resume")).toContain("may be made again");
  await until("the subscriber sees the end of it", async () => lastSeen() === null);
  await watching.end();
  simulator.control.clearFaults();
  expect(await syncEnds(two)).toMatchObject({ state: "SUCCEEDED", error: null, gaps: [] });
  expect(await writeNote(two, { meetingId })).toMatchObject({ state: "WRITTEN" });
  expect(posts(simulator)).toHaveLength(1);
  for (const service of services) expect(await troubleSeenBy(service)).toBeNull();
});

test("a token renewal is not sent either, and is no open attempt afterwards", async () => {
  const [one] = services as [Service];
  await stopCrm(db, REASON, new Date());
  await makeStale(database, "acme");
  simulator.log.clear();
  await requestSync(one, "INCREMENTAL");
  await until("the run waits", async () => (await waiting()) > 0);
  expect(simulator.log.all()).toEqual([]);
  expect(await database.query("SELECT 1 FROM renewal_attempt")).toEqual([]);

  await resumeCrm(db, new Date());
  expect(await syncEnds(one)).toMatchObject({ state: "SUCCEEDED" });
  expect(simulator.log.of("POST", "/oauth/token")).toHaveLength(1);
});

// Seen red: each was counted as an outage, of which an alert tells, and noted as trouble that stayed after the stop.
test("a renewal, or its proof, that a stop holds up is no failure of the CRM: nothing is counted, noted or left", async () => {
  const [stops, metrics, copyId] = [new CrmStops(db), createMetrics(), await makeStale(database, "acme")];
  const http = new CrmHttp(undefined, undefined, () => stops.requireNone());
  const { tokens, close } = await startTokens(world.config, () => ({ metrics }), http);
  const source = tokens.of(await database.tenantId("acme"), copyId);
  await stopCrm(db, REASON, new Date());
  expect(stopBehind(await source.current().catch((error: unknown) => error))?.reason).toBe(REASON);
  await database.query("UPDATE credential SET access_token_asked_at = now(), proven_version = NULL");
  expect(stopBehind(await source.current().catch((error: unknown) => error))?.reason).toBe(REASON);
  expect((await metrics.tokenRenewals.get()).values).toEqual([]);
  expect(await database.query("SELECT trouble_code FROM connection WHERE trouble_code IS NOT NULL")).toEqual([]);
  expect(await database.query("SELECT 1 FROM renewal_attempt")).toEqual([]);
  await close();
});

// Seen red: looked at before the wait alone, it was sent as soon as a socket was free.
test("a call that waits for a socket while the CRM is stopped is never sent", async () => {
  const stops = new CrmStops(db);
  const http = new CrmHttp(undefined, undefined, () => stops.requireNone());
  const [me, notes] = ["/api/v1/users/me", "/api/v1/notes"];
  simulator.log.clear();
  const letGo = simulator.control.fail({ match: me, with: { kind: "hang" } });
  const send = (method: "GET" | "POST", path: string) =>
    http.send({ method, url: `${simulator.url}${path}`, headers: {} });
  const inHand = Array.from({ length: 128 }, () => send("GET", me));
  await until("every socket is taken", async () => simulator.log.of("GET", me).length === inHand.length);
  const waiting = send("POST", notes).catch((error: unknown) => error);
  await stopCrm(db, REASON, new Date());
  await sleep(OBEYED_WITHIN_MS);
  letGo();
  expect(await waiting).toBeInstanceOf(CrmStoppedError);
  expect((await Promise.all(inHand)).map(({ status }) => status)).toEqual(inHand.map(() => 401));
  expect(simulator.log.of("POST", notes)).toEqual([]);
  await http.close();
});

// Seen red: what had joined the look of a call whose operation was past its deadline was told that the database is away.
test("a look at the stop is everybody's: the end of the work that began it ends it for nobody", async () => {
  const stops = new CrmStops(db);
  const past = inWork({}, () => {
    limitWork(() => true);
    return stops.requireNone();
  });
  await Promise.all([past, stops.requireNone()]);
});

// Seen red: the second reason was thrown away, and the command ended with 0.
test("a reason said again corrects that of the stop that holds, which goes on; without one it stays", async () => {
  const [one] = services as [Service];
  const { since } = await stopCrm(db, "A typo.", new Date());
  expect(await command("crm-stop", REASON)).toContain(`Stopped since ${since.toISOString()}: ${REASON}`);
  await until("customers are told", async () => (await troubleSeenBy(one))?.message.includes(REASON));
  expect(await command("crm-stop")).toContain(REASON);
  expect(await database.query("SELECT reason FROM crm_stop WHERE ended_at IS NULL")).toEqual([{ reason: REASON }]);
  expect(await resumeCrm(db, new Date())).toBe(true);
  expect(await command("crm-resume")).toContain("were not stopped");
});

test("a tenant's session can read the switch and not change it", async () => {
  await database.query("GRANT ALL ON crm_stop TO crm_connection");
  const attempt = db.tenant(await database.tenantId("acme")).transaction(async ({ rows }) => {
    await rows("SET LOCAL ROLE crm_connection");
    await rows("SELECT * FROM crm_stop");
    await rows("INSERT INTO crm_stop (begun_at, reason) VALUES (now(), 'mine')");
  });
  await expect(attempt).rejects.toThrow("row-level security");
});

test("a command that does not exist is answered with those that do", async () => {
  const program = startCommand("crm-pause");
  expect(await program.ended).toBe(1);
  expect(program.output()).toMatch(/no command crm-pause.*crm-stop, crm-resume/);
});

// Seen red: --help was the reason of a stop, and what followed another command was not looked at.
test("a word that a command does not have does nothing, and is answered with how it is said", async () => {
  const said = ["crm-stop --help", "crm-stop wrong deals -h", "crm-resume --help", "migrate x"];
  const answered = said.map(async (words) => {
    const [name = "", ...more] = words.split(" ");
    const program = startCommand(name, ...more);
    expect([words, await program.ended]).toEqual([words, 1]);
    expect(program.output()).toMatch(new RegExp(`^Nothing was done\\. Say: ${name}`, "m"));
  });
  await Promise.all(answered);
  expect(await database.query("SELECT FROM crm_stop WHERE ended_at IS NULL")).toEqual([]);
});

// Seen red: it ended with PostgreSQL's "relation does not exist" and a stack.
test("on a database without the service's tables a command says so, and what to look at", async () => {
  const empty = await createTestDatabase({ empty: true });
  const program = startProgram("src/main.js", { ...world.environment, DATABASE_URL: empty.url.reveal() }, [
    "crm-stop",
    REASON,
  ]);
  expect(await program.ended).toBe(1);
  expect(program.output()).toBe("This database has no tables of the service: check DATABASE_URL, or run migrate.\n");
  await empty.drop();
});

/** Jobs of runs that wait for a later moment. */
async function waiting(): Promise<number> {
  const jobs = await database.query(
    "SELECT 1 FROM graphile_worker.jobs WHERE task_identifier = 'sync_run' AND run_at > now() AND locked_at IS NULL",
  );
  return jobs.length;
}
