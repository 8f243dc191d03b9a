import { ACROSS_TENANTS_ROLE, APPLICATION_ROLE, type Look } from "../database/application-role";
import { readLayout, readNodesAway } from "../database/cluster";
import { appliedMigrations, migrationNames } from "../database/data-source";
import { SECOND_MS } from "../platform/clock";
import { messageOf } from "../platform/errors";
import { clockFinding, type Finding, fault, ok, warning } from "./finding";

/** With these the tests have passed: the embedded one, and the oldest that is served. */
const TESTED_MAJORS = [15, 18];
/** A lease lasts 30 seconds and a beat comes every 10. */
const CLOCK = { quietMs: 2 * SECOND_MS, faultMs: 10 * SECOND_MS };

type Check = (look: Look) => Promise<Finding | Finding[]>;

async function checkVersion(look: Look): Promise<Finding> {
  const [found] = await look.rows<{ version: string; database: string }>(
    "SELECT current_setting('server_version') AS version, current_database() AS database",
  );
  const what = `database: PostgreSQL ${found?.version} answers as "${found?.database}"`;
  if (TESTED_MAJORS.includes(Number.parseInt(found?.version ?? "", 10))) return ok(what);
  return warning(what, `the service is tested with PostgreSQL ${TESTED_MAJORS.join(" and ")}: use one of these`);
}

async function checkClock(look: Look): Promise<Finding> {
  const before = Date.now();
  const [found] = await look.rows<{ now: Date }>("SELECT clock_timestamp() AS now");
  const here = (before + Date.now()) / 2;
  return clockFinding("the database", (found?.now.getTime() ?? 0) - here, CLOCK);
}

/** Decision 0042: whoever logs in, the service acts as roles of its own, and a tenant's sessions as one that passes no policy. */
async function checkRole(look: Look): Promise<Finding> {
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
  } catch (error) {
    const what = `row policies: ${name} may not act as the roles of the service: ${messageOf(error)}`;
    return fault(what, "an administrator runs what docs/operations.md has under Roles");
  }
  const [own] = await look.rows<{ passes: boolean }>(
    `SELECT pg_has_role(current_user, '${ACROSS_TENANTS_ROLE}', 'USAGE') OR rolbypassrls OR rolsuper AS passes
     FROM pg_roles WHERE rolname = current_user`,
  );
  if (!own?.passes) return ok(`row policies: ${name} acts as ${APPLICATION_ROLE}, which cannot pass them`);
  const todo = `REVOKE ${ACROSS_TENANTS_ROLE} FROM ${APPLICATION_ROLE}; ALTER ROLE ${APPLICATION_ROLE} NOBYPASSRLS`;
  return fault(`row policies: ${APPLICATION_ROLE} passes them`, todo);
}

async function checkMigrations(look: Look): Promise<Finding> {
  const { names, foreign } = await appliedMigrations((sql) => look.rows(sql));
  if (foreign) return fault(`migrations: ${foreign.what}`, foreign.todo);
  const done = new Set(names);
  const known = migrationNames;
  const newer = [...done].filter((name) => !known.includes(name));
  if (newer.length > 0) {
    const what = `migrations: the database knows ${newer.length} that this version does not (${newer.join(", ")})`;
    return warning(what, "a newer version has been started on it: run that one");
  }
  const due = known.filter((name) => !done.has(name));
  if (due.length === 0) return ok(`migrations: all ${known.length} are applied`);
  const what = `migrations: ${due.length} of ${known.length} are to be applied (${due.join(", ")})`;
  return warning(what, "nothing to do: the next start applies them. Have a backup");
}

/** Seen from a session that was set to no tenant: it must see nobody's rows. */
async function checkPolicies(look: Look): Promise<Finding[]> {
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
async function checkLayout(look: Look): Promise<Finding> {
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
  checkClock,
  checkRole,
  checkMigrations,
  checkLayout,
  checkPolicies,
];
