import { setTimeout as sleep } from "node:timers/promises";
import { Credentials, resealAll } from "../connections/credentials";
import { OBEYED_WITHIN_MS, resumeCrm, stopCrm } from "../connections/crm-stops";
import { asApplication } from "../database/application-role";
import { type Ask, dropLocalRows, readLayout } from "../database/cluster";
import {
  type Applied,
  appliedMigrations,
  changingTables,
  distributeTables,
  migrationNames,
  openDatabase,
} from "../database/data-source";
import { Database, reachOf } from "../database/database";
import { entities } from "../entities/index";
import { systemClock } from "../platform/clock";
import type { Config } from "../platform/config";
import { messageOf, ServiceError } from "../platform/errors";
import { Keyring, type Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";

const NO_REASON = "no reason was given.";

/** The operator's commands, which run in place of the service; each says what it did. */
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

/** The tables stayed as they were; the message says why, and what to do. */
class NotDistributedError extends ServiceError {
  readonly code = "NOT_DISTRIBUTED";
}

/**
 * `npm run db:distribute`: spreads the tenants over the nodes of a Citus cluster, once. It is one transaction.
 * @returns what was done, in words
 * @throws NotDistributedError, UnusableLayoutError
 */
export async function distribute(databaseUrl: Secret | null): Promise<string> {
  if (!databaseUrl) refuse("the embedded PostgreSQL is one server", "set DATABASE_URL to a Citus coordinator");
  const url = await asApplication(databaseUrl);
  return changingTables(url, async (ask, dataSource) => {
    const layout = await readLayout(ask);
    if (layout.kind === "ONE_SERVER") refuse("the extension Citus is not in it", EXTEND);
    refuseOtherTables(await appliedMigrations(ask));
    if (layout.kind === "DISTRIBUTED" && layout.local.length === 0) {
      // Where the first time was interrupted after its transaction, this is what is left.
      await dropLocalRows(ask);
      return `Nothing to do: tenants are spread over ${layout.nodes.length} node(s) already.`;
    }
    await refuseNodes(ask);
    await distributeTables(dataSource).catch((cause: unknown) => {
      refuse(`Citus refuses: ${messageOf(cause)}`, "mend that, then run this again", cause);
    });
    const now = await readLayout(ask);
    if (now.kind !== "DISTRIBUTED") refuse("no table is of a tenant", "tell the developers");
    return `Tenants are spread over ${now.nodes.length} node(s): ${now.nodes.join(", ")}. Start the service.`;
  });
}

const EXTEND = "follow docs/operations.md, Many machines";

function refuse(what: string, todo: string, cause?: unknown): never {
  throw new NotDistributedError(`The database was not distributed: ${what}; ${todo}.`, { cause });
}

function refuseOtherTables({ names, foreign }: Applied): void {
  if (foreign) refuse(foreign.what, foreign.todo);
  if (names.some((name) => !migrationNames.includes(name)))
    refuse("it knows migrations that this version does not", "run this with the newest version that was started on it");
  if (names.length < migrationNames.length)
    refuse("its migrations are not up to date", "start this version of the service once, and end it");
}

/** A process that runs meanwhile sets its sessions as for one server, and would find no row of anybody afterwards. */
async function refuseNodes(ask: Ask): Promise<void> {
  const [now] = await ask<{ sessions: number; nodes: number }>(
    `SELECT (SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database()
        AND application_name = 'crm-connection listener') AS sessions,
      (SELECT count(*)::int FROM pg_dist_node WHERE shouldhaveshards AND isactive) AS nodes`,
  );
  if (!now?.nodes) refuse("the cluster has no node for its tables", EXTEND);
  if (now.sessions > 0) refuse(`${now.sessions} process(es) of the service work on it`, "end them first");
}
