import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createFilled, createUneven, LARGE, startFilled, TIMES } from "./api-filled";
import { type Figures, type Measured, type MeasureOptions, measure, report } from "./api-measure";
import { onNode24 } from "./api-peers";
import { DEALS_OF_TENANT } from "./briefing-data";
import { BRIEFING, QUIET_LIST } from "./briefing-queries";
import { type Copies, graphileTarget, limitTarget, ourTarget } from "./briefing-targets";
import { startRoomyPostgres } from "./database";
import { ratio, say, whole, wholeOption } from "./print";
import { type RunningService, startServer } from "./processes";

type Stop = () => Promise<void> | void;

const ours = (name: string, service: RunningService, tokens: readonly string[], query: string): Measured => ({
  ...ourTarget(name, service.url, tokens, query),
  pid: service.pid,
  child: null,
});

/** Both peers over one database. As the service does, they keep a statement's plan: to plan it anew takes 5 ms each time. */
async function peersOf(databaseUrl: string, stops: Stop[]) {
  const environment = { DATABASE_URL: databaseUrl, PGOPTIONS: "-c plan_cache_mode=force_generic_plan" };
  const graphile = await startServer("briefing-graphile.js", environment);
  stops.push(graphile.stop);
  const limit = await startServer("briefing-limit.js", environment);
  stops.push(limit.stop);
  const written = (copies: Copies, kind: "briefing" | "quiet" | "quiet-by-index"): Measured => ({
    ...limitTarget(limit.url, copies, kind),
    pid: limit.pid,
    child: null,
  });
  const both = (copies: Copies, kind: "briefing" | "quiet"): Measured[] => [
    { ...graphileTarget(graphile.url, copies, kind), pid: graphile.pid, child: null },
    written(copies, kind),
  ];
  return { both, written };
}

function besidePeers([service, peer, bare]: Figures[]): void {
  if (!service || !peer || !bare) throw new Error("not all servers were measured");
  say(`  service : PostGraphile            ${ratio(service.perSecond, peer.perSecond)}`);
  say(`  service : hand-written            ${ratio(service.perSecond, bare.perSecond)}`);
}

async function ofEqual(
  serverUrl: string,
  tenants: number,
  few: number,
  options: MeasureOptions,
  stops: Stop[],
  flags: string[],
) {
  const many = await startFilled(await createFilled(serverUrl, tenants), tenants, flags);
  const small = await startFilled(await createFilled(serverUrl, few), few);
  stops.push(many.service.stop, small.service.stop);
  const peers = await peersOf(many.databaseUrl, stops);
  for (const [kind, query] of [
    ["briefing", BRIEFING],
    ["quiet", QUIET_LIST],
  ] as const) {
    const servers = [
      ours("the service", many.service, many.tokens, query),
      ...peers.both([1, tenants], kind),
      ours(`the service, ${few} tenants`, small.service, small.tokens, query),
    ];
    const figures = await measure(servers, options);
    report(kind === "briefing" ? "The briefing" : "50 quiet deals", servers, figures);
    besidePeers(figures);
    const [service, , , smaller] = figures;
    if (!service || !smaller) return;
    say(`  p50, ${tenants} : ${few} tenants       ${ratio(service.p50, smaller.p50)}`);
    say(`  p99, ${tenants} : ${few} tenants       ${ratio(service.p99, smaller.p99)}`);
  }
}

/** The board of one large tenant, beside peers that ask the same stored judgement. */
async function ofALarge(serverUrl: string, options: MeasureOptions, stops: Stop[], flags: string[]) {
  const { databaseUrl, service, tokens } = await startFilled(await createUneven(serverUrl), LARGE, flags);
  stops.push(service.stop);
  const peers = await peersOf(databaseUrl, stops);
  const servers = [
    ours("the service", service, tokens.slice(LARGE - 1), QUIET_LIST),
    ...peers.both([LARGE, LARGE], "quiet"),
    peers.written([LARGE, LARGE], "quiet-by-index"),
  ];
  const figures = await measure(servers, options);
  report(`50 quiet deals of ${whole(TIMES * DEALS_OF_TENANT)}`, servers, figures);
  besidePeers(figures);
  const [ofService, , , byIndex] = figures;
  if (ofService && byIndex) say(`  service : hand-written, by index  ${ratio(ofService.perSecond, byIndex.perSecond)}`);
}

/** Answers a second on 1,000,000 records, beside PostGraphile and beside a server that can do nothing else. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      tenants: { type: "string", default: "1000" },
      few: { type: "string", default: "10" },
      seconds: { type: "string", default: "5" },
      rounds: { type: "string", default: "3" },
      large: { type: "boolean", default: false },
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
    const postgres = await startRoomyPostgres(directory);
    stops.push(() => postgres.stop());
    const url = postgres.url.reveal();
    if (!values.large) await ofEqual(url, number("tenants", 2_000), number("few", 2_000), options, stops, flags);
    await ofALarge(url, options, stops, flags);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

onNode24(main, "postgraphile");
