import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../simulator";
import { createApp } from "../src/app";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { freePort, isAlive } from "../src/database/embedded/programs";
import { readConfig } from "../src/platform/config";
import { createLogger } from "../src/platform/logger";
import { Api } from "./api";
import { buildPage } from "./build-page";
import { type HostProduct, startHostProduct } from "./host-product";

const DATA = ".data";
const PREFERRED_PORT = 4000;
const DEALS = 120;
const TENANT = "demo";
/**
 * Who may sign in at the demo's page: one who may do all, one who may only look, one whose plan has no CRM.
 * @param email of the seller to whom the meetings belong: by it the first two have meetings of their own
 */
const people = (email: string | undefined) => ({
  admin: { name: "Demo Admin", claims: { sub: "demo-admin", tenant: TENANT, role: "admin", plan: "sales", email } },
  member: { name: "Demo Member", claims: { sub: "demo-member", tenant: TENANT, role: "member", plan: "sales", email } },
  starter: {
    name: "Admin on a small plan",
    claims: { sub: "demo-starter", tenant: TENANT, role: "admin", plan: "free" },
  },
});

export interface Parts {
  simulator: Simulator;
  api: Api;
  /** null where the demo ends by itself: nobody would look at the page. */
  page: HostProduct | null;
}

type Stops = (() => Promise<void> | void)[];

/**
 * Starts PostgreSQL, the simulator and the service; what has to be stopped goes onto `stops`, last first.
 * @param withPage also builds and serves the product's page, with a stand-in for the product around it
 */
export async function startParts(stops: Stops, say: (line: string) => void, withPage: boolean): Promise<Parts> {
  // One that was killed could not clean up after itself.
  for (const name of demosHere(false)) rmSync(join(DATA, name), { recursive: true, force: true });
  const built = withPage ? buildPage() : Promise.resolve();
  // Awaited below, before the service starts; until then a failed build is no rejection that nobody hears.
  built.catch(() => {});
  const directory = join(DATA, `demo-${process.pid}`);
  stops.push(() => rmSync(directory, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres({ directory, durable: false });
  stops.push(() => postgres.stop());
  say(`PostgreSQL     embedded, in ${directory}`);

  // Another one that begins would find the same port free.
  const port = await freePort(demosHere(true).length > 1 ? undefined : PREFERRED_PORT);
  const simulator = await startSimulator({ deals: DEALS, redirectUrl: `http://127.0.0.1:${port}/crm/callback` });
  stops.push(() => simulator.stop());
  say(`Simulated CRM  ${simulator.company.name}, ${DEALS} deals, at ${simulator.url}`);

  const jwtSecret = randomBytes(32).toString("base64url");
  const { users, stories } = simulator.company;
  const seller = users.get(stories.singleDeal.ownerId)?.email;
  const page = withPage ? await startHostProduct({ jwtSecret, people: people(seller) }) : null;
  if (page) stops.push(() => page.stop());
  await built;
  const config = readConfig({
    PORT: String(port),
    DATABASE_URL: postgres.url.reveal(),
    CRM_BASE_URL: simulator.url,
    CRM_AUTH_URL: simulator.url,
    CRM_CLIENT_ID: simulator.clientId,
    CRM_CLIENT_SECRET: simulator.clientSecret,
    CRM_REDIRECT_URL: simulator.redirectUrl,
    AUTH_JWT_SECRET: jwtSecret,
    ENCRYPTION_KEYS: `demo:${randomBytes(32).toString("base64")}`,
    LOG_LEVEL: "warn",
    ...(page && { WEB: "on", WEB_TOKEN_URL: page.tokenUrl }),
  });
  const app = createApp(config, createLogger(config.logLevel));
  stops.push(() => app.stop());
  const url = await app.start();
  if (!url) throw new Error("the service did not start its API");
  say(`Service        ${url}/graphql`);
  page?.servePage(url);
  return { simulator, api: await Api.signIn(url, jwtSecret), page };
}

/** The folders of demos whose process runs, or does not. */
function demosHere(running: boolean): string[] {
  const names = existsSync(DATA) ? readdirSync(DATA) : [];
  return names.filter((name) => {
    const pid = Number(/^demo-(\d+)$/.exec(name)?.[1]);
    return pid > 0 && isAlive(pid) === running;
  });
}
