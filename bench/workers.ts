import { rmSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Client } from "pg";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { machineCpuSeconds, postgresCpuSeconds } from "./cpu";
import { createDatabase } from "./database";
import { column, failed, ratio, say, whole, wholeOption } from "./print";
import { makeKeys, type RunningCrm, type ServiceOptions, startCrm, startService, useOf } from "./processes";
import { startRouter } from "./router";
import { connectTenants, names, waitForRuns, withClient } from "./tenants";

type Stop = () => Promise<void> | void;

/** Ends what `work` started, the last first, however it ends. */
async function stopping<T>(work: (stops: Stop[]) => Promise<T>): Promise<T> {
  const stops: Stop[] = [];
  try {
    return await work(stops);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function startRole(stops: Stop[], options: ServiceOptions) {
  const service = await startService(options);
  stops.push(() => service.stop());
  return service;
}

interface Together {
  seconds: number;
  records: number;
  /** CPU seconds from here on. */
  simulator: number;
  postgres: number;
  workers: number[];
  ours: number;
  others: number;
  /** What the host gave to other machines. */
  taken: number;
}

/** All runs wait until the workers are up and idle, and are then due at the same moment. */
const HOLD = "UPDATE graphile_worker._private_jobs SET run_at = now() + interval '1 hour'";
const RELEASE = "UPDATE graphile_worker._private_jobs SET run_at = now()";
const WAKE = "SELECT pg_notify('jobs:insert', json_build_object('r', random(), 'count', $1::int)::text)";
const FIGURES = `
  SELECT extract(epoch FROM max(r.finished_at) - min(r.started_at))::float8 AS seconds,
    (SELECT sum(CASE resource WHEN 'DEAL_PARTICIPANTS' THEN written ELSE fetched END)::int FROM sync_step) AS records
  FROM sync_run r`;

/** Connects the tenants, and measures their first runs with so many workers. */
async function together(crm: RunningCrm, databaseUrl: string, directory: string, tenants: number, workers: number) {
  const keys = makeKeys();
  return stopping(async (stops): Promise<Together> => {
    const api = await startRole(stops, { crm: crm.crm, databaseUrl, keys, roles: "api" });
    await connectTenants(api, names("tenant", tenants));
    return withClient(databaseUrl, async (client) => {
      await client.query(HOLD);
      const pids: number[] = [];
      for (let worker = 0; worker < workers; worker += 1) {
        pids.push((await startRole(stops, { crm: crm.crm, databaseUrl, keys, roles: "worker" })).pid);
      }
      const cpu = () => {
        const { busy, taken } = machineCpuSeconds();
        const ours = [useOf(crm.pid).cpuSeconds, postgresCpuSeconds(directory)];
        return [...ours, busy, taken, ...pids.map((pid) => useOf(pid).cpuSeconds)];
      };
      const before = cpu();
      await client.query(RELEASE);
      await client.query(WAKE, [tenants]);
      await waitForRuns(client, "tenant", ({ ended }) => ended === tenants);
      const used = cpu().map((value, index) => value - (before[index] ?? 0));
      const [simulator = 0, postgres = 0, busy = 0, taken = 0, ...ofWorkers] = used;
      const { seconds, records } = (await client.query<Pick<Together, "seconds" | "records">>(FIGURES)).rows[0] ?? {
        seconds: 0,
        records: 0,
      };
      const ours = simulator + postgres + ofWorkers.reduce((sum, value) => sum + value, 0);
      return { seconds, records, simulator, postgres, workers: ofWorkers, ours, others: busy - ours, taken };
    });
  });
}

async function compareWorkers(serverUrl: string, directory: string, tenants: number, deals: number): Promise<void> {
  say(`\n${tenants} tenants of ${whole(deals)} deals, all due at the same moment; CPU seconds of each`);
  const head = ["seconds", "records/s", "workers", "PostgreSQL", "simulator", "cores in use", "by others", "by host"];
  say(`${"".padEnd(10)}${head.map((name) => column(name, 14)).join("")}`);
  const [one, two] = await stopping(async (stops) => {
    const crm = await startCrm(deals);
    stops.push(crm.stop);
    // Once unmeasured: the simulator is then as warm for one as for the other.
    await together(crm, await createDatabase(serverUrl, "workers_0"), directory, 2, 1);
    const measured: Together[] = [];
    for (const workers of [1, 2]) {
      const database = await createDatabase(serverUrl, `workers_${workers}`);
      const all = await together(crm, database, directory, tenants, workers);
      const columns = [
        all.seconds.toFixed(2),
        whole(all.records / all.seconds),
        all.workers.map((value) => value.toFixed(2)).join(" + "),
        ...[all.postgres, all.simulator].map((value) => value.toFixed(2)),
        ...[all.ours, all.others, all.taken].map((value) => ratio(value, all.seconds)),
      ];
      say(
        `${`${workers} worker${workers > 1 ? "s" : ""}`.padEnd(10)}${columns.map((text) => column(text, 14)).join("")}`,
      );
      measured.push(all);
    }
    return measured;
  });
  if (!one || !two) return;
  const atMost = one.seconds / (two.ours / cpus().length);
  say(
    `two workers are ${ratio(one.seconds, two.seconds)} times as fast; all cores busy with them alone: ${atMost.toFixed(2)}`,
  );
}

const WAITS = `
  SELECT extract(epoch FROM started_at - queued_at)::float8 AS waited,
    extract(epoch FROM finished_at - queued_at)::float8 AS took FROM sync_run
  WHERE tenant_id IN (SELECT id FROM tenant WHERE external_id LIKE $1) ORDER BY waited`;

async function fairness(serverUrl: string, tenants: number, small: number, large: number): Promise<void> {
  say(`\nOne worker, a company of ${whole(large)} deals first, then ${tenants} tenants of ${whole(small)} deals`);
  const keys = makeKeys();
  const databaseUrl = await createDatabase(serverUrl, "fairness");
  await stopping(async (stops) => {
    const [one, other] = [await startCrm(large), await startCrm(small)];
    stops.push(one.stop, other.stop);
    const router = await startRouter(one);
    stops.push(router.stop);
    const crm = { ...one.crm, CRM_BASE_URL: router.url, CRM_AUTH_URL: router.url };
    const api = await startRole(stops, { crm, databaseUrl, keys, roles: "api" });
    await startRole(stops, { crm, databaseUrl, keys, roles: "worker" });
    await withClient(databaseUrl, async (client: Client) => {
      await connectTenants(api, ["large"]);
      await waitForRuns(client, "large", ({ started }) => started === 1);
      router.consentsGoTo(other);
      await connectTenants(api, names("small", tenants));
      await waitForRuns(client, "small", ({ ended }) => ended === tenants);
      const waits = (await client.query<{ waited: number; took: number }>(WAITS, ["small%"])).rows;
      const open = (
        await client.query(
          "SELECT 1 FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'large') AND finished_at IS NULL",
        )
      ).rowCount;
      say(`  waited for a worker: ${waits.map(({ waited }) => waited.toFixed(2)).join(" ")} s`);
      say(`  longest wait ${waits.at(-1)?.waited.toFixed(2)} s (at most 30 is wanted)`);
      say(`  longest from connecting to the end ${Math.max(...waits.map(({ took }) => took)).toFixed(2)} s`);
      say(`  the large company was ${open ? "still syncing" : "done"} when the last of them ended`);
    });
  });
}

async function main(): Promise<void> {
  const text = (fallback: string) => ({ type: "string", default: fallback }) as const;
  const { values } = parseArgs({
    options: { tenants: text("12"), deals: text("300"), small: text("10"), large: text("10000") },
  });
  const tenants = wholeOption("tenants", values.tenants, 2, 200);
  const deals = wholeOption("deals", values.deals, 100, 10_000);
  const small = wholeOption("small", values.small, 1, 200);
  const large = wholeOption("large", values.large, 100, 100_000);
  await stopping(async (stops) => {
    const directory = join(".data", `bench-${process.pid}`);
    stops.push(() => rmSync(directory, { recursive: true, force: true }));
    const postgres = await startEmbeddedPostgres({ directory, durable: true });
    stops.push(() => postgres.stop());
    const url = postgres.url.reveal();
    say(`Many tenants: Node ${process.versions.node}, ${cpus().length} cores for all processes, durable PostgreSQL`);
    await compareWorkers(url, directory, tenants, deals);
    await fairness(url, small, deals, large);
  });
}

main().catch(failed);
