import "reflect-metadata";
import { once } from "node:events";
import { systemClock } from "../../../src/platform/clock";
import { readConfig } from "../../../src/platform/config";
import { readUntilLow, startSpender } from "../budgets";

/** How many pages one process read. */
export interface SpenderReport {
  pages: number;
}

/**
 * Two runs of one process, of the tenants' copies in COPIES, that read pages until their company's budget refuses. Says
 * `ready`, waits for SIGUSR2 so that processes begin together, and prints a SpenderReport.
 */
async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const copies = JSON.parse(env.COPIES ?? "[]") as { tenantId: number; copyId: number }[];
  const spenders = await Promise.all(copies.map((copy) => startSpender(readConfig(env), copy, systemClock)));
  const go = once(process, "SIGUSR2");
  process.stdout.write("ready\n");
  await go;
  const pages = await Promise.all(
    spenders.map(async (spender) => {
      const { api, reservation } = spender.api("LISTS");
      const read = await readUntilLow(api, 4);
      await reservation.release();
      return read;
    }),
  );
  await Promise.all(spenders.map((spender) => spender.stop()));
  const report: SpenderReport = { pages: pages.reduce((sum, read) => sum + read, 0) };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

void main(process.env);
