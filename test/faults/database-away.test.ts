import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { startSimulator } from "../../simulator";
import { createDataSource } from "../../src/database/data-source";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres";
import { freePort } from "../../src/database/embedded/programs";
import { tokenFor } from "../support/actors";
import { on } from "../support/database";
import { type Gate, openGate } from "../support/gate";
import { type Program, startProgram } from "../support/processes";
import { environmentFor, type GraphQLAnswer, type Service } from "../support/service";
import { subscribe } from "../support/sockets";
import { connect, dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useStarted } from "../support/world";

// Planted and seen red: no listener for errors of idle sessions (the process ends); a listening session that is not
// opened again; a gauge that is 0 before it was read, or as it last was while it cannot be.

const DIRECTORY = `.data/database-away-${process.pid}`;
let postgres: EmbeddedPostgres;
let gate: Gate;
let program: Program;
let service: Service;
let metricsPort: number;

const simulator = useStarted(() => startSimulator({ deals: 10 }));
beforeAll(async () => {
  postgres = await startEmbeddedPostgres({ directory: DIRECTORY, durable: false });
  gate = await openGate(() => Number(new URL(postgres.url.reveal()).port));
  metricsPort = await freePort();
  program = startProgram("src/main.js", {
    ...environmentFor(simulator),
    DATABASE_URL: gate.urlOf(postgres.url).reveal(),
    LOG_LEVEL: "info",
    SYNC_INTERVAL_SECONDS: "0",
    METRICS_PORT: String(metricsPort),
  });
  const address = (await program.says(/"address":"([^"]+)"/))[1] ?? "";
  service = { url: address, ask: (query, variables) => ask(query, variables), stop: async () => undefined };
}, 60_000);
afterAll(async () => {
  program?.child.kill("SIGTERM");
  await program?.ended;
  await gate?.close();
  await postgres?.stop();
  rmSync(DIRECTORY, { recursive: true, force: true });
});

async function ask<T>(query: string, variables: object = {}): Promise<GraphQLAnswer<T>> {
  const answer = await fetch(`${service.url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${await tokenFor()}` },
    body: JSON.stringify({ query, variables }),
  });
  return { status: answer.status, ...((await answer.json()) as Omit<GraphQLAnswer<T>, "status">) };
}

const status = async (path: string) => (await fetch(`${service.url}${path}`)).status;
const SYNC = "mutation { requestSync { ... on SyncRequested { run { id } } ... on Refusal { code } } }";

/** What gauges of what is stored say; those that say nothing are not here. */
async function stored(): Promise<Map<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const lines = text.matchAll(
    /^((?:jobs|crm_companies|crm_tokens_(?:limit|remaining)|crm_writes|sync_oldest|sync_first)\w*) (\S+)$/gm,
  );
  return new Map([...lines].map(([, name = "", value]) => [name, Number(value)]));
}

const QUEUE = ["jobs_waiting", "jobs_oldest_waiting_seconds", "jobs_oldest_in_hand_seconds", "jobs_given_up"];
const QUEUE_AND_WRITES = [...QUEUE, "crm_writes_unsettled"];
const FIRST_LISTS = "sync_first_lists_seconds";
const BUDGETS = ["crm_companies_short", "crm_tokens_limit", "crm_tokens_remaining"];

test("before a first sync nothing is said of freshness, and afterwards how old the oldest list is", async () => {
  expect([...(await stored()).keys()].sort()).toEqual([...QUEUE_AND_WRITES, ...BUDGETS, FIRST_LISTS].sort());
  await connect(service, simulator);
  await syncEnds(service);
  expect((await stored()).has("sync_oldest_watermark_seconds")).toBe(false);
  // By request only, as here, no age is too much; the schedule's is told.
  await inDatabase("UPDATE connection SET next_sync_at = now() + interval '30 minutes'");
  const age = (await stored()).get("sync_oldest_watermark_seconds");
  expect(age).toBeGreaterThan(0);
  expect(age).toBeLessThan(600);
}, 60_000);

test("the database goes away and comes back: no exit, clear answers meanwhile, and work goes on by itself", async () => {
  const watching = await subscribe<object>(service.url, "subscription { connectionStatusChanged { state } }");
  await until("the present state arrives", async () => watching.results.length > 0);
  await postgres.stop();
  await until("it is not ready", async () => (await status("/readyz")) === 503);
  expect(await status("/healthz")).toBe(200);
  expect([...(await stored())]).toEqual([]);
  const { errors } = await ask("{ connection { state } }");
  expect(errors).toEqual([expect.objectContaining({ extensions: { code: "TEMPORARILY_UNAVAILABLE" } })]);
  postgres = await startEmbeddedPostgres({ directory: DIRECTORY, durable: false });
  await until("it is ready again", async () => (await status("/readyz")) === 200);
  expect((await stored()).size).toBe(QUEUE_AND_WRITES.length + BUDGETS.length + 2);
  await until("a sync can be asked for", async () => !(await ask(SYNC)).errors);
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
  expect(dataOf(await ask("mutation { disconnect { __typename } }"))).toEqual({
    disconnect: { __typename: "DisconnectSuccess" },
  });
  await until("the subscriber sees the change", async () => JSON.stringify(watching.results).includes("NOT_CONNECTED"));
  await watching.end();
  expect(program.child.exitCode).toBeNull();
}, 90_000);

/** As an operator would before a restore in place, and after it. */
async function rename(from: string, to: string): Promise<void> {
  const beside = postgres.url.reveal().replace(/postgres$/, "template1");
  await on(beside, `ALTER DATABASE ${from} ALLOW_CONNECTIONS false`);
  await on(beside, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${from}'`);
  await on(beside, `ALTER DATABASE ${from} RENAME TO ${to}`);
  await on(beside, `ALTER DATABASE ${to} ALLOW_CONNECTIONS true`);
}
const inDatabase = (sql: string) => on(postgres.url.reveal(), sql);
const AWAY: Record<string, [goes: () => Promise<unknown>, comes: () => Promise<unknown>]> = {
  restarted: [
    () => postgres.stop(),
    async () => {
      postgres = await startEmbeddedPostgres({ directory: DIRECTORY, durable: false });
    },
  ],
  "away for a restore": [() => rename("postgres", "aside"), () => rename("aside", "postgres")],
  "restored, and has no tables yet": [
    () => inDatabase("ALTER TABLE credential RENAME TO aside"),
    () => inDatabase("ALTER TABLE aside RENAME TO credential"),
  ],
};

// Seen red with three tries at once: whose token was renewed at that moment had to authorize again. The restores: seen red
// where only a server that is away was waited for.
test.each(Object.keys(AWAY))(
  "a token that the CRM renews while the database is %s is stored when it is back",
  async (how) => {
    const [goes, comes] = AWAY[how] ?? [];
    expect(await connect(service, simulator)).toHaveProperty("connection");
    await syncEnds(service);
    await inDatabase("UPDATE credential SET access_token_asked_at = now() - interval '1 hour'");
    const letGo = simulator.control.fail({ match: "/oauth/token", times: 1, with: { kind: "hang" } });
    const asked = () => simulator.log.of("POST", "/oauth/token").length;
    const before = asked();
    await ask(SYNC);
    await until("the CRM is asked", async () => asked() > before);
    const said = program.output().length;
    await goes?.();
    letGo();
    const LINE = "a renewed token could not be stored yet";
    await until("it is told", async () => program.output().slice(said).includes(LINE));
    await sleep(1_000);
    await comes?.();
    await until("it is ready again", async () => (await status("/readyz")) === 200);
    await until("a sync can be asked for", async () => !(await ask(SYNC)).errors);
    expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
    expect(asked()).toBe(before + 1);
    await ask("mutation { disconnect { __typename } }");
  },
  90_000,
);

// Seen red with a database that is set to commit before it has written: a receipt was lost with the crash, and its note sent twice.
test("a database that is killed has what it has committed for the service, whatever it is set to", async () => {
  const client = new Client({ connectionString: postgres.url.reveal() });
  await client.connect();
  await client.query("ALTER SYSTEM SET wal_writer_delay = '10s'");
  await client.query("SELECT pg_reload_conf()");
  const { rows } = await client.query<{ pid: number; off: string }>(
    "SELECT pid, current_setting('synchronous_commit') AS off FROM pg_stat_activity",
  );
  expect(rows[0]?.off).toBe("off");
  const parent = Number(readFileSync(`${DIRECTORY}/data/postmaster.pid`, "utf8").split("\n")[0]);
  client.on("error", () => undefined);
  const recorded = await recordMeeting(service, ["ada@buyer.example"]);
  for (const pid of [parent, ...rows.map(({ pid }) => pid)]) process.kill(pid, "SIGKILL");
  await postgres.stop();
  postgres = await startEmbeddedPostgres({ directory: DIRECTORY, durable: false });
  await until("it is ready again", async () => (await status("/readyz")) === 200);
  const held = dataOf(await ask<{ meetings: { nodes: object[] } }>("{ meetings(first: 5) { nodes { id } } }"));
  expect(held.meetings.nodes).toEqual([{ id: recorded.id }]);
}, 90_000);

// Seen red: metrics waited for each of their statements, a minute and more, and whoever asks by them whether a worker
// lives ended it; the end waited for sessions that nobody ends; a query in a session that was open had no answer at all.
test("a database that is silent holds up neither what is asked of the process itself nor its end", async () => {
  await stored();
  gate.silence();
  const askedAt = performance.now();
  expect([...(await stored())]).toEqual([]);
  expect(performance.now() - askedAt).toBeLessThan(3_000);
  expect(await status("/healthz")).toBe(200);
  const { errors } = await ask("{ connection { state } }");
  expect(["DEADLINE_EXCEEDED", "TEMPORARILY_UNAVAILABLE"]).toContain(errors?.[0]?.extensions?.code);
  expect(performance.now() - askedAt).toBeLessThan(30_000);
  const toldAt = performance.now();
  program.child.kill("SIGTERM");
  await program.ended;
  expect(performance.now() - toldAt).toBeLessThan(75_000);
}, 120_000);

/** As a server that goes down ends a session. */
const LAST_WORDS = "SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
const READY = "Z\0\0\0\x05I";

// Seen red: two processes of three ended when the database was restarted under load.
test("a session that is ended in the breath that says it is ready ends no process", async () => {
  let isGoing = false;
  const ending = `E\0\0\0${String.fromCharCode(LAST_WORDS.length + 4)}${LAST_WORDS}`;
  const answer = (said: string) => (isGoing && said.endsWith(READY) ? said + ending : said);
  const dying = await openGate(() => Number(new URL(postgres.url.reveal()).port), undefined, answer);
  const dataSource = await createDataSource({ url: dying.urlOf(postgres.url), entities: [] }).initialize();
  isGoing = true;
  const asked = Array.from({ length: 5 }, () => dataSource.query("SELECT 1"));
  const ends = (await Promise.allSettled(asked)).map(({ status }) => status);
  expect(ends).toContain("rejected");
  isGoing = false;
  expect(await dataSource.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  await dataSource.destroy();
  await dying.close();
});
