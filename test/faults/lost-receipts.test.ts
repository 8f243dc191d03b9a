import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { startSimulator } from "../../simulator";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres";
import { lineOf } from "../../src/operator/checks";
import { examine } from "../../src/operator/doctor";
import { MINUTE_MS } from "../../src/platform/clock";
import { readConfig } from "../../src/platform/config";
import { encryptionKeys } from "../../src/platform/keyring";
import type { ActorClaims } from "../support/actors";
import { on } from "../support/database";
import { notesWith, posts, writeNote } from "../support/notes";
import { ENCRYPTION_KEYS, environmentFor, type Service, type ServiceOptions, startService } from "../support/service";
import { connect, recordMeeting, syncEnds, until } from "../support/stories";
import { useStarted } from "../support/world";
import { startWriteback } from "../support/writeback";

// A database that has lost receipts, as a standby that lagged and a restored backup have. Seen red: without the look the note
// is there twice; with a drawn reference, or one of the tenant's drawn number, too; and where a look that failed was taken for one
// that found nothing.

const DIRECTORY = `.data/lost-receipts-${process.pid}`;
const DATA = join(DIRECTORY, "data");
const BACKUP = join(DIRECTORY, "backup");

const simulator = useStarted(() => startSimulator({ deals: 10 }));
let postgres: EmbeddedPostgres;
let meetingId: string;

const query = (sql: string) => on(postgres.url.reveal(), sql);
/** At a target's notes; syncs read all. */
const looks = () => simulator.log.of("GET", "/api/v1/notes").filter(({ query }) => query.deal_id);

async function served<T>(work: (service: Service) => Promise<T>, options: ServiceOptions = {}): Promise<T> {
  const service = await startService(simulator, { url: postgres.url }, { roles: new Set(["api"]), ...options });
  try {
    return await work(service);
  } finally {
    await service.stop();
  }
}

const write = (idempotencyKey: string, options?: ServiceOptions) =>
  served((service) => writeNote(service, { meetingId, idempotencyKey }), options);

const begin = (as?: ActorClaims) =>
  served(
    async (service) => {
      await connect(service, simulator, as);
      await syncEnds(service, as);
      return (await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as)).id;
    },
    { roles: new Set(["api", "worker"]) },
  );

beforeAll(async () => {
  postgres = await startEmbeddedPostgres({ directory: DIRECTORY, durable: true });
  meetingId = await begin();
}, 120_000);
beforeEach(() => simulator.log.clear());
afterAll(async () => {
  await postgres?.stop();
  rmSync(DIRECTORY, { recursive: true, force: true });
});

const NEWEST = `newest:${randomBytes(32).toString("base64")}`;
const rotated = () => ({ encryptionKeys: encryptionKeys.parse(`${NEWEST},${ENCRYPTION_KEYS}`) });

/** PostgreSQL's own way to an earlier state: a backup, and the end of the log that it has, where a new history begins. */
async function restore(): Promise<void> {
  await postgres.stop();
  rmSync(DATA, { recursive: true });
  renameSync(BACKUP, DATA);
  writeFileSync(join(DATA, "recovery.signal"), "");
  appendFileSync(join(DATA, "postgresql.auto.conf"), "restore_command = 'false'\nhot_standby = off\n");
  postgres = await startEmbeddedPostgres({ directory: DIRECTORY, durable: true });
}

test("a note whose receipt was lost with the server that had it is found, not sent again", async () => {
  await write("before the backup");
  await postgres.stop();
  execFileSync("cp", ["-a", DATA, BACKUP]);
  postgres = await startEmbeddedPostgres({ directory: DIRECTORY, durable: true });
  const first = await write("lost");
  const LATER = { tenant: "came after the backup" };
  const writeLater = async () => {
    const input = { meetingId: await begin(LATER), idempotencyKey: "lost" };
    return served((service) => writeNote(service, input, LATER));
  };
  const theirs = await writeLater();
  expect(looks()).toEqual([]);

  await restore();
  expect(await query("SELECT FROM note_write WHERE idempotency_key = 'lost'")).toEqual([]);
  expect(await write("lost")).toMatchObject({
    state: "WRITTEN",
    crmNoteId: first.crmNoteId,
    reference: first.reference,
  });
  expect(notesWith(simulator, first.reference)).toHaveLength(1);
  expect(await write("new")).toMatchObject({ state: "WRITTEN" });
  expect([posts(simulator).length, looks().length]).toEqual([4, 2]);
  const { crmNoteId, reference } = theirs;
  expect(reference).not.toBe(first.reference);
  expect(await writeLater()).toMatchObject({ state: "WRITTEN", crmNoteId, reference });
  expect(posts(simulator)).toHaveLength(4);
}, 120_000);

// Seen red: by its number from before, "Something went wrong on our side" for up to ten minutes.
test("a tenant of which the server that took over knows nothing is served by a process that knows it", async () => {
  const as = { tenant: "lost with the server" };
  await served(async (service) => {
    await service.ask("{ connection { state } }", {}, as);
    const listening = () =>
      query("SELECT pid FROM pg_stat_activity WHERE application_name = 'crm-connection listener'");
    const [before] = await listening();
    await query(`DELETE FROM tenant WHERE external_id = '${as.tenant}'`);
    await query(`SELECT pg_terminate_backend(${before?.pid}, 5000)`);
    await until("it listens again", async () => (await listening()).length === 1);
    // It is told of that when it is.
    await sleep(200);
    expect(await recordMeeting(service, ["ada@buyer.example"], {}, as)).toMatchObject({ id: expect.anything() });
  });
}, 60_000);

test("also where the service's keys were rotated since", async () => {
  const first = await write("rotated");
  await query("DELETE FROM note_write WHERE idempotency_key = 'rotated'");
  const again = await write("rotated", rotated());
  expect(again).toMatchObject({ state: "WRITTEN", crmNoteId: first.crmNoteId });
  expect(posts(simulator)).toHaveLength(1);
}, 60_000);

test("where the look fails nothing is sent, and what became of it stays unknown", async () => {
  const calm = simulator.control.fail({ match: "/api/v1/notes", method: "GET", with: { status: 500 } });
  expect(await write("unseen")).toMatchObject({ state: "UNKNOWN" });
  calm();
  expect(await write("unseen")).toMatchObject({ state: "UNKNOWN" });
  expect(posts(simulator)).toEqual([]);
}, 60_000);

// Seen red: by the new reference alone it was FAILED, and whoever wrote it again with a new key had it twice.
test("and where the look before the sending fails, a later one finds it by its earlier key's reference", async () => {
  const first = await write("rotated, unseen");
  await query("DELETE FROM note_write WHERE idempotency_key = 'rotated, unseen'");
  const calm = simulator.control.fail({ match: "/api/v1/notes", method: "GET", with: { status: 500 } });
  expect(await write("rotated, unseen", rotated())).toMatchObject({ state: "UNKNOWN" });
  calm();
  const config = readConfig({ ...environmentFor(simulator), DATABASE_URL: postgres.url.reveal() });
  const writeback = await startWriteback({ ...config, ...rotated() }, () => new Date(Date.now() + 4 * MINUTE_MS));
  const [receipt] = await query("SELECT tenant_id, id FROM note_write WHERE idempotency_key = 'rotated, unseen'");
  await writeback.lookUps.lookUp({ tenantId: Number(receipt?.tenant_id), writeId: String(receipt?.id) });
  await writeback.close();
  expect(await write("rotated, unseen")).toMatchObject({ state: "WRITTEN", crmNoteId: first.crmNoteId });
}, 60_000);

test("a day later nothing is looked for, until an operator resumes the calls to the CRM", async () => {
  await query("UPDATE server_timeline SET seen_at = seen_at - interval '25 hours'");
  await write("a day later");
  expect(looks()).toEqual([]);
  await query("INSERT INTO crm_stop (begun_at, reason, ended_at) VALUES (now(), 'A disk was restored.', now())");
  await write("resumed");
  expect([posts(simulator).length, looks().length]).toEqual([2, 1]);
}, 60_000);

/** As a dump that goes back to the server that it is of does it. */
const restoreDump = () =>
  query(`ALTER TABLE server_timeline RENAME TO dumped; CREATE TABLE server_timeline (LIKE dumped INCLUDING ALL);
    ALTER TABLE server_timeline OWNER TO crm_connection; INSERT INTO server_timeline SELECT * FROM dumped; DROP TABLE dumped`);

// Seen red: by the server alone a dump that goes back to the server that it is of was not seen.
test("a dump that is restored on the same server is seen as well", async () => {
  await query("DELETE FROM crm_stop; UPDATE server_timeline SET seen_at = seen_at - interval '25 hours'");
  await write("before the dump");
  expect(looks()).toEqual([]);
  await restoreDump();
  await write("after the dump");
  expect(looks()).toHaveLength(1);
}, 60_000);

// Seen red: the first note noted the server, and after a dump from before that it was sent again.
test("also where it was taken before the first note", async () => {
  await query("DELETE FROM server_timeline");
  await served(async () => undefined);
  await restoreDump();
  const first = await write("the first");
  await query("DELETE FROM note_write WHERE idempotency_key = 'the first'");
  const again = await write("the first");
  expect([again.crmNoteId, posts(simulator).length]).toEqual([first.crmNoteId, 1]);
}, 60_000);

// Seen red: a lock's code, 55P03, counted as a server that does not say who it is.
test("where it cannot be asked for now whether receipts are missing, the note is looked for", async () => {
  const migrating = new Client({ connectionString: postgres.url.reveal() });
  await migrating.connect();
  await migrating.query("BEGIN; LOCK TABLE server_timeline IN ACCESS EXCLUSIVE MODE");
  expect(await write("while it is locked")).toMatchObject({ state: "WRITTEN" });
  await migrating.end();
  expect(looks()).toHaveLength(1);
}, 60_000);

const doctor = async () => {
  const environment = { ...environmentFor(simulator), DATABASE_URL: postgres.url.reveal() };
  return (await examine(() => readConfig(environment))).map(lineOf).join("\n");
};

// Seen red: all was well, while no write was answered.
test("doctor says that writes wait for a standby which is not there", async () => {
  await query("ALTER SYSTEM SET synchronous_standby_names = 's1'");
  await query("SELECT pg_reload_conf()");
  try {
    expect(await doctor()).toMatch(
      /^fault +database: writes wait for a standby, and none is there {2}-> bring it back/m,
    );
  } finally {
    await query("ALTER SYSTEM RESET synchronous_standby_names");
    await query("SELECT pg_reload_conf()");
  }
  expect(await doctor()).toContain("database: it takes writes");
}, 60_000);

test("a server that does not say who it is counts as the one from before, and doctor says so", async () => {
  expect(await doctor()).not.toContain("that it is another one");
  await query("DELETE FROM crm_stop");
  await query("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC");
  await query("UPDATE server_timeline SET seen_at = now()");
  expect(await doctor()).toContain("the server does not say that it is another one");
  const sessions = () => query("SELECT pid FROM pg_stat_activity WHERE application_name = 'crm-connection'");
  await served(async (service) => {
    const before = await sessions();
    expect(await writeNote(service, { meetingId, idempotencyKey: "unsaid" })).toMatchObject({ state: "WRITTEN" });
    // Seen red: it was asked, and the refusal ended the session.
    expect(await sessions()).toEqual(expect.arrayContaining(before));
  });
  expect(looks()).toEqual([]);
}, 60_000);
