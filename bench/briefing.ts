import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { type Load, load, median, type Target } from "./api-load";
import { onNode24 } from "./api-peers";
import { fillTenants, RECORDS_OF_TENANT } from "./briefing-data";
import { prepareForGraphile } from "./briefing-graphile";
import { BRIEFING, QUIET_LIST } from "./briefing-queries";
import { graphileTarget, limitTarget, ourTarget, signTokens } from "./briefing-targets";
import { postgresCpuSeconds } from "./cpu";
import { createDatabase } from "./database";
import { column, ratio, say, whole, wholeOption } from "./print";
import { type CrmEnvironment, type RunningService, startServer, startService, useOf } from "./processes";
import { withClient } from "./tenants";

type Stop = () => Promise<void> | void;

/** No CRM is asked: all records are there. */
const NO_CRM: CrmEnvironment = {
  CRM_BASE_URL: "http://127.0.0.1:9",
  CRM_AUTH_URL: "http://127.0.0.1:9",
  CRM_CLIENT_ID: "none",
  CRM_CLIENT_SECRET: "none",
  CRM_REDIRECT_URL: "http://127.0.0.1:9/callback",
};

/** A server to be measured, and its process. */
interface Measured extends Target {
  pid: number;
}

interface Figures extends Load {
  serverCpuMs: number;
  postgresCpuMs: number;
}

interface Options {
  seconds: number;
  rounds: number;
  directory: string;
}

/** Each server is warmed up, and then all of them are measured in turn, so often. @returns the medians of each */
async function measure(servers: readonly Measured[], { seconds, rounds, directory }: Options): Promise<Figures[]> {
  for (const server of servers) await load(server, Math.max(2, seconds / 2));
  const found = servers.map((): Figures[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, server] of servers.entries()) {
      const before = [useOf(server.pid).cpuSeconds, postgresCpuSeconds(directory)] as const;
      const loaded = await load(server, seconds);
      const answers = loaded.perSecond * seconds;
      found[index]?.push({
        ...loaded,
        serverCpuMs: (1000 * (useOf(server.pid).cpuSeconds - before[0])) / answers,
        postgresCpuMs: (1000 * (postgresCpuSeconds(directory) - before[1])) / answers,
      });
    }
  }
  return found.map((figures) => medians(figures));
}

function medians(figures: readonly Figures[]): Figures {
  const of = (name: keyof Figures) => median(figures.map((figure) => figure[name]));
  return {
    perSecond: of("perSecond"),
    p50: of("p50"),
    p99: of("p99"),
    serverCpuMs: of("serverCpuMs"),
    postgresCpuMs: of("postgresCpuMs"),
  };
}

function report(title: string, servers: readonly Measured[], figures: readonly Figures[]): void {
  say(`\n${title}`);
  say(
    column("", 26) +
      ["requests/s", "p50 ms", "p99 ms", "CPU ms", "PostgreSQL"].map((name) => column(name, 12)).join(""),
  );
  for (const [index, { name }] of servers.entries()) {
    const { perSecond, p50, p99, serverCpuMs, postgresCpuMs } = figures[index] ?? medians([]);
    const shown = [perSecond, p50, p99, serverCpuMs, postgresCpuMs].map((figure) => column(figure.toFixed(2), 12));
    say(name.padEnd(26) + shown.join(""));
  }
}

/** A filled database and the service on it. */
async function startFilled(serverUrl: string, tenants: number, stops: Stop[], flags: readonly string[] = []) {
  const databaseUrl = await createDatabase(serverUrl, `tenants_${tenants}`);
  const first = await startService({ crm: NO_CRM, databaseUrl, roles: "api" });
  await first.stop();
  const began = performance.now();
  await withClient(databaseUrl, async (client) => {
    await fillTenants(client, tenants);
    await prepareForGraphile(client);
  });
  const took = ((performance.now() - began) / 1000).toFixed(0);
  say(`${whole(tenants)} tenants, ${whole(tenants * RECORDS_OF_TENANT)} records, made in ${took} s`);
  const service = await startService({ crm: NO_CRM, databaseUrl, roles: "api", flags });
  stops.push(() => service.stop());
  return { databaseUrl, service, tokens: await signTokens(service.jwtSecret, tenants) };
}

const ours = (name: string, service: RunningService, tokens: readonly string[], query: string): Measured => ({
  ...ourTarget(name, service.url, tokens, query),
  pid: service.pid,
});

async function beside(
  serverUrl: string,
  tenants: number,
  few: number,
  options: Options,
  stops: Stop[],
  flags: string[],
) {
  const many = await startFilled(serverUrl, tenants, stops, flags);
  const small = await startFilled(serverUrl, few, stops);
  const environment = { DATABASE_URL: many.databaseUrl };
  const graphile = await startServer("briefing-graphile.js", environment);
  const limit = await startServer("briefing-limit.js", environment);
  stops.push(graphile.stop, limit.stop);
  for (const [kind, query] of [
    ["briefing", BRIEFING],
    ["quiet", QUIET_LIST],
  ] as const) {
    const servers: Measured[] = [
      ours("the service", many.service, many.tokens, query),
      ours(`the service, ${few} tenants`, small.service, small.tokens, query),
      { ...graphileTarget(graphile.url, tenants, kind), pid: graphile.pid },
      { ...limitTarget(limit.url, tenants, kind), pid: limit.pid },
    ];
    const figures = await measure(servers, options);
    report(kind === "briefing" ? "The briefing" : "50 quiet deals", servers, figures);
    const [service, smaller, peer, bare] = figures;
    if (!service || !smaller || !peer || !bare) return;
    say(`  service : PostGraphile            ${ratio(service.perSecond, peer.perSecond)}`);
    say(`  service : hand-written            ${ratio(service.perSecond, bare.perSecond)}`);
    say(`  p50, ${tenants} : ${few} tenants       ${ratio(service.p50, smaller.p50)}`);
    say(`  p99, ${tenants} : ${few} tenants       ${ratio(service.p99, smaller.p99)}`);
  }
}

/** Answers a second on 1,000,000 records, beside PostGraphile and beside a server that can do nothing else. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      tenants: { type: "string", default: "1000" },
      few: { type: "string", default: "10" },
      seconds: { type: "string", default: "5" },
      rounds: { type: "string", default: "3" },
      profile: { type: "string" },
    },
  });
  const number = (name: "tenants" | "few" | "seconds" | "rounds", most: number) =>
    wholeOption(name, values[name], 1, most);
  const directory = join(".data", `bench-${process.pid}`);
  const options = { seconds: number("seconds", 60), rounds: number("rounds", 20), directory };
  const stops: Stop[] = [() => rmSync(directory, { recursive: true, force: true })];
  const flags = values.profile ? ["--cpu-prof", `--cpu-prof-dir=${values.profile}`] : [];
  try {
    const postgres = await startEmbeddedPostgres({ directory, durable: false });
    stops.push(() => postgres.stop());
    await beside(postgres.url.reveal(), number("tenants", 2_000), number("few", 2_000), options, stops, flags);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

onNode24(main);
