import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Client } from "pg";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { MAX_USER_SOCKETS } from "../src/server/bounds";
import { createFilled, startFilled } from "./api-filled";
import { quantile } from "./api-load";
import { signTokens } from "./briefing-targets";
import { failed, ratio, say, whole, wholeOption } from "./print";
import { type RunningService, startServer, useOf } from "./processes";
import type { Arrivals, ClientOptions, ClientRequest } from "./sockets-client";

type Stop = () => Promise<void> | void;

const CLIENTS = 2;
const STALLED = 20;
/** Events that are not measured. */
const WARM_UP = 3;
/** After an event, until all that it woke are counted. */
const SETTLE_MS = 500;
const EVENTS_TO_ALL = 3;
const PATIENCE_MS = 20_000;
/** Sockets that come and go before any is measured, so that what a process takes once is not counted as theirs. */
const PASSING = 1_000;
const PASSING_ROUNDS = 5;

class Clients {
  readonly #processes: ChildProcess[] = [];

  async open(options: ClientOptions): Promise<void> {
    const client = fork(join(__dirname, "sockets-client.js"), { stdio: "inherit" });
    this.#processes.push(client);
    await ask(client, options);
  }

  /** What came since it was asked before. */
  async collect(): Promise<Arrivals> {
    const found = await Promise.all(this.#processes.map((client) => ask(client, "collect")));
    return (found as Arrivals[]).flat();
  }

  /** So many sockets of the first tenant read nothing more. */
  async stall(count: number): Promise<void> {
    for (const client of this.#processes.slice(0, 1)) await ask(client, count);
  }

  stop(): void {
    for (const client of this.#processes) client.kill("SIGKILL");
  }
}

async function ask(client: ChildProcess, request: ClientRequest): Promise<unknown> {
  const answer = once(client, "message");
  client.send(request);
  return (await answer)[0];
}

const now = () => performance.timeOrigin + performance.now();
const residentBytes = (pid: number) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

interface Told {
  took: number[];
  cpuMs: number;
}

/** An event, how long after it each of the sockets that it wakes was told, and what it cost the process. */
async function fanOut(clients: Clients, pid: number, expected: number, happen: () => unknown): Promise<Told> {
  const cpuBefore = useOf(pid).cpuSeconds;
  const sent = now();
  await happen();
  const took: number[] = [];
  while (took.length < expected) {
    if (now() - sent > PATIENCE_MS) throw new Error(`${took.length} of ${expected} sockets were told`);
    await sleep(SETTLE_MS);
    took.push(...(await clients.collect()).map(([, at]) => at - sent));
  }
  return { took, cpuMs: (useOf(pid).cpuSeconds - cpuBefore) * 1_000 };
}

const notified = ({ client, clients, service }: Parts, expected: number, sql: string) =>
  fanOut(clients, service.pid, expected, () => client.query(sql));

async function transactions(client: Client): Promise<number> {
  await client.query("SELECT pg_stat_force_next_flush()");
  await client.query("SELECT pg_stat_clear_snapshot()");
  const { rows } = await client.query(
    "SELECT xact_commit::int AS n FROM pg_stat_database WHERE datname = current_database()",
  );
  return rows[0].n as number;
}

function tell(what: string, took: readonly number[]): void {
  const sorted = [...took].sort((a, b) => a - b);
  const [p50, p99, last] = [quantile(sorted, 0.5), quantile(sorted, 0.99), sorted.at(-1) ?? 0];
  say(
    `${what}: ${whole(took.length)} messages, p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)}, last ${last.toFixed(0)} ms`,
  );
}

interface Memory {
  heap: number;
  resident: number;
}

async function memory(service: RunningService): Promise<Memory> {
  const heap = await service.liveHeap();
  return { heap, resident: residentBytes(service.pid) };
}

interface Parts {
  client: Client;
  clients: Clients;
  service: RunningService;
  /** Of each user, for each tenant. */
  tokens: string[][];
  tenants: number;
  sockets: number;
}

interface Opened extends Pick<Parts, "tokens" | "tenants"> {
  service: { url: string };
}

async function openSockets(clients: Clients, opened: Opened, sockets: number): Promise<void> {
  const { service, tokens } = opened;
  const tenants = Array.from({ length: sockets }, (_, index) => index % opened.tenants);
  const share = Math.ceil(sockets / CLIENTS);
  await Promise.all(
    Array.from({ length: CLIENTS }, (_, index) =>
      clients.open({ url: service.url, tokens, sockets: tenants.slice(index * share, (index + 1) * share) }),
    ),
  );
}

async function measureOpening(parts: Parts): Promise<void> {
  const { clients, service, tenants, sockets } = parts;
  const fresh = await memory(service);
  for (let round = 0; round < PASSING_ROUNDS; round += 1) {
    const passing = new Clients();
    await openSockets(passing, parts, Math.min(PASSING, sockets));
    passing.stop();
    await sleep(SETTLE_MS);
  }
  const warm = await memory(service);
  const cpuBefore = useOf(service.pid).cpuSeconds;
  const began = performance.now();
  await openSockets(clients, parts, sockets);
  const took = (performance.now() - began) / 1000;
  const cpu = useOf(service.pid).cpuSeconds - cpuBefore;
  const open = await memory(service);
  const each = (what: keyof Memory, base: Memory) => ((open[what] - base[what]) / sockets / 1024).toFixed(1);
  say(
    `${whole(sockets)} sockets of ${whole(tenants)} tenants, open in ${took.toFixed(1)} s, ${cpu.toFixed(1)} s of CPU`,
  );
  say(`memory of a socket, over the process as it started: ${each("heap", fresh)} KB of live heap,`);
  say(`  ${each("resident", fresh)} KB resident; over the process after sockets have come and gone:`);
  say(`  ${each("heap", warm)} KB of live heap, ${each("resident", warm)} KB resident`);
}

const TO_ALL = "SELECT pg_notify('crm_stop_changed', '')";
const wake = (tenant: string) =>
  `SELECT pg_notify('connection_changed', id::text) FROM tenant WHERE external_id = '${tenant}'`;

/** @returns the CPU of an event to all */
async function measureEvents(parts: Parts, events: number): Promise<number> {
  const { tenants, sockets, service } = parts;
  const ofTenant = sockets / tenants;
  const changed = (event: number) => wake(`tenant-${(event % tenants) + 1}`);
  for (let event = 0; event < WARM_UP; event += 1) await notified(parts, ofTenant, changed(event));
  const took: number[] = [];
  let cpuMs = 0;
  const began = await transactions(parts.client);
  for (let event = 0; event < events; event += 1) {
    const found = await notified(parts, ofTenant, changed(event));
    took.push(...found.took);
    cpuMs += found.cpuMs;
  }
  const reads = (await transactions(parts.client)) - began;
  tell(`${events} events, each to one tenant's ${whole(ofTenant)} sockets`, took);
  say(`  CPU of an event: ${(cpuMs / events).toFixed(1)} ms; transactions, the benchmark's own ones among them:`);
  say(`  ${(reads / events).toFixed(1)}`);
  const toAll: number[] = [];
  for (let event = 0; event < EVENTS_TO_ALL; event += 1) {
    const all = await notified(parts, sockets, TO_ALL);
    tell("one event to all sockets", all.took);
    say(`  CPU of the event: ${all.cpuMs.toFixed(0)} ms`);
    toAll.push(all.cpuMs);
  }
  // To watch costs CPU: from here on none is counted.
  await service.longestStall();
  await notified(parts, sockets, TO_ALL);
  const { wallMs, ownMs } = await service.longestStall();
  say(
    `  the longest turn meanwhile, for which all others wait: ${wallMs.toFixed(0)} ms, ${ownMs.toFixed(0)} of own CPU`,
  );
  return mean(toAll);
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The same sockets of a server that does nothing but write. @returns the CPU of an event to all */
async function measureBare({ tokens, sockets }: Parts, events: number): Promise<number> {
  const clients = new Clients();
  const bare = await startServer("sockets-bare.js", {});
  try {
    await openSockets(clients, { service: bare, tokens, tenants: 1 }, sockets);
    const happen = () => bare.child.send("tell");
    for (let event = 0; event < WARM_UP; event += 1) await fanOut(clients, bare.pid, sockets, happen);
    const cpuMs: number[] = [];
    for (let event = 0; event < events; event += 1)
      cpuMs.push((await fanOut(clients, bare.pid, sockets, happen)).cpuMs);
    return mean(cpuMs);
  } finally {
    clients.stop();
    await bare.stop();
  }
}

/** Readers that take nothing more stand among one tenant's others while many events pass. */
async function stallSome(parts: Parts, events: number): Promise<void> {
  const { client, clients, service, tenants, sockets } = parts;
  await clients.stall(STALLED);
  const reading = sockets / tenants - STALLED;
  const before = await memory(service);
  const storm = `DO $$ BEGIN FOR i IN 1..${events} LOOP PERFORM pg_notify('connection_changed', (SELECT id::text FROM tenant WHERE external_id = 'tenant-1')); COMMIT;
    PERFORM pg_sleep(0.005); END LOOP; END $$`;
  const began = now();
  await client.query(storm);
  const passed = (now() - began) / 1000;
  let got = 0;
  for (let more = 1; more > 0; got += more / reading) {
    await sleep(SETTLE_MS);
    more = (await clients.collect()).length;
  }
  const after = await memory(service);
  say(
    `${STALLED} stalled readers, ${whole(events)} events in ${passed.toFixed(1)} s: each other got ${got.toFixed(0)} messages`,
  );
  say(`  the service's live heap grew by ${((after.heap - before.heap) / 1024).toFixed(0)} KB`);
  const last = await notified(parts, reading, wake("tenant-1"));
  tell("  the next event to that tenant", last.took);
}

const tokensOfUsers = (service: RunningService, tenants: number, users: number) =>
  Promise.all(Array.from({ length: users }, (_, user) => signTokens(service.jwtSecret, tenants, `user-${user}`)));

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      sockets: { type: "string", default: "10000" },
      tenants: { type: "string", default: "100" },
      events: { type: "string", default: "20" },
    },
  });
  const number = (name: keyof typeof values, most: number) => wholeOption(name, values[name], 1, most);
  const [sockets, tenants, events] = [number("sockets", 15_000), number("tenants", 1_000), number("events", 1_000)];
  const directory = join(".data", `bench-${process.pid}`);
  const clients = new Clients();
  const stops: Stop[] = [() => rmSync(directory, { recursive: true, force: true })];
  try {
    const postgres = await startEmbeddedPostgres({ directory, durable: false });
    stops.push(() => postgres.stop());
    const { databaseUrl, service } = await startFilled(await createFilled(postgres.url.reveal(), tenants), tenants);
    stops.push(service.stop);
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    stops.push(() => client.end());
    stops.push(() => clients.stop());
    const tokens = await tokensOfUsers(service, tenants, Math.ceil(sockets / tenants / MAX_USER_SOCKETS) + 1);
    const parts = { client, clients, service, tokens, tenants, sockets: Math.floor(sockets / tenants) * tenants };
    await measureOpening(parts);
    const cpuMs = await measureEvents(parts, events);
    await stallSome(parts, 50 * events);
    clients.stop();
    await service.stop();
    const bareMs = await measureBare(parts, EVENTS_TO_ALL);
    say(
      `one event to all, the service : a server that only writes   ${ratio(cpuMs, bareMs)} (${bareMs.toFixed(0)} ms)`,
    );
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

main().catch(failed);
