import { type Filling, fill, judgeTenants, RECORDS_OF_TENANT } from "./briefing-data";
import { prepareForGraphile } from "./briefing-graphile";
import { signTokens } from "./briefing-targets";
import { createDatabase } from "./database";
import { say, whole } from "./print";
import { type CrmEnvironment, type RunningService, startService } from "./processes";
import { withClient } from "./tenants";

/** No CRM is asked: all records are there. */
export const NO_CRM: CrmEnvironment = {
  CRM_BASE_URL: "http://127.0.0.1:9",
  CRM_AUTH_URL: "http://127.0.0.1:9",
  CRM_CLIENT_ID: "none",
  CRM_CLIENT_SECRET: "none",
  CRM_REDIRECT_URL: "http://127.0.0.1:9/callback",
};

/** A database with the service's tables and so many tenants. @returns its address */
export async function createFilled(serverUrl: string, tenants: number): Promise<string> {
  const databaseUrl = await createDatabase(serverUrl, `tenants_${tenants}`);
  await (await startService({ crm: NO_CRM, databaseUrl, roles: "api" })).stop();
  const began = performance.now();
  const filling = { from: 1, to: tenants, times: 1 };
  await withClient(databaseUrl, (client) => fill(client, filling));
  await judgeTenants(databaseUrl, filling);
  await withClient(databaseUrl, async (client) => {
    await client.query("VACUUM ANALYZE");
    await prepareForGraphile(client);
  });
  const took = ((performance.now() - began) / 1000).toFixed(0);
  say(`${whole(tenants)} tenants, ${whole(tenants * RECORDS_OF_TENANT)} records, made in ${took} s`);
  return databaseUrl;
}

/** Many small tenants, and behind them one that is a hundred times as large as each of them. */
export const SMALL = 100;
export const LARGE = SMALL + 1;
export const TIMES = 100;

/** They share a database. @returns its address */
export async function createUneven(serverUrl: string): Promise<string> {
  const databaseUrl = await createDatabase(serverUrl, "uneven");
  await (await startService({ crm: NO_CRM, databaseUrl, roles: "api" })).stop();
  const fillings: Filling[] = [
    { from: 1, to: SMALL, times: 1 },
    { from: LARGE, to: LARGE, times: TIMES },
  ];
  for (const filling of fillings) {
    await withClient(databaseUrl, async (client) => {
      await fill(client, filling);
      // As autovacuum would by itself, a minute later.
      await client.query("ANALYZE");
    });
    await judgeTenants(databaseUrl, filling);
  }
  await withClient(databaseUrl, async (client) => {
    await client.query("VACUUM ANALYZE");
    await prepareForGraphile(client);
  });
  return databaseUrl;
}

export interface Filled {
  databaseUrl: string;
  service: RunningService;
  tokens: string[];
}

/** The service on a filled database, and a token for each tenant. */
export async function startFilled(
  databaseUrl: string,
  tenants: number,
  flags: readonly string[] = [],
): Promise<Filled> {
  const service = await startService({ crm: NO_CRM, databaseUrl, roles: "api", flags });
  return { databaseUrl, service, tokens: await signTokens(service.jwtSecret, tenants) };
}
