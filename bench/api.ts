import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "../src/database/embedded/embedded-postgres";
import { createFilled } from "./api-filled";
import { type Measured, type MeasureOptions, measure, report } from "./api-measure";
import { onNode24 } from "./api-peers";
import type { ServerKind } from "./api-server";
import { BRIEFING, DEAL_LIST } from "./briefing-queries";
import { ourTarget, signTokens } from "./briefing-targets";
import { ratio, say, wholeOption } from "./print";
import { startServer } from "./processes";

type Stop = () => Promise<void> | void;

const NAMES: Record<ServerKind, string> = {
  service: "the service",
  apollo: "Apollo's defaults",
  mercurius: "Mercurius with JIT",
};

interface Place {
  databaseUrl: string;
  tenants: number;
  inMemory: boolean;
  /** Whether the peers call resolvers as the service does. */
  isStraight: boolean;
}

/** The three servers, alive at once, measured in turn. */
async function compare(title: string, { databaseUrl, tenants, inMemory, isStraight }: Place, options: MeasureOptions) {
  const secret = randomBytes(32).toString("base64url");
  const tokens = await signTokens(secret, tenants);
  const flags = { MEMORY: inMemory ? "1" : "0", STRAIGHT: isStraight ? "1" : "0" };
  const environment = { DATABASE_URL: databaseUrl, AUTH_JWT_SECRET: secret, ...flags };
  const stops: Stop[] = [];
  try {
    for (const [what, query] of [
      ["the briefing", BRIEFING],
      ["20 deals", DEAL_LIST],
    ] as const) {
      const servers: Measured[] = [];
      for (const kind of Object.keys(NAMES) as ServerKind[]) {
        const server = await startServer("api-server.js", { ...environment, KIND: kind });
        stops.push(server.stop);
        servers.push({ ...ourTarget(NAMES[kind], server.url, tokens, query), pid: server.pid, child: server.child });
      }
      const figures = await measure(servers, options);
      report(`${title}: ${what}`, servers, figures);
      const [service, apollo, mercurius] = figures;
      if (!service || !apollo || !mercurius) return;
      say(`  service : Apollo's defaults   ${ratio(service.perSecond, apollo.perSecond)}`);
      say(`  service : Mercurius with JIT  ${ratio(service.perSecond, mercurius.perSecond)}`);
      for (const stop of stops.splice(0)) await stop();
    }
  } finally {
    for (const stop of stops) await stop();
  }
}

/** The same schema and resolvers behind three servers: with their database, and over rows in memory. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      tenants: { type: "string", default: "50" },
      seconds: { type: "string", default: "4" },
      rounds: { type: "string", default: "3" },
      straight: { type: "boolean", default: false },
    },
  });
  const isStraight = values.straight;
  const number = (name: "tenants" | "seconds" | "rounds", most: number) => wholeOption(name, values[name], 1, most);
  const directory = join(".data", `bench-${process.pid}`);
  const options = { seconds: number("seconds", 60), rounds: number("rounds", 20), directory };
  const tenants = number("tenants", 2_000);
  const stops: Stop[] = [() => rmSync(directory, { recursive: true, force: true })];
  try {
    const postgres = await startEmbeddedPostgres({ directory, durable: false });
    stops.push(() => postgres.stop());
    const databaseUrl = await createFilled(postgres.url.reveal(), tenants);
    await compare("Rows in memory", { databaseUrl, tenants: 1, inMemory: true, isStraight }, options);
    await compare("With PostgreSQL", { databaseUrl, tenants, inMemory: false, isStraight }, options);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

onNode24(main, "mercurius");
