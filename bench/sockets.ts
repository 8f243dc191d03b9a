import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Client } from "pg";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { createFilled, startFilled } from "./api-filled";
import { quantile } from "./api-load";
import { failed, say, whole, wholeOption } from "./print";
import type { RunningService } from "./processes";
import type { Arrivals, ClientOptions } from "./sockets-client";

type Stop = () => Promise<void> | void;

const CLIENTS = 2;
const STALLED = 20;
/** Events that are not measured. */
const WARM_UP = 3;
/** After an event, until all that it woke are counted. */
const SETTLE_MS = 500;
const PATIENCE_MS = 20_000;

class Clients {
  readonly #processes: ChildProcess[] = [];

  async open(options: ClientOptions): Promise<void> {
    const client = fork(join(__dirname, "sockets-client.js"), { stdio: "inherit" });
    this.#processes.push(client);
    client.send(options);
    await once(client, "message");
  }

  /** What came since it was asked before. */
  async collect(): Promise<Arrivals> {
    const found = await Promise.all(
      this.#processes.map(async (client) => {
        const answer = once(client, "message");
        client.send("collect");
        return ((await answer) as [Arrivals])[0];
      }),
    );
    return found.flat();
  }

  stop(): void {
    for (const client of this.#processes) client.kill("SIGKILL");
  }
}

const now = () => performance.timeOrigin + performance.now();
const residentBytes = (pid: number) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

/** An event, and how long after it each of the sockets that it wakes was told; and the transactions it cost. */
async function fanOut(client: Client, clients: Clients, expected: number, notify: string) {
  const began = await transactions(client);
  const sent = now();
  await client.query(notify);
  const took: number[] = [];
  while (took.length < expected) {
    if (now() - sent > PATIENCE_MS) throw new Error(`${took.length} of ${expected} sockets were told`);
    await sleep(SETTLE_MS);
    took.push(...(await clients.collect()).map(([, at]) => at - sent));
  }
  return { took, reads: (await transactions(client)) - began };
}

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

async function memory(service: RunningService): Promise<{ heap: number; resident: number }> {
  const heap = await service.liveHeap();
  return { heap, resident: residentBytes(service.pid) };
}

interface Parts {
  client: Client;
  clients: Clients;
  service: RunningService;
  tokens: string[];
  sockets: number;
}

async function openSockets({ clients, service, tokens, sockets }: Parts): Promise<void> {
  const before = await memory(service);
  const began = performance.now();
  const tenants = Array.from({ length: sockets }, (_, index) => index % tokens.length);
  const share = Math.ceil(sockets / CLIENTS);
  const { url } = service;
  await Promise.all(
    Array.from({ length: CLIENTS }, (_, index) =>
      clients.open({ url, tokens, sockets: tenants.slice(index * share, (index + 1) * share), stalled: false }),
    ),
  );
  const took = (performance.now() - began) / 1000;
  const after = await memory(service);
  const each = (what: "heap" | "resident") => ((after[what] - before[what]) / sockets / 1024).toFixed(1);
  say(`${whole(sockets)} sockets of ${whole(tokens.length)} tenants, open in ${took.toFixed(1)} s`);
  say(`memory of a socket: ${each("heap")} KB of live heap, ${each("resident")} KB resident`);
}

async function measureEvents({ client, clients, tokens, sockets }: Parts, events: number): Promise<void> {
  const ofTenant = sockets / tokens.length;
  for (let tenant = 1; tenant <= WARM_UP; tenant += 1) {
    await fanOut(client, clients, ofTenant, `SELECT pg_notify('connection_changed', 'tenant-${tenant}')`);
  }
  const took: number[] = [];
  let reads = 0;
  for (let event = 0; event < events; event += 1) {
    const tenant = `tenant-${(event % tokens.length) + 1}`;
    const found = await fanOut(client, clients, ofTenant, `SELECT pg_notify('connection_changed', '${tenant}')`);
    took.push(...found.took);
    reads += found.reads;
  }
  tell(`${events} events, each to one tenant's ${whole(ofTenant)} sockets`, took);
  say(`  transactions of an event, the benchmark's own ones among them: ${(reads / events).toFixed(1)}`);
  const all = await fanOut(client, clients, sockets, "SELECT pg_notify('crm_stop_changed', '')");
  tell("one event to all sockets", all.took);
}

/** Readers that take nothing more stand among one tenant's others while many events pass. */
async function stallSome({ client, clients, service, tokens, sockets }: Parts, events: number): Promise<void> {
  await clients.open({ url: service.url, tokens, sockets: Array.from({ length: STALLED }, () => 0), stalled: true });
  const before = await memory(service);
  const storm = `DO $$ BEGIN FOR i IN 1..${events} LOOP PERFORM pg_notify('connection_changed', 'tenant-1'); COMMIT;
    PERFORM pg_sleep(0.005); END LOOP; END $$`;
  const began = now();
  await client.query(storm);
  await sleep(SETTLE_MS);
  const passed = (now() - began) / 1000;
  const got = (await clients.collect()).length / (sockets / tokens.length);
  const after = await memory(service);
  say(
    `${STALLED} stalled readers, ${whole(events)} events in ${passed.toFixed(1)} s: each other got ${got.toFixed(0)} messages`,
  );
  say(`  the service's live heap grew by ${((after.heap - before.heap) / 1024).toFixed(0)} KB`);
  const last = await fanOut(
    client,
    clients,
    sockets / tokens.length,
    "SELECT pg_notify('connection_changed', 'tenant-1')",
  );
  tell("  the next event to that tenant", last.took);
}

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
    const { databaseUrl, service, tokens } = await startFilled(
      await createFilled(postgres.url.reveal(), tenants),
      tenants,
    );
    stops.push(service.stop);
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    stops.push(
      () => client.end(),
      () => clients.stop(),
    );
    const parts = { client, clients, service, tokens, sockets: Math.floor(sockets / tenants) * tenants };
    await openSockets(parts);
    await measureEvents(parts, events);
    await stallSome(parts, 50 * events);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

main().catch(failed);
