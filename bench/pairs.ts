import { rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { distribute } from "../src/operator/commands";
import { Secret } from "../src/platform/keyring";
import { NO_CRM } from "./api-filled";
import { load, median } from "./api-load";
import { BRIEFING, DEAL_LIST, MEETING_LIST, QUIET_LIST } from "./briefing-queries";
import { ourTarget, signTokens } from "./briefing-targets";
import { serverCpuSeconds } from "./cpu";
import { createOnNodes, dataDirectoriesOf, dropOnNodes, nodesOf } from "./database";
import { column, failed, ratio, say, wholeOption } from "./print";
import { startCrm, useOf } from "./processes";
import { withClient } from "./tenants";

const PARTS = ["briefing", "deals", "meetings", "quiet", "sync"];
const DEALS = { fewest: 100, most: 100_000 };

/** What a checkout's own benchmarks know of its service: how to start it, and how its tables are filled. */
type Version = Pick<typeof import("./processes"), "startService"> &
  Pick<typeof import("./measure"), "measureSync"> &
  Pick<typeof import("./briefing-data"), "fillTenants"> &
  Partial<Pick<typeof import("./briefing-data"), "judgeTenants">>;

/** One of the two that are compared. */
interface Side {
  name: string;
  version: Version;
  /** A PostgreSQL, or a Citus coordinator and its workers. */
  nodes: string[];
  dataDirectories: string[];
}

/** Of one operation. */
interface Cost {
  serviceMs: number;
  postgresMs: number;
  /** On a clock; for briefings the median. */
  ms: number;
}

async function versionOf(checkout: string): Promise<Version> {
  const programs = ["processes.js", "measure.js", "briefing-data.js"];
  const addresses = programs.map((name) => pathToFileURL(resolve(checkout, "dist/bench", name)).href);
  return Object.assign({}, ...(await Promise.all(addresses.map((address) => import(address)))));
}

const postgresMs = (side: Side) =>
  1000 * side.dataDirectories.reduce((sum, directory) => sum + serverCpuSeconds(directory), 0);

/** A database with the side's tables; those of a cluster are distributed. */
async function withTables<T>(side: Side, name: string, work: (databaseUrl: string) => Promise<T>): Promise<T> {
  const databaseUrl = await createOnNodes(side.nodes, name);
  try {
    await (await side.version.startService({ crm: NO_CRM, databaseUrl, roles: "api" })).stop();
    if (side.nodes.length > 1) await distribute(new Secret(databaseUrl));
    return await work(databaseUrl);
  } finally {
    await dropOnNodes(side.nodes, name);
  }
}

/** So often one after the other, each time the other way round. */
async function inPairs(sides: [Side, Side], pairs: number, measure: (side: Side, pair: number) => Promise<Cost>) {
  const names = sides.map(({ name }) => name);
  const heads = ["service", "PostgreSQL", "together", "ms"];
  say([...names, names.join(" : ")].map((name, index) => column(name, index < 2 ? 44 : 26)).join(""));
  say([...heads, ...heads, "CPU", "ms"].map((head, index) => column(head, index < 8 ? 11 : 13)).join(""));
  const ratios: { cpu: number; ms: number }[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    const swapped = pair % 2 === 1;
    const first = await measure(sides[swapped ? 1 : 0], pair);
    const second = await measure(sides[swapped ? 0 : 1], pair);
    const [one, other] = swapped ? [second, first] : [first, second];
    const figures = [one, other].flatMap((cost) => [cost.serviceMs, cost.postgresMs, cpuMs(cost), cost.ms]);
    const columns = figures.map((ms) => column(ms.toFixed(2), 11));
    const both = [ratio(cpuMs(one), cpuMs(other)), ratio(one.ms, other.ms)].map((text) => column(text, 13));
    say([...columns, ...both].join(""));
    ratios.push({ cpu: cpuMs(one) / cpuMs(other), ms: one.ms / other.ms });
  }
  const [cpu, ms] = [median(ratios.map((of) => of.cpu)), median(ratios.map((of) => of.ms))];
  say(`median of ${pairs} pairs, ${names.join(" : ")}: CPU ${cpu.toFixed(2)}, time ${ms.toFixed(2)}`);
}

const cpuMs = (cost: Cost) => cost.serviceMs + cost.postgresMs;

interface Reading {
  name: string;
  query: string;
  tenants: number;
  seconds: number;
  /** Of each record. */
  fields: number;
  /** By whom each meeting is found. */
  attendees: number;
  /** Deals that each meeting could be about. */
  candidates: number;
}

/** Any meeting or board of any tenant, ten at a time, from a service that has been up and warm since before the first pair. */
async function compareReading(sides: [Side, Side], reading: Reading, pairs: number): Promise<void> {
  const { name, tenants, seconds } = reading;
  say(`\n${name}, ${tenants} tenants; ms for an answer`);
  const run = `pairs_${process.pid}_reading`;
  const [one, other] = sides;
  await withTables(one, `${run}_1`, (oneUrl) =>
    withTables(other, `${run}_2`, async (otherUrl) => {
      const [mine, theirs] = await Promise.all([serve(one, oneUrl, reading), serve(other, otherUrl, reading)]);
      try {
        for (const { target } of [mine, theirs]) await load(target, 2 * seconds);
        await inPairs(sides, pairs, async (side) => {
          const { target, pid } = side === one ? mine : theirs;
          const before = [useOf(pid).cpuSeconds * 1000, postgresMs(side)] as const;
          const { perSecond, p50 } = await load(target, seconds);
          const answers = perSecond * seconds;
          const [serviceMs, ofPostgres] = [useOf(pid).cpuSeconds * 1000 - before[0], postgresMs(side) - before[1]];
          return { serviceMs: serviceMs / answers, postgresMs: ofPostgres / answers, ms: p50 };
        });
      } finally {
        await Promise.all([mine.stop(), theirs.stop()]);
      }
    }),
  );
}

const WITH_FIELDS = (table: string) => `UPDATE ${table} SET custom_fields = (
  SELECT jsonb_object_agg(md5(g::text) || left(md5(g::text), 8), 'What somebody wrote ' || g) FROM generate_series(1, $1::int) g)`;
const FOUND_BY = `UPDATE meeting SET search_text = (
  SELECT string_agg('first.last' || g || '@buyer.example' || E'\\nfirst last', E'\\n') FROM generate_series(1, $1::int) g)`;
const COULD_BE = `UPDATE meeting_match SET candidates = (
  SELECT jsonb_agg(jsonb_build_object('dealId', g, 'reason', '2 attendees take part in it; it is open.')) FROM generate_series(1, $1::int) g)`;

/** What makes rows as large as companies have them, each for so many; 0: as they are. */
const enlarging = ({ fields, attendees, candidates }: Reading): [sql: string, count: number][] => [
  ...["deal", "person", "organization"].map((table): [string, number] => [WITH_FIELDS(table), fields]),
  [FOUND_BY, attendees],
  [COULD_BE, candidates],
];

async function serve({ name, version }: Side, databaseUrl: string, reading: Reading) {
  const { query, tenants } = reading;
  await withClient(databaseUrl, (client) => version.fillTenants(client, tenants));
  await version.judgeTenants?.(databaseUrl, { from: 1, to: tenants, times: 1 });
  await withClient(databaseUrl, async (client) => {
    for (const [sql, count] of enlarging(reading)) if (count > 0) await client.query(sql, [count]);
    await client.query("VACUUM ANALYZE");
  });
  const { url, jwtSecret, pid, stop } = await version.startService({ crm: NO_CRM, databaseUrl, roles: "api" });
  return { target: ourTarget(name, url, await signTokens(jwtSecret, tenants), query), pid, stop };
}

/** The first full sync of a company, each time by a new process into a new database. */
async function compareSyncs(sides: [Side, Side], deals: number, pairs: number): Promise<void> {
  say(`\nA full sync of ${deals} deals; ms for a sync`);
  const { crm, stop } = await startCrm(deals);
  const measure = (side: Side, name: string) =>
    withTables(side, name, async (databaseUrl) => {
      const before = postgresMs(side);
      const { cpuSeconds, seconds } = await side.version.measureSync(crm, databaseUrl);
      return { serviceMs: cpuSeconds * 1000, postgresMs: postgresMs(side) - before, ms: seconds * 1000 };
    });
  const run = `pairs_${process.pid}_sync`;
  try {
    // Once unmeasured: the simulator is then as warm for the first as for the last.
    for (const side of sides) await measure(side, `${run}_warm`);
    await inPairs(sides, pairs, (side, pair) => measure(side, `${run}_${pair}`));
  } finally {
    await stop();
  }
}

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      checkout: { type: "string" },
      server: { type: "string" },
      beside: { type: "string" },
      pairs: { type: "string", default: "7" },
      deals: { type: "string", default: "3000" },
      tenants: { type: "string", default: "20" },
      fields: { type: "string", default: "0" },
      attendees: { type: "string", default: "0" },
      candidates: { type: "string", default: "0" },
      seconds: { type: "string", default: "4" },
    },
  });
  const { checkout, server, beside } = values;
  if (!checkout && !(server && beside)) throw new Error("give --checkout, or --server and --beside");
  const unknown = positionals.find((part) => !PARTS.includes(part));
  if (unknown) throw new Error(`there is no part ${unknown}, but ${PARTS.join(", ")}`);
  return {
    parts: positionals.length > 0 ? positionals : PARTS,
    checkout,
    server,
    beside,
    pairs: wholeOption("pairs", values.pairs, 1, 50),
    deals: wholeOption("deals", values.deals, DEALS.fewest, DEALS.most),
    tenants: wholeOption("tenants", values.tenants, 1, 2_000),
    fields: wholeOption("fields", values.fields, 0, 500),
    attendees: wholeOption("attendees", values.attendees, 0, 500),
    candidates: wholeOption("candidates", values.candidates, 0, 5_000),
    seconds: wholeOption("seconds", values.seconds, 1, 60),
  };
}

/** Two versions on one server, or this version on two: what a briefing and a sync cost, in alternating pairs of one run. */
async function main(): Promise<void> {
  const { parts, checkout, server, beside, pairs, deals, ...reading } = options();
  const directory = join(".data", `bench-${process.pid}`);
  const embedded = server ? null : await startEmbeddedPostgres({ directory, durable: true });
  try {
    const serverUrl = server ?? embedded?.url.reveal() ?? "";
    const sideOf = async (name: string, code: string, url: string): Promise<Side> => {
      const nodes = await nodesOf(url);
      return { name, version: await versionOf(code), nodes, dataDirectories: await dataDirectoriesOf(nodes) };
    };
    const sides: [Side, Side] = [
      await sideOf(beside ? "server" : "now", ".", serverUrl),
      await sideOf(beside ? "beside" : "checkout", checkout ?? ".", beside ?? serverUrl),
    ];
    const read = (part: string, name: string, query: string) =>
      parts.includes(part) ? compareReading(sides, { name, query, ...reading }, pairs) : undefined;
    await read("briefing", "The briefing", BRIEFING);
    await read("deals", "20 deals", DEAL_LIST);
    await read("meetings", "20 meetings", MEETING_LIST);
    await read("quiet", "50 quiet deals", QUIET_LIST);
    if (parts.includes("sync")) await compareSyncs(sides, deals, pairs);
  } finally {
    await embedded?.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
