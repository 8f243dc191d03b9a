import { Api } from "../demo/api";
import { connect } from "../demo/consent";
import { createFilled } from "./api-filled";
import { createDatabase } from "./database";
import { type CrmEnvironment, type ProcessUse, runToEnd, startCrm, startService, useOf } from "./processes";
import type { Reading } from "./reading";
import { connectTenants, waitForRuns, withClient } from "./tenants";
import { type SyncFigures, watchSync } from "./watch-sync";

/** Whose sync is over before the one that is measured begins. */
const WARM_TENANT = "warm";

export interface Measured extends SyncFigures, Reading {
  deals: number;
  liveHeapBytes: number;
  /** The same requests, and every answer is dropped. */
  fetched: Reading;
  /** The same requests, and every answer copied into plain tables. */
  copied: Reading;
}

export interface HowToMeasure {
  /** Node's own, for the service. */
  flags?: readonly string[];
  /** The process has read the company once before, as a service that runs for days has: the compiler has seen its code. */
  isWarm?: boolean;
  /** Companies of 1,000 records that PostgreSQL has analyzed before. */
  among?: number;
}

/** A company of `deals` deals, databases and processes of its own: nothing is warm from a measurement before. */
export async function measure(deals: number, serverUrl: string, how: HowToMeasure = {}): Promise<Measured> {
  const { crm, stop } = await startCrm(deals);
  try {
    // Once unmeasured: the simulator is then as warm for the service as for what it is compared with.
    await read("raw-reader.js", crm);
    const { among = 0 } = how;
    const databaseUrl = among > 0 ? createFilled(serverUrl, among) : createDatabase(serverUrl, `sync_${deals}`);
    const sync = await measureSync(crm, await databaseUrl, how);
    const warm: Record<string, string> = how.isWarm ? { WARM: "1" } : {};
    const fetched = await read("raw-reader.js", crm, undefined, warm);
    const copied = await read("raw-reader.js", crm, await createDatabase(serverUrl, `raw_${deals}`), warm);
    return { deals, ...sync, ...countsOf(sync), fetched, copied };
  } finally {
    await stop();
  }
}

/** The usual client's reading of a company of `deals` deals, with the participants of so many deals at once. */
export async function measureUsual(deals: number, lanes: number, serverUrl: string): Promise<Reading> {
  const { crm, stop } = await startCrm(deals);
  try {
    await read("raw-reader.js", crm);
    const databaseUrl = await createDatabase(serverUrl, `usual_${deals}_${lanes}`);
    return await read("usual-client.js", crm, databaseUrl, { LANES: String(lanes) });
  } finally {
    await stop();
  }
}

async function read(
  program: string,
  crm: CrmEnvironment,
  databaseUrl?: string,
  more: Record<string, string> = {},
): Promise<Reading> {
  const environment = { ...crm, ...(databaseUrl && { DATABASE_URL: databaseUrl }), ...more };
  return JSON.parse(await runToEnd(program, environment)) as Reading;
}

function countsOf({
  steps,
}: SyncFigures): Pick<Reading, "requests" | "listed" | "participants" | "participantSeconds"> {
  const participants = steps.find(({ resource }) => resource === "DEAL_PARTICIPANTS");
  const lists = steps.filter((step) => step !== participants);
  return {
    requests: steps.reduce((sum, step) => sum + step.requests, 0),
    listed: lists.reduce((sum, step) => sum + step.fetched, 0),
    participants: participants?.written ?? 0,
    participantSeconds: participants?.seconds ?? 0,
  };
}

export async function measureSync(
  crm: CrmEnvironment,
  databaseUrl: string,
  { flags = [], isWarm = false }: HowToMeasure = {},
): Promise<SyncFigures & ProcessUse & { liveHeapBytes: number }> {
  const service = await startService({ crm, databaseUrl, flags });
  try {
    if (isWarm) {
      await connectTenants(service, [WARM_TENANT]);
      await withClient(databaseUrl, (client) => waitForRuns(client, WARM_TENANT, ({ ended }) => ended === 1));
    }
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
