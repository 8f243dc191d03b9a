import { rmSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { onNode24 } from "./api-peers";
import { type Measured, measure, measureUsual } from "./measure";
import { column, megabytes, ratio, say, whole, wholeOption } from "./print";
import type { Reading } from "./reading";

const FEWEST_DEALS = 100;
const MOST_DEALS = 100_000;
/** The company that memory is compared with is this much smaller. */
const SMALLER = 10;

function show({ deals, steps, ...service }: Measured): void {
  say(
    `\n${whole(deals)} deals: ${whole(service.listed)} records of lists and ${whole(service.participants)} participants`,
  );
  say(`  service: ${whole(service.requests)} requests in ${service.seconds.toFixed(2)} s`);
  say(`    ${service.cpuSeconds.toFixed(2)} s CPU, peak RSS ${megabytes(service.peakBytes)}`);
  say(`    live heap after the sync ${megabytes(service.liveHeapBytes)}`);
  say(`  ${"step".padEnd(20)}${column("seconds", 9)}${column("fetched")}${column("written")}`);
  for (const step of steps) {
    const columns = [column(step.seconds.toFixed(2), 9), column(step.fetched), column(step.written)];
    say(`  ${step.resource.padEnd(20)}${columns.join("")}`);
  }
}

const listRate = ({ listed, seconds, participantSeconds }: Reading) => listed / (seconds - participantSeconds);
const participantRate = ({ participants, participantSeconds }: Reading) => participants / participantSeconds;
const rate = ({ listed, participants, seconds }: Reading) => (listed + participants) / seconds;
const RATES = [rate, listRate, participantRate];

function compare(service: Reading, fetched: Reading, copied: Reading, usual: [string, Reading][]): void {
  const readings: [string, Reading][] = [["service", service], ["raw: fetched and copied", copied], ...usual];
  const head = ["seconds", "CPU s", "rows/s", "lists", "participants"];
  say(`\n${"".padEnd(30)}${head.map((name) => column(name, 13)).join("")}`);
  for (const [name, reading] of readings) {
    const times = [reading.seconds.toFixed(2), reading.cpuSeconds.toFixed(2)];
    const columns = [...times, ...RATES.map((of) => of(reading))].map((value) => column(value, 13));
    say(`${name.padEnd(30)}${columns.join("")}`);
  }
  for (const [name, reading] of readings.slice(1)) {
    const ratios = RATES.map((of) => column(ratio(of(service), of(reading)), 13));
    say(`${`service : ${name}`.padEnd(56)}${ratios.join("")}`);
  }
  say(
    `raw, fetched only: ${fetched.seconds.toFixed(2)} s, ${fetched.participantSeconds.toFixed(2)} s for participants`,
  );
}

function options() {
  const { values } = parseArgs({
    options: {
      deals: { type: "string", default: "10000" },
      "peer-deals": { type: "string", default: "1000" },
      profile: { type: "string" },
      warm: { type: "boolean", default: false },
      among: { type: "string", default: "0" },
    },
  });
  return {
    deals: wholeOption("deals", values.deals, FEWEST_DEALS, MOST_DEALS),
    usualDeals: wholeOption("peer-deals", values["peer-deals"], FEWEST_DEALS, MOST_DEALS),
    flags: values.profile ? ["--cpu-prof", `--cpu-prof-dir=${values.profile}`] : [],
    isWarm: values.warm,
    among: wholeOption("among", values.among, 0, 1_000),
  };
}

async function main(): Promise<void> {
  const { deals, usualDeals, ...how } = options();
  const directory = join(".data", `bench-${process.pid}`);
  const stops = [() => rmSync(directory, { recursive: true, force: true })] as (() => Promise<void> | void)[];
  try {
    const postgres = await startEmbeddedPostgres({ directory, durable: true });
    stops.push(() => postgres.stop());
    const url = postgres.url.reveal();
    say(`Full sync of a simulated CRM: Node ${process.versions.node}, ${cpus().length} cores, durable PostgreSQL`);
    const small = await measure(Math.ceil(deals / SMALLER), url);
    show(small);
    const large = await measure(deals, url, how);
    show(large);
    say(`\nMemory, ${whole(deals)} : ${whole(small.deals)} deals`);
    say(`  peak RSS   ${ratio(large.peakBytes, small.peakBytes)}`);
    say(`  live heap  ${ratio(large.liveHeapBytes, small.liveHeapBytes)}`);
    const usual: [string, Reading][] = [];
    for (const lanes of [1, 8]) {
      usual.push([`usual client, ${lanes} at once`, await measureUsual(usualDeals, lanes, url)]);
    }
    compare(large, large.fetched, large.copied, usual);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

onNode24(main);
