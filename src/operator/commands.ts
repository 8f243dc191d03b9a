import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { recordAudit } from "../auth/policies";
import { Credentials, resealAll } from "../connections/credentials";
import { OBEYED_WITHIN_MS, resumeCrm, stopCrm } from "../connections/crm-stops";
import { KeepOut } from "../connections/keep-out";
import { ACROSS_TENANTS_ROLE, APPLICATION_ROLE, asApplication } from "../database/application-role";
import { type Ask, dropLocalRows, readLayout, readNodesWithout, readReadiness } from "../database/cluster";
import {
  type Applied,
  appliedMigrations,
  changingTables,
  distributeTables,
  migrate,
  migrationNames,
  whileOpen,
} from "../database/data-source";
import { withDatabase } from "../database/database";
import { entities } from "../entities/index";
import { systemClock } from "../platform/clock";
import type { Config } from "../platform/config";
import { messageOf, ServiceError } from "../platform/errors";
import { Keyring, type Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import { reportInto } from "./crm-probe";
import { type ErasingParts, erasePerson, eraseTenant, letPersonIn } from "./erasure";
import { exportOf, findPerson, foundIn, NotDoneError, type Options, optionsOf, saidOf } from "./person";

type Given = [config: Config, logger: Logger, words: string[]];
const OF_GONE = "[--name NAME]... [--record ID]...";

/** The operator's commands, which run in place of the service; each says what it did. */
export const COMMANDS: Record<string, (...given: Given) => Promise<string>> = {
  migrate: migrateTables,
  "rotate-keys": rotateKeys,
  "db-distribute": ({ databaseUrl }) => distribute(databaseUrl),
  "crm-stop": stopCalls,
  "crm-resume": resumeCalls,
  "export-person": (...given) => ofTenant(given, `export-person TENANT ADDRESS FILE ${OF_GONE}`, writeExport),
  "erase-person": (...given) =>
    ofTenant(given, `erase-person TENANT ADDRESS [--keep-out] ${OF_GONE}`, sayErasure, sayWho),
  "admit-person": (...given) => ofTenant(given, "admit-person TENANT ADDRESS", sayLetIn),
  "erase-tenant": (...given) => ofTenant(given, "erase-tenant TENANT", sayTenantErased),
};
/** Who says more than its name to any other, such as --help, does not want it done. */
export const WITH_WORDS = new Set(["crm-stop", "export-person", "erase-person", "admit-person", "erase-tenant"]);

/** What every process does at its start, by itself: for a deployment that has a step of its own for it. */
async function migrateTables({ databaseUrl }: Config, logger: Logger): Promise<string> {
  await whileOpen(databaseUrl, { entities, logger }, ({ url }) => migrate(url, logger));
  return "The tables are those of this version.";
}

/** Seals every secret under the first of ENCRYPTION_KEYS; workers may go on meanwhile. */
async function rotateKeys(config: Config, logger: Logger): Promise<string> {
  const keyring = new Keyring(config.encryptionKeys);
  const sealings = [new Credentials(keyring), new KeepOut(keyring)];
  const { resealed, unchanged } = await withDatabase(config, { entities, logger }, (database) =>
    resealAll(database, sealings, systemClock, logger),
  );
  return `Secrets of ${resealed} tenant(s) sealed under the first key, ${unchanged} were already.`;
}

/** When it resolves, every process that runs begins no further call to the CRM. Said again, it gives the stop another reason. */
async function stopCalls(config: Config, logger: Logger, words: string[]): Promise<string> {
  if (words.some((word) => /^-+\w/.test(word))) throw new NotDoneError("Nothing was done. Say: crm-stop [REASON]");
  const reason = words.join(" ").trim() || null;
  const stop = await withDatabase(config, { entities, logger }, async (database) => {
    const stop = await stopCrm(database, reason, systemClock());
    await sleep(OBEYED_WITHIN_MS);
    return stop;
  });
  return `No process begins a call to the CRM now; one in hand ends within 30 seconds.
Stopped since ${stop.since.toISOString()}: ${stop.reason}
Go on with: npm run crm:resume`;
}

async function resumeCalls(config: Config, logger: Logger): Promise<string> {
  const wasStopped = await withDatabase(config, { entities, logger }, (database) => resumeCrm(database, systemClock()));
  return wasStopped
    ? "Calls to the CRM may be made again; syncs that waited go on within seconds."
    : "Calls to the CRM were not stopped.";
}

/** What a command on one tenant is given: what it works with, the tenant, its further words, and its options. */
type OnTenant = (parts: ErasingParts, tenantId: number, words: string[], options: Options) => Promise<string>;
const sayNoMore: OnTenant = async () => "";

/** A command that shows or takes away what cannot be brought back, so who has read what `tell` says confirms it. @throws NotDoneError */
async function ofTenant([config, logger, given]: Given, form: string, work: OnTenant, tell = sayNoMore) {
  const { values, positionals } = optionsOf(given, `${form} [--yes]`);
  const [name = "", ...more] = positionals;
  return withDatabase(config, { entities, logger }, async (database) => {
    const [tenant] = await database.acrossTenants<{ id: number }>(
      "SELECT id FROM tenant WHERE external_id = $1",
      [name],
      { id: "number" },
    );
    if (!tenant) throw new NotDoneError(`There is no tenant ${name}.`);
    const keepOut = new KeepOut(new Keyring(config.encryptionKeys));
    const parts = { database, keepOut, clock: systemClock, logger };
    if (!values.yes) await confirm(name, await tell(parts, tenant.id, more, values));
    return work(parts, tenant.id, more, values);
  });
}

/** @throws NotDoneError where nobody is there to be asked, or the answer is another */
async function confirm(tenant: string, told: string): Promise<void> {
  if (!process.stdin.isTTY) throw new NotDoneError(`Nobody can be asked here: add --yes to do it.${told}`);
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question(`This is about tenant ${tenant}.${told}\nType the tenant's name to go on: `);
  asking.close();
  if (answer.trim() !== tenant) throw new NotDoneError("Nothing was done.");
}

const writeExport: OnTenant = ({ database, clock, logger }, tenantId, [address = "", file = ""], options) =>
  reportInto(file, async () => {
    const scope = database.tenant(tenantId);
    const person = await findPerson(scope, address, saidOf(options));
    const { held, cutAt } = await exportOf(database, scope, person);
    const content = { exportedAt: clock().toISOString(), addresses: [...person.mailboxes], names: person.names, held };
    await scope.transaction((held) =>
      recordAudit(held, logger, { action: "PERSON_EXPORTED", actor: null, at: clock() }),
    );
    const counts = Object.entries(held).map(([kind, rows]) => `${kind} ${rows.length}`);
    const cut = cutAt.length > 0 ? `\nNot all of it, there is more: ${cutAt.join(", ")}.` : "";
    const words = `Written to ${file}: ${counts.join(", ")}.${cut}${foundIn(person)}
Not in it: backups, logs, what only the CRM or a browser holds, and where the person is named by a telephone number or first name alone.`;
    return [content, words];
  });

/** A sender's words may have become a person's name in the CRM as well: they are read before texts are lost by them. */
const sayWho: OnTenant = async ({ database }, tenantId, [address = ""], options) =>
  foundIn(await findPerson(database.tenant(tenantId), address, saidOf(options)));

const sayErasure: OnTenant = async (parts, tenantId, [address = ""], options) => {
  const keepsOut = options["keep-out"] === true;
  const erased = await erasePerson(parts, tenantId, address, keepsOut, saidOf(options));
  const { person, texts, meetings, records, receipts, unsettled } = erased;
  const left =
    unsettled > 0
      ? `\nStill stored: ${unsettled} written value(s) whose answer was lost. Each goes by itself as soon as the CRM has told what became of it, or after a day.`
      : "";
  return `Erased: an attendee of ${meetings} meeting(s), ${records} synced person(s), ${receipts} written value(s); ${texts} text(s) were changed.${left}${foundIn(person)}
${keepsOut ? KEPT_OUT : COMES_BACK}
Not touched: backups, logs, the keys that callers chose, drafts in browsers, telephone numbers in texts, and where the person is named by a first name alone.`;
};

const COMES_BACK = `What the CRM still shows comes back with the next sync that reads it: have it deleted there as well, or add --keep-out.`;
const KEPT_OUT = `Kept out from now on: the person, as an attendee too, and what is written of the person's own activities and notes.
Titles of deals and other texts of the CRM that name the person come back: change them there. So do titles of meetings whose invitation does not.`;

const sayLetIn: OnTenant = async (parts, tenantId, [address = ""]) => {
  const addresses = await letPersonIn(parts, tenantId, address);
  if (addresses === 0) throw new NotDoneError("This address is not kept out.");
  return `Let in: ${addresses} address(es) of the person, who comes back with the next sync that reads everything.`;
};

const sayTenantErased: OnTenant = async (parts, tenantId) => {
  const gone = await eraseTenant(parts, tenantId, new AbortController().signal);
  return `Erased: the connection, the copies and ${gone} other row(s). What stays: the tenant's name and number, and that it was erased.
Its users are to lose their access at the identity provider: who calls again begins anew. Have the app uninstalled in the CRM.`;
};

/** The tables stayed as they were; the message says why, and what to do. */
class NotDistributedError extends ServiceError {
  readonly code = "NOT_DISTRIBUTED";
}

/**
 * `npm run db:distribute`: spreads the tenants over the nodes of a Citus cluster, once. It is one transaction.
 * @returns what was done, in words
 * @throws NotDistributedError, UnfitDatabaseError
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
const ROLES = "run there, with LOGIN, what docs/operations.md lists under Roles";

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
  const { sessions, nodes } = await readReadiness(ask);
  if (nodes === 0) refuse("the cluster has no node for its tables", EXTEND);
  if (sessions > 0) refuse(`${sessions} process(es) of the service work on it`, "end them first");
  const without = await readNodesWithout(ask, ACROSS_TENANTS_ROLE, APPLICATION_ROLE);
  if (without.length > 0) refuse(`the service's roles are not whole on ${without.join(", ")}`, ROLES);
}
