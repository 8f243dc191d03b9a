import { createHash, randomBytes } from "node:crypto";
import { KeepOut } from "../../src/connections/keep-out";
import { erasePerson } from "../../src/operator/erasure";
import { systemClock } from "../../src/platform/clock";
import { Keyring } from "../../src/platform/keyring";
import { createLogger } from "../../src/platform/logger";
import { dumpDatabase, leaked } from "../support/dump";
import { startProgram } from "../support/processes";
import { ENCRYPTION_KEYS } from "../support/service";
import { connect, dataOf, noJobIsDue, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { rowsOfTenant } from "../support/tenants";
import { useCrm } from "../support/world";

// Seen red with each way on which the person came: pages, answers by ids, meetings, what hangs on the person; without the lock.

// Each command is a process of its own, and a busy machine takes its time to start it.
jest.setTimeout(180_000);

const ADDRESS = "ottilie.ringelnatz@quellwerk.example";
const SECOND = "o.ringelnatz@heim.example";
const NAME = "Ottilie Ringelnatz";
const TRACES = [ADDRESS, "ottilie.ringelnatz+crm@", SECOND, NAME].map((trace) => trace.toLowerCase());

const { world, simulator, database, serve } = useCrm({ deals: 20 });
const email = (value: string) => ({ value, primary: true, label: "work" });
const ids = { person: 0, deal: 0, later: 0 };
beforeAll(() => {
  const { control } = simulator;
  ids.person = control.add("person", { name: NAME, emails: [email(ADDRESS), email(SECOND)] });
  ids.deal = control.add("deal", { title: "Renewal", status: "open", person_id: ids.person });
  control.add("note", { content: `<p>${NAME} called.</p>`, person_id: ids.person, deal_id: ids.deal });
  control.add("activity", { subject: `Call ${NAME}`, person_id: ids.person, deal_id: ids.deal, done: true });
});
const service = serve({ connected: ["acme", "globex"], config: { sync: { intervalMs: 0, reconcileIntervalMs: 0 } } });

const TITLE = `Renewal with ${NAME}`;
const SOMEBODY = { email: "somebody@quellwerk.example" };
const record = (externalId: string, title = TITLE, address = ADDRESS) =>
  recordMeeting(service, [], { externalId, title, attendees: [{ email: address, name: NAME }, SOMEBODY] });

async function command(words: string[], environment: Record<string, string> = {}): Promise<string> {
  const program = startProgram("src/main.js", { ...world.environment, LOG_LEVEL: "warn", ...environment }, words);
  expect({ code: await program.ended, said: program.output() }).toMatchObject({ code: 0 });
  return program.output();
}

/** Tables of a tenant in which the person stands. */
async function tablesThatShow(tenant: string): Promise<string[]> {
  const rows = await rowsOfTenant(database, tenant);
  const found = rows.filter(({ text }) => TRACES.some((trace) => text.toLowerCase().includes(trace)));
  return [...new Set(found.map(({ table }) => table.replace("public.", "")))];
}

async function readEverything(kind: "FULL" | "RECONCILE" = "FULL"): Promise<void> {
  await until("a sync is asked for", async () => {
    const asked = await service.ask<{ requestSync: object }>(`mutation { requestSync(kind: ${kind}) { __typename } }`);
    return "run" in dataOf(asked).requestSync || JSON.stringify(dataOf(asked)).includes("SyncRequested");
  });
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
  await noJobIsDue(database);
}

const rowsOf = async (table: string, of = "true") =>
  database.query<Record<string, unknown>>(`SELECT * FROM ${table} WHERE tenant_id = $1 AND ${of} ORDER BY 1, 2`, [
    await database.tenantId("acme"),
  ]);

test("a recording under way is waited for: the attendee it had not heard of goes with the others", async () => {
  await record("kept-1");
  expect(await tablesThatShow("acme")).toEqual(expect.arrayContaining(["person", "note", "meeting_attendee"]));
  const holder = database.dataSource.createQueryRunner();
  await holder.startTransaction();
  await holder.query("LOCK TABLE meeting_attendee IN EXCLUSIVE MODE");
  const recording = record("kept-2");
  await until("it waits", async () => (await database.lockWaits()).length > 0);
  // In this process: who waits for a lock gives up before another process has started.
  const parts = { database: database.opened(), clock: systemClock, logger: createLogger("silent") };
  const keep = { ...parts, keepOut: new KeepOut(new Keyring(world.config.encryptionKeys)) };
  const keeping = erasePerson(keep, await database.tenantId("acme"), ADDRESS, true);
  await until("the erasure waits for it", async () => (await database.lockWaits()).length > 1);
  await holder.commitTransaction();
  await holder.release();
  await recording;
  expect(await keeping).toMatchObject({ meetings: 2, records: 1 });
  expect(await tablesThatShow("acme")).toEqual([]);
  expect(await tablesThatShow("globex")).toContain("person");
});

// Seen red: what syncs read meanwhile took the person's row, and with it all by which the rest was to be found.
test("an erasure that is cut off once the person is kept out finds the rest by a second try, whatever was read in between", async () => {
  const as = { tenant: "globex" };
  await recordMeeting(service, [], { title: TITLE, attendees: [{ email: SECOND, name: NAME }, SOMEBODY] }, as);
  await database.query("ALTER TABLE note ADD CONSTRAINT dies CHECK (false) NOT VALID");
  const words = ["erase-person", as.tenant, ADDRESS, "--keep-out", "--yes"];
  expect(await startProgram("src/main.js", world.environment, words).ended).toBe(1);
  await database.query("ALTER TABLE note DROP CONSTRAINT dies");
  await syncAgain(service, database, { ...as, role: "owner" }, "RECONCILE");
  expect(await command(words)).toMatch(/^Erased: an attendee of 1 meeting\(s\), 1 synced person\(s\)/m);
  expect(await tablesThatShow(as.tenant)).toEqual([]);
  await syncAgain(service, database, { ...as, role: "owner" }, "RECONCILE");
  expect(await tablesThatShow(as.tenant)).toEqual([]);
});

test("what is kept is a hash that nobody can guess without the key of the service", async () => {
  expect(await rowsOf("kept_out_address")).toHaveLength(2);
  const hashes = [ADDRESS, SECOND].flatMap((address) =>
    (["hex", "base64", "base64url"] as const).map((form) => createHash("sha256").update(address).digest(form)),
  );
  const texts = (await dumpDatabase(database)).map(({ text }) => text);
  expect(leaked(hashes, texts)).toEqual([]);
});

test("the person does not come back by a sync of everything, and its deal keeps the id", async () => {
  simulator.log.clear();
  await readEverything();
  expect(simulator.log.of("GET", /\/persons$/).length).toBeGreaterThan(0);
  expect(await tablesThatShow("acme")).toEqual([]);
  expect(await rowsOf("deal", `crm_id = ${ids.deal} AND person_id = ${ids.person}`)).toHaveLength(1);
  // Nothing of what is not stored has to be removed, or asked for, again.
  simulator.log.clear();
  await readEverything();
  expect(simulator.log.of("GET", new RegExp(`/deals/${ids.deal}/participants`))).toEqual([]);
  await readEverything("RECONCILE");
  expect(await tablesThatShow("acme")).toEqual([]);
});

test("nor by what changes: new texts of the person's own, a second record, one that is the person's by now", async () => {
  const { control, company } = simulator;
  const taken = [ids.person, company.stories.singleDeal.personId];
  const other = [...company.persons.keys()].find((id) => !taken.includes(id)) ?? 0;
  control.add("activity", { subject: `Lunch with ${NAME}`, participants: [{ person_id: ids.person, primary: true }] });
  ids.later = control.add("person", { name: NAME, emails: [email("ottilie.ringelnatz+crm@quellwerk.example")] });
  control.add("note", { content: `<p>${NAME} moved.</p>`, person_id: ids.later });
  control.add("note", { content: `<p>${NAME} is the new one.</p>`, person_id: other });
  await syncAgain(service, database);
  expect(await rowsOf("person", `crm_id = ${other}`)).toHaveLength(1);
  control.change("person", other, { name: NAME, emails: [email(SECOND)] });
  await syncAgain(service, database);
  expect(await tablesThatShow("acme")).toEqual([]);
  expect(await rowsOf("person", `crm_id IN (${other}, ${ids.later})`)).toEqual([]);
});

test("nor by an answer to ids, where a matched record has become the person's", async () => {
  const { personId, email: address } = simulator.company.stories.singleDeal;
  await recordMeeting(service, [address]);
  expect(await rowsOf("matched_record", `entity = 'PERSON' AND crm_id = ${personId}`)).toHaveLength(1);
  simulator.control.change("person", personId, { name: NAME, emails: [email(ADDRESS)] });
  const body = JSON.stringify({ success: true, data: [], additional_data: { next_cursor: null } });
  const isList = (query: Record<string, string>) => !("ids" in query);
  const answer = { match: "/api/v2/persons", where: isList, with: { status: 200, body } };
  const honest = simulator.control.fail(answer);
  await database.query("UPDATE synced_copy SET probed_at = NULL");
  await syncAgain(service, database);
  honest();
  expect(await rowsOf("person", `crm_id = ${personId}`)).toEqual([]);
  expect(await tablesThatShow("acme")).toEqual([]);
});

test("nor by a record that could not be read", async () => {
  const data = [{ id: 9_999, name: 7, alias: NAME, emails: [email(ADDRESS)] }];
  const body = JSON.stringify({ success: true, data, additional_data: { next_cursor: null } });
  simulator.control.fail({ match: "/api/v2/persons", times: 1, with: { status: 200, body } });
  await syncAgain(service, database);
  expect(await rowsOf("rejected_record", "resource = 'PERSONS'")).toHaveLength(1);
  expect(await tablesThatShow("acme")).toEqual([]);
});

test("nor as a user of the CRM: what the user did keeps the id, and nobody the name", async () => {
  const { control, company } = simulator;
  const authorizing = company.stories.singleDeal.ownerId;
  const user = [...company.users.keys()].find((id) => id !== authorizing) ?? 0;
  control.change("user", user, { name: NAME, email: ADDRESS });
  control.change("deal", ids.deal, { owner_id: user });
  await readEverything();
  expect(await rowsOf("crm_user", `crm_id = ${user}`)).toEqual([
    expect.objectContaining({ name: "[erased]", email: "[erased]", mailbox: null, active: true }),
  ]);
  expect(await rowsOf("deal", `crm_id = ${ids.deal} AND owner_id = ${user}`)).toHaveLength(1);
  expect(await tablesThatShow("acme")).toEqual([]);
});

// Seen red: the connection had the name and the address again.
test("nor by authorizing: it succeeds and is the same user's by id, and the connection names nobody", async () => {
  const { control, company } = simulator;
  const userId = company.stories.singleDeal.ownerId;
  const user = { ...company.users.get(userId) };
  control.change("user", userId, { name: NAME, email: ADDRESS });
  const copies = () => rowsOf("synced_copy", "state = 'LIVE'");
  const [before] = await copies();
  await database.query("UPDATE connection SET state = 'NEEDS_REAUTHORIZATION' WHERE tenant_id = $1", [
    await database.tenantId("acme"),
  ]);
  expect((await connect(service, simulator)).connection).toMatchObject({ state: "CONNECTED", boundEmail: "[erased]" });
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
  expect((await copies()).map(({ id, crm_user_id }) => ({ id, crm_user_id }))).toEqual([
    { id: before?.id, crm_user_id: before?.crm_user_id },
  ]);
  expect(await tablesThatShow("acme")).toEqual([]);
  control.change("user", userId, user);
  await readEverything();
});

test("nor by its meeting, recorded again or anew: it is recorded without the person, and nothing is matched by the address", async () => {
  for (const address of [ADDRESS, "Ottilie.Ringelnatz+CRM@Quellwerk.example", `${NAME} <${SECOND}>`]) {
    const { attendees } = await record("kept-1", `${TITLE}, ${address}`, address);
    expect(attendees.map((attendee) => attendee.email)).toEqual([SOMEBODY.email]);
    expect(await tablesThatShow("acme")).toEqual([]);
  }
  const [meeting] = await rowsOf("meeting", "external_id = 'kept-1'");
  expect(meeting).toMatchObject({ title: "Renewal with [erased], [erased] <[erased]>" });
  await recordMeeting(service, [], { externalId: "kept-3", ownerEmail: ADDRESS, attendees: [SOMEBODY] });
  expect(await tablesThatShow("acme")).toEqual([]);
});

test("keys are rotated with it: under a new key of the service the same person stays out", async () => {
  const sealed = async () => (await rowsOf("kept_out_key"))[0]?.sealed_key;
  const before = await sealed();
  const newKey = `new:${randomBytes(32).toString("base64")}`;
  await command(["rotate-keys"], { ENCRYPTION_KEYS: `${newKey},${ENCRYPTION_KEYS}` });
  const under = await sealed();
  expect(String(under).slice(2, 5)).toBe("new");
  await command(["rotate-keys"], { ENCRYPTION_KEYS: `${ENCRYPTION_KEYS},${newKey}` });
  expect([before, under]).not.toContainEqual(await sealed());
  await record("kept-4");
  expect(await tablesThatShow("acme")).toEqual([]);
});

test("let in by any of its addresses, the person comes with the next sync of everything; each step is an event", async () => {
  expect(await command(["admit-person", "acme", SECOND, "--yes"])).toContain("2 address(es)");
  await readEverything();
  expect(await tablesThatShow("acme")).toEqual(expect.arrayContaining(["person", "person_address"]));
  expect((await record("kept-5")).attendees).toHaveLength(2);
  const program = startProgram("src/main.js", world.environment, ["admit-person", "acme", ADDRESS, "--yes"]);
  expect(await program.ended).toBe(1);
  expect(program.output()).toContain("This address is not kept out.");
  const events = await rowsOf("audit_event", "action ~ '^PERSON'");
  const actions = events.map(({ action }) => action);
  expect(actions).toEqual(["PERSON_KEPT_OUT", "PERSON_ERASED", "PERSON_LET_IN"]);
});

test("with the tenant go its key and its hashes", async () => {
  const said = await command(["erase-person", "acme", SECOND, "--keep-out", "--yes"]);
  expect(said).toContain("Kept out from now on");
  await command(["erase-tenant", "acme", "--yes"]);
  for (const table of ["kept_out_key", "kept_out_address", "kept_out_person"])
    expect({ table, rows: await rowsOf(table) }).toEqual({ table, rows: [] });
});
