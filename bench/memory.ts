import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { createDatabase } from "./database";
import { measureSync } from "./measure";
import { column, failed, megabytes, ratio, say, whole, wholeOption } from "./print";
import { startCrm } from "./processes";

const MOST_DEALS = 100_000;

interface Memory {
  deals: number;
  peakBytes: number;
  liveHeapBytes: number;
}

async function measure(deals: number, serverUrl: string, flags: readonly string[]): Promise<Memory> {
  const { crm, stop } = await startCrm(deals);
  try {
    const database = await createDatabase(serverUrl, `memory_${deals}`);
    const { steps, seconds, peakBytes, liveHeapBytes } = await measureSync(crm, database, { flags });
    const records = steps.reduce((sum, { resource, fetched, written }) => {
      return sum + (resource === "DEAL_PARTICIPANTS" ? written : fetched);
    }, 0);
    const figures = [whole(deals), whole(records), seconds.toFixed(1), megabytes(peakBytes), megabytes(liveHeapBytes)];
    say(figures.map((figure) => column(figure, 12)).join(""));
    return { deals, peakBytes, liveHeapBytes };
  } finally {
    await stop();
  }
}

/** First syncs of companies of several sizes, each by a new process: what grows with the company? */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { deals: { type: "string", default: "1600,16000" }, flags: { type: "string", default: "" } },
  });
  const sizes = values.deals.split(",").map((deals) => wholeOption("deals", deals, 100, MOST_DEALS));
  const directory = join(".data", `bench-${process.pid}`);
  const postgres = await startEmbeddedPostgres({ directory, durable: true });
  try {
    say(["deals", "records", "seconds", "peak RSS", "live heap"].map((name) => column(name, 12)).join(""));
    const measured: Memory[] = [];
    for (const deals of sizes) {
      measured.push(await measure(deals, postgres.url.reveal(), values.flags.split(" ").filter(Boolean)));
    }
    const [first, last] = [measured[0], measured.at(-1)];
    if (!first || !last) return;
    say(`${whole(last.deals)} : ${whole(first.deals)} deals`);
    say(`  peak RSS   ${ratio(last.peakBytes, first.peakBytes)}`);
    say(`  live heap  ${ratio(last.liveHeapBytes, first.liveHeapBytes)}`);
  } finally {
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

main().catch(failed);
