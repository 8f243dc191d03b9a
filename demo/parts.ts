import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../simulator";
import { createApp } from "../src/app";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { readConfig } from "../src/platform/config";
import { createLogger } from "../src/platform/logger";
import { freePort, isAlive } from "../src/platform/processes";
import { Api } from "./api";

const DATA = ".data";
const PREFERRED_PORT = 4000;
const DEALS = 120;

export interface Parts {
  simulator: Simulator;
  api: Api;
}

/** Starts PostgreSQL, the simulator and the service; what has to be stopped goes onto `stops`, last first. */
export async function startParts(stops: (() => Promise<void> | void)[], say: (line: string) => void): Promise<Parts> {
  removeLeftovers();
  const directory = join(DATA, `demo-${process.pid}`);
  stops.push(() => rmSync(directory, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres({ directory, durable: false });
  stops.push(() => postgres.stop());
  say(`PostgreSQL     embedded, in ${directory}`);

  const port = await freePort(PREFERRED_PORT);
  const simulator = await startSimulator({ deals: DEALS, redirectUrl: `http://127.0.0.1:${port}/crm/callback` });
  stops.push(() => simulator.stop());
  say(`Simulated CRM  ${simulator.company.name}, ${DEALS} deals, at ${simulator.url}`);

  const jwtSecret = randomBytes(32).toString("base64url");
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
  });
  const app = createApp(config, createLogger(config.logLevel));
  stops.push(() => app.stop());
  const url = await app.start();
  if (!url) throw new Error("the service did not start its API");
  say(`Service        ${url}/graphql`);
  return { simulator, api: await Api.signIn(url, jwtSecret) };
}

/** A demo that was killed could not clean up after itself. */
function removeLeftovers(): void {
  if (!existsSync(DATA)) return;
  for (const name of readdirSync(DATA)) {
    const pid = Number(/^demo-(\d+)$/.exec(name)?.[1]);
    if (pid && !isAlive(pid)) rmSync(join(DATA, name), { recursive: true, force: true });
  }
}
