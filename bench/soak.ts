import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { SignJWT } from "jose";
import type { Client } from "pg";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { freePort } from "../src/database/embedded/programs";
import { quantile } from "./api-load";
import { crashPostgres, createDatabase, endServer } from "./database";
import { column, failed, say, whole } from "./print";
import {
  type CrmEnvironment,
  makeKeys,
  type RunningService,
  type ServiceOptions,
  type Started,
  startServer,
  startService,
} from "./processes";
import { Balancer } from "./router";
import { COMPANIES, type Found, found, PREFIX, tell } from "./soak-crm";
import { INTERVAL_MS, type Tenant, Users } from "./soak-load";
import { growthOf, hear, sayHeads, sayPhase, type Watched, watch } from "./soak-watch";
import { connectTenants, names, waitForRuns, withClient } from "./tenants";

/** The objectives of deploy/prometheus/rules.yaml. Two hours are eight intervals, as these of the benchmark. */
const BRIEFING_P99_MS = 500;
const FRESHNESS_SECONDS = (8 * INTERVAL_MS) / 1_000;
/** How much larger a process may be at its end than when it was warm. */
const FLAT = 1.2;
const LOOK_MS = 2_000;
/** How long PostgreSQL is away before it is started again. */
const AWAY_MS = 3_000;
/** A note in hand when its process was killed is looked up for some minutes. */
const SETTLE_MS = 240_000;

type Stop = () => unknown;

interface World {
  crm: Started;
  databaseUrl: string;
  /** Of the embedded PostgreSQL. */
  directory: string;
  balancer: Balancer;
  users: Users;
  watched: Watched;
  live: RunningService[];
  startNext(name: string, checkout?: string): Promise<RunningService>;
}

/** Each process is followed by the next version's: the new one is ready before the old one is told to end. */
async function roll(world: World): Promise<void> {
  for (const [index, old] of [...world.live].entries()) {
    await world.startNext(`${"AB"[index]} deployed`);
    world.live.splice(world.live.indexOf(old), 1);
    await old.stop();
    if (old.child.exitCode !== 0) throw new Error(`a process ended with ${old.child.exitCode ?? old.child.signalCode}`);
  }
}

async function killOne(world: World): Promise<void> {
  const killed = world.live.pop();
  killed?.child.kill("SIGKILL");
  await world.startNext("B after the kill");
}

/** What happens, and for how many seconds the day goes on after it. */
const DAY: { phase: string; seconds: number; happens?: (world: World) => Promise<unknown> }[] = [
  { phase: "steady", seconds: 40 },
  { phase: "CRM away", seconds: 10, happens: (world) => tell(world.crm, { kind: "outage" }) },
  { phase: "CRM back", seconds: 15, happens: (world) => tell(world.crm, { kind: "mend" }) },
  { phase: "rolling restart", seconds: 15, happens: roll },
  { phase: "kill -9 of one", seconds: 20, happens: killOne },
  {
    phase: "PostgreSQL killed",
    seconds: 15,
    happens: (world) => crashPostgres(world.directory, world.databaseUrl, AWAY_MS),
  },
  { phase: "recovered", seconds: 50 },
];

/** Requests may fail by what is killed here. */
const KILLS: ReadonlySet<string> = new Set(["kill -9 of one", "PostgreSQL killed"]);

async function liveThroughDay(world: World): Promise<void> {
  sayHeads();
  for (const { phase, seconds, happens } of DAY) {
    const began = performance.now();
    world.users.phase = phase;
    await happens?.(world);
    await sleep(seconds * 1_000);
    sayPhase(world, phase, began);
  }
}

/** Waits for the outcome of each note, then for a sync of each tenant that began after that. */
async function settle(world: World): Promise<void> {
  const { users, databaseUrl } = world;
  const began = performance.now();
  users.phase = "settling";
  users.rest();
  await tell(world.crm, { kind: "rest" });
  const until = began + SETTLE_MS;
  while ([...users.notes.values()].includes(false) && performance.now() < until) await sleep(LOOK_MS);
  users.endSyncs();
  await withClient(databaseUrl, async (client) => {
    await untilIdle(client, until + SETTLE_MS);
    for (let tenant = 0; tenant < COMPANIES; tenant += 1) await users.askSync(tenant);
    await untilIdle(client, until + SETTLE_MS);
  });
  sayPhase(world, users.phase, began);
}

async function untilIdle(client: Client, until: number): Promise<void> {
  const open = "SELECT count(*)::int AS runs FROM sync_run WHERE finished_at IS NULL";
  while (performance.now() < until) {
    const { rows } = await client.query<{ runs: number }>(open);
    if (rows[0]?.runs === 0) return;
    await sleep(LOOK_MS);
  }
}

type Line = [what: string, is: string, wanted: string, held: boolean];

/** @returns whether every objective was held */
function report({ users, watched }: World, { equal, lost, doubled, unsettled }: Found, growth: number): boolean {
  const briefings = [...users.briefings.values()].flat().sort((a, b) => a - b);
  const [p50, p99] = [quantile(briefings, 0.5), quantile(briefings, 0.99)];
  const oldestSeconds = watched.oldest.size > 0 ? Math.max(...watched.oldest.values()) : Number.POSITIVE_INFINITY;
  const failuresIn = (phase: string) => users.countsOf(phase).failed + users.countsOf(phase).away;
  const alive = [...users.phases.keys()].filter((phase) => !KILLS.has(phase));
  const none = (what: string, count: number): Line => [what, whole(count), "0", count === 0];
  const within = (what: string, value: number, most: number, unit: string, digits = 0): Line => {
    return [what, `${value.toFixed(digits)}${unit}`, `${most}${unit}`, value <= most];
  };
  const lines: Line[] = [
    none("failed requests in the rolling restart", failuresIn("rolling restart")),
    none(
      "failed requests where nothing was killed",
      alive.reduce((sum, phase) => sum + failuresIn(phase), 0),
    ),
    within(`briefings, p99 (p50: ${p50.toFixed(0)} ms)`, p99, BRIEFING_P99_MS, " ms"),
    within("oldest watermark", oldestSeconds, FRESHNESS_SECONDS, " s"),
    none(`notes lost, of ${whole(users.notes.size)}`, lost),
    none("notes doubled", doubled),
    none("notes not settled", unsettled),
    none(`copies that differ from their CRM, of ${COMPANIES}`, COMPANIES - equal),
    none("companies short of tokens", watched.mostShort),
    none("jobs given up", watched.givenUp),
    within("memory at the end : when warm", growth, FLAT, "", 2),
  ];
  say();
  for (const [what, is, wanted, held] of lines) {
    say(`${what.padEnd(42)}${column(is, 16)}${column(wanted, 10)}  ${held ? "held" : "MISSED"}`);
  }
  say(`${whole(users.progress)} results of subscriptions, ${whole(users.reconnects)} sockets opened again`);
  if (users.failures.size > 0) say(`failures: ${users.told()}`);
  for (const [line, times] of watched.errors) say(`logged ${times} x ${line}`);
  return lines.every(([, , , held]) => held);
}

/** Another checkout's built service is the version from which this one is deployed. */
const OPTIONS = { checkout: { type: "string", default: "." } } as const;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS });
  const directory = join(".data", `soak-${process.pid}`);
  const stops: Stop[] = [() => rmSync(directory, { recursive: true, force: true })];
  try {
    const world = await prepare(directory, values.checkout, stops);
    const watching = setInterval(() => void watch(world.watched, world.users.phase), LOOK_MS);
    stops.push(() => clearInterval(watching));
    stops.push(() => world.users.end());
    await world.users.begin();
    await liveThroughDay(world);
    await settle(world);
    world.users.end();
    clearInterval(watching);
    const left = await found(world.crm, world.databaseUrl, [...world.users.notes.keys()]);
    if (!report(world, left, growthOf(world.watched))) process.exitCode = 1;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

function tenantsOf(jwtSecret: string, people: readonly string[]): Promise<Tenant[]> {
  const key = new TextEncoder().encode(jwtSecret);
  const signed = people.map(async (email, company) => {
    const tenant = `${PREFIX}${company}`;
    const token = new SignJWT({ tenant, role: "admin", plan: "sales" }).setProtectedHeader({ alg: "HS256" });
    return { token: await token.setSubject(`${tenant}-user`).setExpirationTime("1h").sign(key), email };
  });
  return Promise.all(signed);
}

async function startWatched(name: string, options: ServiceOptions, watched: Watched): Promise<RunningService> {
  const port = String(await freePort());
  const service = await startService({ ...options, settings: { METRICS_PORT: port, SYNC_INTERVAL_SECONDS: "60" } });
  hear(service, watched);
  watched.processes.push({ name, service, samples: [], metricsUrl: `http://127.0.0.1:${port}/metrics` });
  return service;
}

async function connectCompanies(crm: Started, service: RunningService, databaseUrl: string): Promise<void> {
  for (const [company, tenant] of names(PREFIX, COMPANIES).entries()) {
    await tell(crm, { kind: "consent", company });
    await connectTenants(service, [tenant]);
  }
  await withClient(databaseUrl, (client) => waitForRuns(client, PREFIX, ({ ended }) => ended >= COMPANIES));
}

/** The CRM, PostgreSQL, the balancer and two processes of the version before; each tenant is connected and read. */
async function prepare(directory: string, checkout: string, stops: Stop[]): Promise<World> {
  const server = await startEmbeddedPostgres({ directory, durable: true });
  stops.push(
    () => endServer(directory),
    () => server.stop(),
  );
  const databaseUrl = await createDatabase(server.url.reveal(), PREFIX);
  const simulated = await startServer("soak-crm.js", {});
  stops.push(() => simulated.stop());
  const app = JSON.parse(simulated.line.slice(0, simulated.line.lastIndexOf("}") + 1)) as CrmEnvironment;
  const crm = { ...app, CRM_BASE_URL: simulated.url, CRM_AUTH_URL: simulated.url };
  const balancer = new Balancer();
  await balancer.start();
  stops.push(() => balancer.stop());
  const keys = makeKeys();
  const watched: Watched = { processes: [], oldest: new Map(), mostShort: 0, givenUp: 0, errors: new Map() };
  const live: RunningService[] = [];
  const startNext = async (name: string, of?: string) => {
    const service = await startWatched(name, { crm, databaseUrl, keys, checkout: of }, watched);
    stops.push(() => service.stop());
    balancer.add(service);
    live.push(service);
    return service;
  };
  await startNext("A", checkout);
  await connectCompanies(simulated, await startNext("B", checkout), databaseUrl);
  const people = await tell<string[]>(simulated, { kind: "people" });
  const users = new Users(balancer.url, await tenantsOf(keys.jwtSecret, people));
  return { crm: simulated, databaseUrl, directory, balancer, users, watched, live, startNext };
}

main().catch(failed);
