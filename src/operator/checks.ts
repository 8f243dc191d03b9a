import { SHORT_TODAY } from "../connections/budget";
import { namesOf } from "../connections/credentials";
import { type CrmStop, PRESENT_SERVER, PRESENT_STOP } from "../connections/crm-stops";
import { ACROSS_TENANTS_ROLE, APPLICATION_ROLE, unfitBecause } from "../database/application-role";
import { readLayout, readNodesAway } from "../database/cluster";
import { appliedMigrations, migrationNames, newerQueue } from "../database/data-source";
import { DatabaseRoleError, MORE_SESSIONS, needsOperator } from "../database/errors";
import { aheadOf, SECOND_MS, systemClock } from "../platform/clock";
import { codeOf, messageOf } from "../platform/errors";
import { type EncryptionKey, Keyring, keyIdOf, UnsealError } from "../platform/keyring";
import { UNSETTLED } from "../writeback/look-ups";

/** ok: as it should be; warning: it works, and someone should know; fault: it does not work, or not safely. */
type Level = "ok" | "warning" | "fault";

/** One thing that was looked at. No secret is ever in it. */
export interface Finding {
  level: Level;
  what: string;
  /** What the operator can do about it. */
  todo: string | null;
}

export const ok = (what: string): Finding => ({ level: "ok", what, todo: null });
export const warning = (what: string, todo: string): Finding => ({ level: "warning", what, todo });
export const fault = (what: string, todo: string): Finding => ({ level: "fault", what, todo });

/** In a customer's words they would rule the operator's terminal, or make a line that looks like doctor's own. */
export const COMMANDS_OF_A_TERMINAL = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
export const shownInTerminal = (text: string): string => text.replace(COMMANDS_OF_A_TERMINAL, "\ufffd");

/** `fault    database: ...  -> what to do` */
export function lineOf({ level, what, todo }: Finding): string {
  return shownInTerminal(`${level.padEnd(8)} ${what}${todo === null ? "" : `  -> ${todo}`}`);
}

/** How far this machine's clock is from another one's, in words. */
export function clockFinding(whose: string, aheadMs: number, most: { quietMs: number; faultMs: number }): Finding {
  const seconds = Math.abs(aheadMs / 1000).toFixed(1);
  const what = `${whose}: its clock is ${seconds} s ${aheadMs < 0 ? "behind" : "ahead of"} this machine's`;
  if (Math.abs(aheadMs) <= most.quietMs) return ok(`${whose}: its clock and this machine's agree`);
  return (Math.abs(aheadMs) < most.faultMs ? warning : fault)(
    what,
    "set both by NTP; tokens and receipts of writes go by the clock",
  );
}

/** With these the tests have passed: the embedded one, and the oldest that is served. */
const TESTED_MAJORS = [15, 18];
/** Receipts of writes go by it, and wait for minutes. */
const CLOCK = { quietMs: 2 * SECOND_MS, faultMs: 10 * SECOND_MS };

/** A database session that can change nothing. */
export type ReadOnlySession = { rows<T>(sql: string, parameters?: unknown[]): Promise<T[]> };

type Check = (look: ReadOnlySession) => Promise<Finding | Finding[]>;

async function checkVersion(look: ReadOnlySession): Promise<Finding> {
  const [found] = await look.rows<{ version: string; database: string; isSealed: boolean }>(
    `SELECT current_setting('server_version') AS version, current_database() AS database,
       EXISTS (SELECT FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS "isSealed"`,
  );
  const way = found?.isSealed ? "by TLS" : "without TLS: not for a network that others share";
  const what = `database: PostgreSQL ${found?.version} answers as "${found?.database}", ${way}`;
  if (TESTED_MAJORS.includes(Number.parseInt(found?.version ?? "", 10))) return ok(what);
  return warning(what, `the service is tested with PostgreSQL ${TESTED_MAJORS.join(" and ")}: use one of these`);
}

async function checkFitness(look: ReadOnlySession): Promise<Finding> {
  const unfit = await unfitBecause((sql) => look.rows(sql));
  if (unfit) return fault(`database: ${unfit.what}`, unfit.todo);
  if ((await look.rows(NO_STANDBY)).length > 0)
    return fault("database: writes wait for a standby, and none is there", STANDBY);
  try {
    await look.rows(`SET work_mem = '64kB'; ${BESIDE_MEMORY}; RESET work_mem`);
  } catch (error) {
    const todo = TODO_BESIDE[String(codeOf(error))] ?? "see what PostgreSQL's own log says of it";
    if (!needsOperator(error)) throw error;
    return fault(`database: ${messageOf(error)}`, todo);
  }
  return ok("database: it takes writes, in UTF8, and has room on its disk");
}

const NO_STANDBY = `SELECT WHERE current_setting('synchronous_standby_names') <> '' AND NOT EXISTS (SELECT FROM pg_stat_replication)`;
const STANDBY = "bring it back, or set synchronous_standby_names to ''";
/** What a session that can change nothing may still write: a file of some megabytes, for a moment. */
const BESIDE_MEMORY = "SELECT count(*) FROM (SELECT n FROM generate_series(1, 200000) n ORDER BY -n) sorted";

/** By PostgreSQL's codes for what is full or not allowed. */
const TODO_BESIDE: Record<string, string> = {
  "53100": "give its disk room; docs/operations.md says what fills it",
  "53200": "give its machine memory, or end what takes it",
  "53400": "raise temp_file_limit",
  "42501": "give its user back its rights: Roles in docs/operations.md",
};

/** As docs/operations.md has them under Scaling, of a worker: which processes are one, their sessions do not say. */
const SESSIONS = 39;

/** Each process has one session that listens. */
async function checkSessions(look: ReadOnlySession): Promise<Finding> {
  const [found] = await look.rows<{ most: number; processes: number }>(
    `SELECT least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
         nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1)) AS most,
       (SELECT greatest(count(*), 1)::int FROM pg_stat_activity a
         WHERE a.datname = d.datname AND a.application_name = 'crm-connection listener') AS processes
     FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()`,
  );
  const { most, processes } = found ?? { most: 0, processes: 1 };
  const wanted = SESSIONS * processes;
  const what = `database: it may have ${most} sessions, and ${processes} process(es) of the service want up to ${wanted}`;
  if (most >= wanted) return ok(what);
  return warning(what, MORE_SESSIONS);
}

/** The service itself keeps a whole table from others only while it changes it. What a foreign session does, not every user may see. */
async function checkLocks(look: ReadOnlySession): Promise<Finding[]> {
  const found = await look.rows<{ pid: number; user: string; tables: string | null }>(
    `SELECT a.pid, a.usename AS user, string_agg(DISTINCT c.relname, ', ') AS tables
     FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE l.granted AND l.mode = 'AccessExclusiveLock' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
     GROUP BY 1, 2 ORDER BY 1 LIMIT 5`,
  );
  return found.map(({ pid, user, tables }) => {
    const what = `database: session ${pid} of ${user} keeps everybody from ${tables}`;
    return warning(what, `wait, as for a VACUUM FULL, or end it: SELECT pg_terminate_backend(${pid})`);
  });
}

async function checkClock(look: ReadOnlySession): Promise<Finding> {
  const { ms } = await aheadOf(systemClock, async () => {
    const [found] = await look.rows<{ now: Date }>("SELECT clock_timestamp() AS now");
    return found?.now;
  });
  return clockFinding("the database", ms, CLOCK);
}

/** Decision 0042: whoever logs in, the service acts as roles of its own, and a tenant's sessions as one that passes no policy. */
async function checkRole(look: ReadOnlySession): Promise<Finding> {
  const [user] = await look.rows<{ name: string; has_roles: boolean }>(
    `SELECT current_user AS name, count(*) = 2 AS has_roles FROM pg_roles WHERE rolname = ANY ($1)`,
    [[APPLICATION_ROLE, ACROSS_TENANTS_ROLE]],
  );
  const name = user?.name;
  if (!user?.has_roles)
    return warning(
      `row policies: the roles of the service are missing`,
      `nothing to do where ${name} may make roles: the first start does. Else see Roles in docs/operations.md`,
    );
  try {
    await look.rows(`SET ROLE ${ACROSS_TENANTS_ROLE}`);
    await look.rows(`SET ROLE ${APPLICATION_ROLE}`);
  } catch (cause) {
    // What it would see as itself is not what the service sees.
    throw new DatabaseRoleError(`row policies: ${name} may not act as the roles of the service: ${messageOf(cause)}`);
  }
  const [own] = await look.rows<{ passes: boolean }>(
    `SELECT pg_has_role(current_user, '${ACROSS_TENANTS_ROLE}', 'USAGE') OR rolbypassrls OR rolsuper AS passes
     FROM pg_roles WHERE rolname = current_user`,
  );
  if (!own?.passes) return ok(`row policies: ${name} acts as ${APPLICATION_ROLE}, which cannot pass them`);
  const todo = `REVOKE ${ACROSS_TENANTS_ROLE} FROM ${APPLICATION_ROLE}; ALTER ROLE ${APPLICATION_ROLE} NOBYPASSRLS`;
  return fault(`row policies: ${APPLICATION_ROLE} passes them`, todo);
}

async function checkMigrations(look: ReadOnlySession): Promise<Finding> {
  const ask = <T>(sql: string) => look.rows<T>(sql);
  const { names, foreign } = await appliedMigrations(ask);
  const unfit = foreign ?? (await newerQueue(ask));
  if (unfit) return fault(`migrations: ${unfit.what}`, unfit.todo);
  const newer = names.filter((name) => !migrationNames.includes(name));
  if (newer.length > 0) {
    const what = `migrations: the database knows ${newer.length} that this version does not (${newer.join(", ")})`;
    return warning(what, "a newer version has been started on it: run that one");
  }
  const ahead = await newerQueue(ask, false);
  if (ahead) return warning(`migrations: ${ahead.what}`, ahead.todo);
  const due = migrationNames.filter((name) => !names.includes(name));
  if (due.length === 0) return ok(`migrations: all ${names.length} are applied`);
  const what = `migrations: ${due.length} of ${migrationNames.length} are to be applied (${due.join(", ")})`;
  return warning(what, "nothing to do: the next start applies them. Have a backup");
}

/** Seen from a session that was set to no tenant: it must see nobody's rows. */
async function checkPolicies(look: ReadOnlySession): Promise<Finding[]> {
  const open = await look.rows<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'migration'
       AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1`,
  );
  if (open.length > 0) {
    const names = open.map(({ name }) => name).join(", ");
    return [fault(`row policies: not forced on ${names}`, "apply the migrations; if they are, tell the developers")];
  }
  const [table] = await look.rows<{ exists: boolean }>("SELECT to_regclass('public.connection') IS NOT NULL AS exists");
  if (!table?.exists) return [];
  const [seen] = await look.rows<{ any: boolean }>('SELECT EXISTS (SELECT 1 FROM connection) AS "any"');
  if (!seen?.any) return [ok("row policies: forced on every table; a session of no tenant sees no connection")];
  return [
    fault("row policies: a session of no tenant sees tenants' rows", "stop the service and look at the role's rights"),
  ];
}

/** Decision 0062: one server, or a Citus cluster over whose nodes the tenants are spread. */
async function checkLayout(look: ReadOnlySession): Promise<Finding> {
  const ask = <T>(sql: string) => look.rows<T>(sql);
  const layout = await readLayout(ask);
  if (layout.kind === "ONE_SERVER") return ok("machines: one; the extension Citus is not in this database");
  if (layout.kind === "UNUSABLE") return fault(`machines: ${layout.what}`, layout.todo);
  if (layout.kind === "NOT_DISTRIBUTED")
    return ok("machines: one; the extension Citus is there, and no table is distributed (npm run db:distribute)");
  if (layout.local.length > 0)
    return warning(`machines: ${layout.local.join(", ")} not distributed`, "nothing to do: the next start does it");
  const away = await readNodesAway(ask);
  const tables = `machines: tenants are spread over ${layout.nodes.length} node(s)`;
  if (away.length === 0) return ok(`${tables}, and each answers`);
  return fault(
    `${tables}; not to be reached: ${away.join(", ")}`,
    "bring it back; its tenants are not served until then",
  );
}

/** In this order: after the role's the session acts as the service would. */
export const DATABASE_CHECKS: readonly Check[] = [
  checkVersion,
  checkFitness,
  checkSessions,
  checkLocks,
  checkClock,
  checkRole,
  checkMigrations,
  checkLayout,
  checkPolicies,
];

const LATE = "5 minutes";
/** Workers say each minute what they have in hand, and free after five what no other has; no job takes so long. */
const STUCK = "15 minutes";

/** Checks of the service's own work: keys, connections, jobs, writes. The session must act as the service would. */
export async function checkWork(look: ReadOnlySession, keys: readonly EncryptionKey[]): Promise<Finding[]> {
  const [tables] = await look.rows<{ exist: boolean }>(
    "SELECT to_regclass('public.crm_stop') IS NOT NULL AND to_regclass('graphile_worker._private_jobs') IS NOT NULL AS exist",
  );
  if (!tables?.exist) return [];
  await look.rows(`SET ROLE ${ACROSS_TENANTS_ROLE}`);
  return [
    ...(await checkKeys(look, keys)),
    ...(await checkConnections(look)),
    ...(await checkQueue(look)),
    await checkWrites(look),
    ...(await checkServer(look)),
    ...(await checkBudgets(look)),
  ];
}

/** The stop that holds, in words; null: none does. */
export async function stopFinding(look: ReadOnlySession): Promise<Finding | null> {
  const [table] = await look.rows<{ exists: boolean }>("SELECT to_regclass('public.crm_stop') IS NOT NULL AS exists");
  if (!table?.exists) return null;
  const [stop] = await look.rows<CrmStop>(PRESENT_STOP);
  if (!stop) return null;
  const what = `the CRM: all calls are stopped since ${stop.since.toISOString()}: ${stop.reason}`;
  return warning(
    what,
    "npm run crm:resume when it is over; until then nothing is asked of the CRM, and not by doctor either",
  );
}

/** Each of them, to be tried: a process that has another key of the same name has sealed some alone. */
const SEALED = `
  SELECT tenant_id::text AS tenant, json_build_array(tenant_id::text, copy_id::text, part) AS place, sealed
  FROM credential, LATERAL (VALUES ('access_token', access_token), ('refresh_token', refresh_token)) p (part, sealed)
  UNION ALL
  SELECT tenant_id::text, json_build_array(tenant_id::text, 'kept_out_key'), sealed_key FROM kept_out_key`;

type Sealed = { tenant: string; place: string[]; sealed: Buffer };

const tenantsOf = (secrets: readonly Sealed[]) => [...new Set(secrets.map(({ tenant }) => tenant))];

function opens(keyring: Keyring, { sealed, place }: Sealed): boolean {
  try {
    keyring.open(sealed, place);
    return true;
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error;
    return false;
  }
}

async function checkKeys(look: ReadOnlySession, keys: readonly EncryptionKey[]): Promise<Finding[]> {
  const keyring = new Keyring(keys);
  const found = await look.rows<Sealed>(SEALED);
  if (found.length === 0) return [ok("keys: no secret is stored yet")];
  const names = new Set(found.map(({ sealed }) => keyIdOf(sealed)));
  return [...names].map((name) => {
    const under = found.filter(({ sealed }) => keyIdOf(sealed) === name);
    const what = `keys: ${tenantsOf(under).length} tenant(s) have secrets sealed under "${name}"`;
    if (!keys.some(({ id }) => id === name)) {
      return fault(
        `${what}, which is not in ENCRYPTION_KEYS`,
        "put that key back; where it is gone they must disconnect and connect again: A key is lost, in docs/operations.md",
      );
    }
    const closed = tenantsOf(under.filter((secret) => !opens(keyring, secret)));
    if (closed.length > 0) {
      const whose = `${closed.length} (${namesOf(closed)})`;
      const todo = "put the key back that sealed them, or look for a process that has another key of that name";
      return fault(`${what}, but the key of that name does not open those of ${whose}`, todo);
    }
    if (name === keys[0]?.id) return ok(`${what}, the key that seals now`);
    return warning(
      `${what}, which is not the first of ENCRYPTION_KEYS`,
      "npm run keys:rotate, before that key is removed",
    );
  });
}

async function checkConnections(look: ReadOnlySession): Promise<Finding[]> {
  const found = await look.rows<{ state: string; trouble: string | null; count: number }>(
    `SELECT state, trouble_code AS trouble, count(*)::int AS count FROM connection
     WHERE state <> 'NOT_CONNECTED' GROUP BY 1, 2 ORDER BY 1, 2 NULLS FIRST`,
  );
  if (found.length === 0) return [ok("connections: nobody has connected yet")];
  return found.map(({ state, trouble, count }) => {
    if (state === "NEEDS_REAUTHORIZATION") {
      const todo =
        "an owner or admin of each has to authorize again; if they became many at once, see docs/operations.md";
      return warning(`connections: ${count} need re-authorization`, todo);
    }
    if (trouble === null) return ok(`connections: ${count} work`);
    const what = `connections: ${count} are in trouble, ${trouble}`;
    if (trouble === "SERVICE_MISCONFIGURED")
      return fault(what, "check CRM_CLIENT_ID, CRM_CLIENT_SECRET and CRM_AUTH_URL");
    return warning(what, "Codes in docs/api.md says what each means; connection { trouble { message } } has the words");
  });
}

async function checkQueue(look: ReadOnlySession): Promise<Finding[]> {
  const found = await look.rows<{ jobs: string; state: keyof typeof ILL_JOBS }>(
    `SELECT 'queue: ' || count(*) || ' job(s) ' || task AS jobs, state FROM (
       SELECT task_identifier AS task, CASE
         WHEN locked_at < now() - interval '${STUCK}' THEN 'STUCK'
         WHEN locked_at IS NOT NULL AND run_at < now() - interval '${STUCK}' THEN 'HANGS'
         WHEN locked_at IS NULL AND attempts < max_attempts AND run_at < now() - interval '${LATE}' THEN 'LATE'
         WHEN locked_at IS NULL AND attempts >= max_attempts AND key IS NOT NULL THEN 'GONE' END AS state
       FROM graphile_worker.jobs) j WHERE state IS NOT NULL GROUP BY task, state ORDER BY task, state`,
  );
  const findings = found.map(({ jobs, state }) => ILL_JOBS[state](jobs));
  return findings.length > 0 ? findings : [ok("queue: no job is late, stuck or given up")];
}

const ILL_JOBS = {
  LATE: (jobs: string) => warning(`${jobs} wait for more than ${LATE}`, "start a worker (ROLES), or more of them"),
  HANGS: (jobs: string) => warning(`${jobs} do not end for ${STUCK}`, "end the process whose log says so"),
  STUCK: (jobs: string) => warning(`${jobs} are held for more than ${STUCK}`, "their worker died: start one (ROLES)"),
  GONE: (jobs: string) => fault(`${jobs} were given up`, "the log has their errors: find out why"),
};

async function checkWrites(look: ReadOnlySession): Promise<Finding> {
  const [found] = await look.rows<{ count: number }>(UNSETTLED);
  if (!found?.count) return ok("writes: none that is looked for is UNKNOWN for more than an hour");
  const todo =
    "they are looked for and never sent again; look at the record that crmWrites names: a note's last line has its reference";
  return warning(`writes: ${found.count} are UNKNOWN for more than an hour`, todo);
}

/** By what a lost receipt is known to be possible (decision 0030). Some hosted servers keep it to themselves. */
function checkServer(look: ReadOnlySession): Promise<Finding[]> {
  const said = look.rows(PRESENT_SERVER);
  const what = "writes: the server does not say that it is another one, so after a failover a note could be sent twice";
  return said.then(
    () => [],
    () => [warning(what, "after one run npm run crm:stop and crm:resume: then each note is looked for, for a day")],
  );
}

type ShortCompany = { id: string; remaining: number | null; limit: number | null; refusedSince: Date | null };
const SHORT = `SELECT b.crm_company_id::text AS id, CASE WHEN b.told_at >= b.day_began_at THEN b.remaining END AS remaining,
    b.daily_limit AS "limit", b.limited_at AS "refusedSince"
  FROM crm_budget b WHERE ${SHORT_TODAY} ORDER BY b.crm_company_id LIMIT 20`;
/** Apart from the other: on a cluster these tables lie on the nodes. */
const NAMES = `SELECT s.crm_company_id::text AS id, min(c.company_name) AS name
  FROM synced_copy s JOIN connection c ON c.tenant_id = s.tenant_id AND c.copy_id = s.id
  WHERE s.crm_company_id = ANY ($1::bigint[]) GROUP BY 1`;

async function checkBudgets(look: ReadOnlySession): Promise<Finding[]> {
  const found = await look.rows<ShortCompany>(SHORT);
  if (found.length === 0) return [ok("tokens of the CRM: no company is short today")];
  const named = await look.rows<{ id: string; name: string | null }>(NAMES, [found.map(({ id }) => id)]);
  const names = new Map(named.map(({ id, name }) => [id, name]));
  return found.map(({ id, remaining, limit, refusedSince }) => {
    const left = `${remaining ?? "an unknown number"} of ${limit ?? "an unknown number"} left today`;
    const refused = refusedSince ? `, and is refused since ${refusedSince.toISOString()}` : "";
    const todo = "its syncs wait until there are more; docs/operations.md says how to see who spent them";
    return warning(`tokens of the CRM: ${names.get(id) ?? "a company"} (${id}) has ${left}${refused}`, todo);
  });
}
