import { setTimeout as sleep } from "node:timers/promises";
import { Credentials, resealAll } from "../connections/credentials";
import { OBEYED_WITHIN_MS, resumeCrm, stopCrm } from "../connections/crm-stops";
import { Database, reachOf } from "../database/database";
import { openDatabase } from "../database/migrate";
import { entities } from "../entities/index";
import { systemClock } from "../platform/clock";
import type { Config } from "../platform/config";
import { Keyring } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import { distribute } from "./distribute";

const NO_REASON = "no reason was given.";

/** What the operator may ask for in place of serving; each says what it did. */
export const COMMANDS: Record<string, (config: Config, logger: Logger, words: string[]) => Promise<string>> = {
  "rotate-keys": rotateKeys,
  "db-distribute": ({ databaseUrl }) => distribute(databaseUrl),
  "crm-stop": (config, logger, words) => stopCalls(config, logger, words.join(" ").trim() || NO_REASON),
  "crm-resume": resumeCalls,
};

/** Seals every credential under the first of ENCRYPTION_KEYS; workers may go on meanwhile. */
async function rotateKeys(config: Config, logger: Logger): Promise<string> {
  const credentials = new Credentials(new Keyring(config.encryptionKeys));
  const { resealed, unchanged } = await withDatabase(config, logger, (database) =>
    resealAll(database, credentials, systemClock, logger),
  );
  return `${resealed} credential(s) sealed under the first key, ${unchanged} were already.`;
}

/** When it resolves, every process that runs begins no further call to the CRM. The stop may be an earlier one. */
async function stopCalls(config: Config, logger: Logger, reason: string): Promise<string> {
  const stop = await withDatabase(config, logger, async (database) => {
    const stop = await stopCrm(database, reason, systemClock());
    await sleep(OBEYED_WITHIN_MS);
    return stop;
  });
  return `No process begins a call to the CRM now; one in hand ends within 30 seconds.
Stopped since ${stop.since.toISOString()}: ${stop.reason}
Go on with: npm run crm:resume`;
}

async function resumeCalls(config: Config, logger: Logger): Promise<string> {
  const wasStopped = await withDatabase(config, logger, (database) => resumeCrm(database, systemClock()));
  return wasStopped
    ? "Calls to the CRM may be made again; syncs that waited go on within seconds."
    : "Calls to the CRM were not stopped.";
}

/** The tenant database without a service behind it. */
async function withDatabase<T>(config: Config, logger: Logger, work: (database: Database) => Promise<T>): Promise<T> {
  const { dataSource, close } = await openDatabase(config.databaseUrl, { entities, logger });
  try {
    return await work(new Database(dataSource, { reach: await reachOf(dataSource) }));
  } finally {
    await close();
  }
}
