import { SignJWT } from "jose";
import { Client } from "pg";
import { Api } from "../demo/api";
import { connect } from "../demo/consent";
import type { RunningService } from "./processes";

/** Connects each tenant with a grant of its own, through the public API as its admin. */
export async function connectTenants(service: RunningService, tenants: readonly string[]): Promise<void> {
  const admin = await Api.signIn(service.url, service.jwtSecret);
  for (const tenant of tenants) {
    const token = await new SignJWT({ tenant, role: "admin", plan: "sales", name: `Admin of ${tenant}` })
      .setProtectedHeader({ alg: "HS256" })
      .setSubject(`${tenant}-admin`)
      .setExpirationTime("12h")
      .sign(new TextEncoder().encode(service.jwtSecret));
    await connect({ address: admin.address, token, ask: admin.ask });
  }
}

export const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

interface Progress {
  started: number;
  ended: number;
  failed: string | null;
}

const PROGRESS = `
  SELECT count(started_at)::int AS started, count(finished_at)::int AS ended, max(error_message) AS failed
  FROM sync_run WHERE tenant_id IN (SELECT id FROM tenant WHERE external_id LIKE $1)`;
const LOOK_MS = 50;
const PATIENCE_MS = 10 * 60_000;

/** Waits until the first runs of tenants whose names begin with `prefix` are as far as `enough` says. */
export async function waitForRuns(client: Client, prefix: string, enough: (now: Progress) => boolean): Promise<void> {
  const began = performance.now();
  while (performance.now() - began < PATIENCE_MS) {
    const now = (await client.query<Progress>(PROGRESS, [`${prefix}%`])).rows[0];
    if (now?.failed) throw new Error(`a sync failed: ${now.failed}`);
    if (now && enough(now)) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error("the syncs did not end");
}

export async function withClient<T>(databaseUrl: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
