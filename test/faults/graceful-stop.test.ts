import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect as openSocket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { Pool } from "undici";
import WebSocket from "ws";
import { MINUTE_MS } from "../../src/platform/clock";
import { tokenFor } from "../support/actors";
import { RawPeer } from "../support/frames";
import { startProgram } from "../support/processes";
import { connect, noJobIsDue, recordMeeting, syncEnds, until } from "../support/stories";
import { useCrm } from "../support/world";

// Planted and seen red: the listening ended at once, with idle connections cut while clients send on them; sockets cut
// without a code; the pool closed before the requests ended; a worker that takes jobs until the last request has ended.

const STOPS = process.env.DEEP ? 20 : 2;
const CLIENTS = 12;
/** How long clients send before the signal: a random moment of their work. */
const LOAD_MS = 400;

const { world, simulator, database } = useCrm({ deals: 10 });
/** As in production clients are listened to for a second when it is told to stop. */
const environment = () => ({ ...world.environment, LOG_LEVEL: "info", DRAIN_SECONDS: "1" });

interface Load {
  answered: number;
  failed: string[];
  end(): Promise<void>;
}

/** Clients that send one operation after the other on kept connections, until an answer tells them to go elsewhere. */
function sendAlways(url: string, token: string): Load {
  const pool = new Pool(url, { connections: CLIENTS, pipelining: 1 });
  const load: Load = { answered: 0, failed: [], end: async () => undefined };
  const body = JSON.stringify({ query: "{ viewer { userId } connection { state sync { gaps { code } } } }" });
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const send = async (): Promise<boolean> => {
    try {
      const answer = await pool.request({ path: "/graphql", method: "POST", headers, body });
      const text = await answer.body.text();
      if (answer.statusCode === 200 && !text.includes("errors")) load.answered += 1;
      else load.failed.push(`${answer.statusCode} ${text}`);
      return answer.headers.connection !== "close";
    } catch (error) {
      load.failed.push(String(error));
      return false;
    }
  };
  const client = async () => {
    while (await send());
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  load.end = async () => {
    await clients;
    await pool.close();
  };
  return load;
}

test(`${STOPS} times SIGTERM under load: no request fails, sockets learn that the server goes, the process ends with 0`, async () => {
  const token = await tokenFor();
  for (let stop = 1; stop <= STOPS; stop += 1) {
    const program = startProgram("src/main.js", environment());
    const [, url = ""] = await program.says(/"address":"([^"]+)"/);
    const socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
    const closed = new Promise<number>((resolve) => socket.on("close", resolve));
    await new Promise((resolve) => socket.on("open", resolve));
    socket.send(JSON.stringify({ type: "connection_init", payload: { authorization: `Bearer ${token}` } }));
    const load = sendAlways(url, token);
    await until("requests are answered", async () => load.answered > CLIENTS);
    await sleep(LOAD_MS * Math.random());
    program.child.kill("SIGTERM");
    expect(await program.ended).toBe(0);
    await load.end();
    expect([stop, load.failed]).toEqual([stop, []]);
    expect(await closed).toBe(1001);
  }
});

test("while it stops, it is not ready, so that no balancer sends it more", async () => {
  const program = startProgram("src/main.js", { ...environment(), ROLES: "api", DRAIN_SECONDS: "4" });
  const [, url = ""] = await program.says(/"address":"([^"]+)"/);
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  // Half a request: what nobody has begun to send is listened to for some seconds only.
  const peer = new RawPeer(url);
  await peer.opened;
  peer.socket.write("GET /readyz HTTP/1.1\r\n");
  program.child.kill("SIGTERM");
  await program.says(/stopping: requests/);
  peer.socket.write("Host: x\r\n\r\n");
  await peer.told("\r\n\r\n");
  expect(String(peer.received)).toMatch(/^HTTP\/1.1 503 /);
  // As a balancer looks that has not noticed yet.
  await sleep(2_000);
  expect((await fetch(`${url}/readyz`)).status).toBe(503);
  expect(await program.ended).toBe(0);
});

// Seen red: each was waited for like a request in hand, for a minute.
test.each([
  ["a connection that a browser has opened in advance", ""],
  ["half a header", "POST /graphql HTTP/1.1\r\nHost: x\r\n"],
])(
  "%s does not hold up the end",
  async (_what, sent) => {
    const service = await world.startService({ roles: ["api"] });
    const silent = openSocket(Number(new URL(service.url).port), "127.0.0.1");
    await once(silent, "connect");
    silent.on("error", () => undefined).write(sent);
    // A reset is an end too, as where it had not read all that was sent.
    const closed = new Promise((resolve) => silent.once("close", resolve));
    const began = performance.now();
    await service.stop();
    await closed;
    expect(performance.now() - began).toBeLessThan(30_000);
  },
  90_000,
);

test("a worker takes no more jobs while its process finishes a request, which ends well", async () => {
  const { program, service } = await world.startProcess();
  const listens = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN "jobs:insert"%'`;
  await until("the worker hears of jobs", async () => (await database.query(listens)).length === 1);
  const letGo = simulator.control.fail({ match: "/oauth/token", with: { kind: "hang" } });
  const connecting = connect(service, simulator);
  await until("the request is in hand", async () => simulator.log.of("POST", "/oauth/token").length === 1);
  program.child.kill("SIGTERM");
  await until("the worker hears of none", async () => (await database.query(listens)).length === 0);
  letGo();
  expect((await connecting).connection).toBeDefined();
  expect(await program.ended).toBe(0);
  const jobs = await database.query("SELECT 1 FROM graphile_worker.jobs WHERE task_identifier = 'sync_run'");
  expect(jobs).toHaveLength(1);
});

/** A killed process's job that a runner's first sweep waits for, and the next runner for that sweep. */
async function holdUpSweeps(): Promise<() => Promise<unknown>> {
  const [job] = await database.query<{ id: string }>("SELECT id FROM graphile_worker.add_job('nobody does it')");
  await database.query(
    "UPDATE graphile_worker._private_jobs SET locked_at = now() - interval '10 minutes', locked_by = 'gone' WHERE id = $1",
    [job?.id],
  );
  // Where this fails, the database goes with it.
  const holder = new Client({ connectionString: database.url.reveal() }).on("error", () => undefined);
  await holder.connect();
  await holder.query("BEGIN");
  await holder.query("DELETE FROM graphile_worker._private_jobs WHERE id = $1", [job?.id]);
  return () => holder.query("COMMIT").finally(() => holder.end());
}

// Planted and seen red: what begins after the signal is not ended, and takes the run that was given back.
test("told to stop while it starts, it takes no job by what had not begun yet", async () => {
  const api = await world.startService({ roles: ["api"] });
  await connect(api, simulator, { tenant: "starts-and-stops", role: "owner" });
  const goOn = await holdUpSweeps();
  const letGo = simulator.control.fail({ match: "/api/v1/users/me", with: { kind: "hang" } });
  const asked = () => simulator.log.of("GET", "/api/v1/users/me").length;
  const atFirst = asked();
  const program = startProgram("src/main.js", { ...environment(), ROLES: "worker" });
  await until("the first runner has a run", async () => asked() > atFirst);
  program.child.kill("SIGTERM");
  const inHand = "SELECT 1 FROM graphile_worker.jobs WHERE task_identifier = 'sync_run' AND locked_at IS NOT NULL";
  await until("it is given back", async () => (await database.query(inHand)).length === 0);
  const before = asked();
  // A second runner would have so long to take it.
  const end = await holdUpSweeps();
  await goOn();
  const code = await program.ended;
  letGo();
  await end();
  expect([code, asked() - before]).toEqual([0, 0]);
  expect(program.output()).not.toContain("the service is up");
  await api.stop();
});

// Seen red: what was called off was a warning for each kind of each meeting, and the rest of a kind was left out for 22 hours.
test.each([
  ["a meeting is about", 4, "CHANGES"],
  ["is matched", -120, "RECONCILE"],
])("a run that is told to stop while it looks at what %s leaves that to the next one", async (_what, minutes, kind) => {
  const as = { tenant: `looks-${kind}`, role: "owner" } as const;
  const settings = { SYNC_INTERVAL_SECONDS: "0", RECONCILE_INTERVAL_SECONDS: "0" };
  const { program, service } = await world.startProcess(settings);
  await connect(service, simulator, as);
  await syncEnds(service, as);
  const startsAt = new Date(Date.now() + minutes * MINUTE_MS).toISOString();
  await recordMeeting(service, [simulator.company.stories.singleDeal.email], { startsAt }, as);
  await noJobIsDue(database);
  await database.query("UPDATE synced_copy SET probed_at = NULL");
  const where = (query: Readonly<Record<string, string>>) => query.ids !== undefined;
  const letGo = simulator.control.fail({ match: "/api/v2/persons", where, with: { kind: "hang" } });
  const looks = () => simulator.log.of("GET", "/api/v2/persons").filter(({ query }) => where(query)).length;
  const before = looks();
  await service.ask("mutation { requestSync(kind: RECONCILE) { __typename } }", {}, as);
  await until("it looks", async () => looks() > before);
  program.child.kill("SIGTERM");
  expect(await program.ended).toBe(0);
  letGo();
  const state = () =>
    database.query(
      `SELECT m.refreshed_at IS NOT NULL AS refreshed, c.probe_cursor AS cursor, c.probed_at IS NOT NULL AS probed FROM tenant t
       JOIN meeting m ON m.tenant_id = t.id JOIN synced_copy c ON c.tenant_id = t.id WHERE t.external_id = $1`,
      [as.tenant],
    );
  expect(await state()).toEqual([
    { refreshed: false, cursor: minutes > 0 ? null : expect.stringMatching(/^ORG/), probed: false },
  ]);
  expect(program.output().match(/"level":40/g)).toBeNull();
  const next = await world.startProcess(settings);
  await syncEnds(next.service, as);
  expect(await state()).toEqual([{ refreshed: minutes > 0, cursor: null, probed: true }]);
  expect(looks() - before).toBe(minutes > 0 ? 3 : 2);
  next.program.child.kill("SIGTERM");
  await next.program.ended;
});

// Seen red: npm's shell died of the signal, and the service went on with nobody above it; without a shell the signal came
// twice, and the second one cut what was in hand.
test.each([
  ["npm alone is told", (npm: number) => process.kill(npm, "SIGTERM")],
  ["npm and all below it are told", (npm: number) => process.kill(-npm, "SIGINT")],
])(
  "npm start ends the service as the service itself does where %s",
  async (_whom, tell) => {
    const { PATH = "", HOME = "" } = process.env;
    const npm = spawn("npm", ["start"], { detached: true, env: { PATH, HOME, NODE_ENV: "test", ...environment() } });
    let said = "";
    npm.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    await until("it is up", async () => said.includes("the service is up"));
    const url = /"address":"([^"]+)"/.exec(said)?.[1] ?? "";
    const client = new Pool(url, { connections: 1 });
    const isUp = () => client.request({ path: "/healthz", method: "GET" }).then(({ body }) => body.text());
    expect(await isUp()).toContain("ok");
    const toldAt = performance.now();
    tell(npm.pid ?? 0);
    // stdout is closed by the last of them.
    await once(npm.stdout, "close");
    // It listens for a second first.
    expect(performance.now() - toldAt).toBeGreaterThan(900);
    await expect(isUp()).rejects.toThrow();
    await client.close();
  },
  60_000,
);
