import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createFilled, startFilled } from "./api-filled";
import { type Measured, type MeasureOptions, measure, report } from "./api-measure";
import { onNode24 } from "./api-peers";
import { BRIEFING, QUIET_LIST } from "./briefing-queries";
import { graphileTarget, limitTarget, ourTarget } from "./briefing-targets";
import { startRoomyPostgres } from "./database";
import { ratio, say, wholeOption } from "./print";
import { type RunningService, startServer } from "./processes";

type Stop = () => Promise<void> | void;

const ours = (name: string, service: RunningService, tokens: readonly string[], query: string): Measured => ({
  ...ourTarget(name, service.url, tokens, query),
  pid: service.pid,
  child: null,
});

async function beside(
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
      { ...graphileTarget(graphile.url, tenants, kind), pid: graphile.pid, child: null },
      { ...limitTarget(limit.url, tenants, kind), pid: limit.pid, child: null },
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
    const postgres = await startRoomyPostgres(directory);
    stops.push(() => postgres.stop());
    await beside(postgres.url.reveal(), number("tenants", 2_000), number("few", 2_000), options, stops, flags);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

onNode24(main);
