import { Client } from "pg";
import { Api } from "../demo/api";
import { connect } from "../demo/consent";
import { type CrmEnvironment, type ProcessUse, runToEnd, startCrm, startService, useOf } from "./processes";
import type { RawReading } from "./raw-reader";
import { type SyncFigures, watchSync } from "./watch-sync";

export interface Measured extends SyncFigures, ProcessUse {
  deals: number;
  /** Records that the lists held, and participants. */
  records: number;
  requests: number;
  liveHeapBytes: number;
  raw: RawReading;
}

/** A company of `deals` deals, a database and processes of its own: nothing is warm from a measurement before. */
export async function measure(deals: number, serverUrl: string): Promise<Measured> {
  const { crm, stop } = await startCrm(deals);
  try {
    // Once unmeasured: the simulator is then as warm for the service as for the raw limit after it.
    await runToEnd("raw-reader.js", crm);
    const sync = await measureSync(crm, await createDatabase(serverUrl, `sync_${deals}`));
    const raw = JSON.parse(await runToEnd("raw-reader.js", crm)) as RawReading;
    const total = (of: (step: SyncFigures["steps"][number]) => number) =>
      sync.steps.reduce((sum, step) => sum + of(step), 0);
    return {
      deals,
      ...sync,
      records: total((step) => (step.resource === "DEAL_PARTICIPANTS" ? step.written : step.fetched)),
      requests: total((step) => step.requests),
      raw,
    };
  } finally {
    await stop();
  }
}

async function measureSync(
  crm: CrmEnvironment,
  databaseUrl: string,
): Promise<SyncFigures & ProcessUse & { liveHeapBytes: number }> {
  const service = await startService(crm, databaseUrl);
  try {
    const api = await Api.signIn(service.url, service.jwtSecret);
    const before = useOf(service.pid);
    const [figures] = await Promise.all([watchSync(databaseUrl), connect(api)]);
    const after = useOf(service.pid);
    return {
      ...figures,
      peakBytes: after.peakBytes,
      cpuSeconds: after.cpuSeconds - before.cpuSeconds,
      liveHeapBytes: await service.liveHeap(),
    };
  } finally {
    await service.stop();
  }
}

async function createDatabase(serverUrl: string, name: string): Promise<string> {
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(serverUrl);
  url.pathname = name;
  return url.href;
}
