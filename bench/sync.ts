import { rmSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { type Measured, measure } from "./measure";

const FEWEST_DEALS = 100;
const MOST_DEALS = 100_000;
/** The company that memory is compared with is this much smaller. */
const SMALLER = 10;

const say = (line = "") => process.stdout.write(`${line}\n`);
const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(0)} MB`;
const rate = (count: number, seconds: number) => Math.round(count / seconds).toLocaleString("en-US");
const ratio = (one: number, other: number) => (one / other).toFixed(2);

function show({ deals, seconds, records, requests, raw, steps, ...service }: Measured): void {
  say(`\n${deals.toLocaleString("en-US")} deals`);
  say(`  records   ${records.toLocaleString("en-US")} in ${seconds.toFixed(2)} s: ${rate(records, seconds)} a second`);
  say(`  requests  ${requests.toLocaleString("en-US")}: ${rate(requests, seconds)} a second`);
  say(`  service   ${service.cpuSeconds.toFixed(2)} s CPU, peak RSS ${megabytes(service.peakBytes)}`);
  say(`            live heap after the sync ${megabytes(service.liveHeapBytes)}`);
  say(`  raw limit ${raw.requests.toLocaleString("en-US")} requests in ${raw.seconds.toFixed(2)} s`);
  say(`            ${raw.cpuSeconds.toFixed(2)} s CPU, peak RSS ${megabytes(raw.peakBytes)}`);
  say(`  sync : raw limit  ${ratio(seconds, raw.seconds)}`);
  say(`  ${"step".padEnd(20)}${"seconds".padStart(9)}${"fetched".padStart(10)}${"written".padStart(10)}`);
  for (const step of steps) {
    const columns = [step.seconds.toFixed(2).padStart(9), ...[step.fetched, step.written].map(column)];
    say(`  ${step.resource.padEnd(20)}${columns.join("")}`);
  }
}

const column = (count: number) => count.toLocaleString("en-US").padStart(10);

function dealsFrom(args: string[]): number {
  const { values } = parseArgs({ args, options: { deals: { type: "string", default: "10000" } } });
  const deals = Number(values.deals);
  if (!Number.isInteger(deals) || deals < FEWEST_DEALS || deals > MOST_DEALS) {
    throw new Error(`--deals must be a whole number from ${FEWEST_DEALS} to ${MOST_DEALS}`);
  }
  return deals;
}

async function main(): Promise<void> {
  const deals = dealsFrom(process.argv.slice(2));
  const directory = join(".data", `bench-${process.pid}`);
  const stops = [() => rmSync(directory, { recursive: true, force: true })] as (() => Promise<void> | void)[];
  try {
    const postgres = await startEmbeddedPostgres({ directory, durable: true });
    stops.push(() => postgres.stop());
    say(`Full sync of a simulated CRM: Node ${process.versions.node}, ${cpus().length} cores, durable PostgreSQL`);
    const small = await measure(Math.ceil(deals / SMALLER), postgres.url.reveal());
    show(small);
    const large = await measure(deals, postgres.url.reveal());
    show(large);
    say(`\nMemory, ${deals.toLocaleString("en-US")} : ${small.deals.toLocaleString("en-US")} deals`);
    say(`  peak RSS   ${ratio(large.peakBytes, small.peakBytes)}`);
    say(`  live heap  ${ratio(large.liveHeapBytes, small.liveHeapBytes)}`);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`\nThe benchmark failed: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
