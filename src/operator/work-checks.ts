import { SHORT_TODAY } from "../connections/budget";
import { placeOf } from "../connections/credentials";
import { ACROSS_TENANTS_ROLE, type Look } from "../database/application-role";
import { type EncryptionKey, Keyring, keyIdOf, UnsealError } from "../platform/keyring";
import { type Finding, fault, ok, warning } from "./finding";

const LATE = "5 minutes";
/** A turn of a run takes 15 seconds; a purge may take minutes. */
const STUCK = "15 minutes";

/** Checks of the service's own work: keys, connections, jobs, writes. The session must act as the service would. */
export async function checkWork(look: Look, keys: readonly EncryptionKey[]): Promise<Finding[]> {
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
    ...(await checkBudgets(look)),
  ];
}

/** The stop that holds, in words; null: none does. */
export async function stopFinding(look: Look): Promise<Finding | null> {
  const [table] = await look.rows<{ exists: boolean }>("SELECT to_regclass('public.crm_stop') IS NOT NULL AS exists");
  if (!table?.exists) return null;
  const [stop] = await look.rows<{ since: Date; reason: string }>(
    "SELECT begun_at AS since, reason FROM crm_stop WHERE ended_at IS NULL ORDER BY begun_at LIMIT 1",
  );
  if (!stop) return null;
  const what = `the CRM: all calls are stopped since ${stop.since.toISOString()}: ${stop.reason}`;
  return warning(
    what,
    "npm run crm:resume when it is over; until then nothing is asked of the CRM, and not by doctor either",
  );
}

/** One row for each key id, with one credential to try it on: keys of one name may still differ. */
const SEALED = `
  SELECT header, count(DISTINCT tenant_id)::int AS tenants,
    (array_agg(json_build_array(tenant_id, copy_id::text, part)))[1] AS place, (array_agg(sealed))[1] AS sealed
  FROM (
    SELECT tenant_id, copy_id, part, sealed, substr(sealed, 1, 2 + get_byte(sealed, 1)) AS header
    FROM credential, LATERAL (VALUES ('access_token', access_token), ('refresh_token', refresh_token)) p (part, sealed)
  ) parts GROUP BY header`;

interface Sealed {
  header: Buffer;
  tenants: number;
  place: [tenantId: number, copyId: string, column: string];
  sealed: Buffer;
}

async function checkKeys(look: Look, keys: readonly EncryptionKey[]): Promise<Finding[]> {
  const keyring = new Keyring(keys);
  const found = await look.rows<Sealed>(SEALED);
  if (found.length === 0) return [ok("keys: no credential is stored yet")];
  return found.map(({ header, tenants, place, sealed }) => {
    const what = `keys: ${tenants} connection(s) have tokens sealed under "${keyIdOf(header)}"`;
    if (!keys.some(({ id }) => id === keyIdOf(header))) {
      return fault(
        `${what}, which is not in ENCRYPTION_KEYS`,
        "put that key back; without it they must authorize again",
      );
    }
    try {
      keyring.open(sealed, placeOf(place[0], Number(place[1]), place[2]));
    } catch (error) {
      if (!(error instanceof UnsealError)) throw error;
      return fault(`${what}, but the key of that name does not open them`, "put the key back that sealed them");
    }
    if (keyIdOf(header) === keys[0]?.id) return ok(`${what}, the key that seals now`);
    return warning(
      `${what}, which is not the first of ENCRYPTION_KEYS`,
      "npm run keys:rotate, before that key is removed",
    );
  });
}

async function checkConnections(look: Look): Promise<Finding[]> {
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
    return warning(what, "docs/operations.md says what each means; connection { trouble { message } } has the words");
  });
}

async function checkQueue(look: Look): Promise<Finding[]> {
  const found = await look.rows<{ task: string; late: number; stuck: number; gone: number }>(
    `SELECT task_identifier AS task,
       count(*) FILTER (WHERE locked_at IS NULL AND attempts < max_attempts AND run_at < now() - interval '${LATE}')::int AS late,
       count(*) FILTER (WHERE locked_at < now() - interval '${STUCK}')::int AS stuck,
       count(*) FILTER (WHERE locked_at IS NULL AND attempts >= max_attempts)::int AS gone
     FROM graphile_worker.jobs GROUP BY 1 ORDER BY 1`,
  );
  const findings = found.flatMap(({ task, late, stuck, gone }) => [
    ...(late > 0 ? [warning(`queue: ${late} job(s) ${task} wait for more than ${LATE}`, LATE_TODO)] : []),
    ...(stuck > 0 ? [warning(`queue: ${stuck} job(s) ${task} are held for more than ${STUCK}`, STUCK_TODO)] : []),
    ...(gone > 0
      ? [fault(`queue: ${gone} job(s) ${task} were given up`, "the log has their errors: find out why")]
      : []),
  ]);
  return findings.length > 0 ? findings : [ok("queue: no job is late, stuck or given up")];
}

const LATE_TODO = "start a worker (ROLES with worker), or more of them";
const STUCK_TODO = "their worker has died or hangs; workers replace what matters by themselves within minutes";

async function checkWrites(look: Look): Promise<Finding> {
  const [found] = await look.rows<{ count: number }>(
    `SELECT count(*)::int AS count FROM (
       SELECT requested_at FROM note_write WHERE state = 'UNKNOWN'
       UNION ALL SELECT requested_at FROM field_write WHERE state = 'UNKNOWN') w
     WHERE requested_at < now() - interval '1 hour'`,
  );
  if (!found?.count) return ok("writes: none is UNKNOWN for more than an hour");
  const todo =
    "they are looked for and never sent again; where the CRM is connected, look at its record by the reference";
  return warning(`writes: ${found.count} are UNKNOWN for more than an hour`, todo);
}

interface ShortCompany {
  id: string;
  remaining: number | null;
  limit: number | null;
}

const SHORT = `SELECT b.crm_company_id::text AS id, CASE WHEN b.limited_at IS NULL THEN b.remaining END AS remaining,
    b.daily_limit AS "limit"
  FROM crm_budget b WHERE ${SHORT_TODAY} ORDER BY b.crm_company_id LIMIT 20`;
/** Apart from the other: on a cluster these tables lie on the nodes. */
const NAMES = `SELECT s.crm_company_id::text AS id, min(c.company_name) AS name
  FROM synced_copy s JOIN connection c ON c.tenant_id = s.tenant_id AND c.copy_id = s.id
  WHERE s.crm_company_id = ANY ($1::bigint[]) GROUP BY 1`;

async function checkBudgets(look: Look): Promise<Finding[]> {
  const found = await look.rows<ShortCompany>(SHORT);
  if (found.length === 0) return [ok("tokens of the CRM: no company is short today")];
  const named = await look.rows<{ id: string; name: string | null }>(NAMES, [found.map(({ id }) => id)]);
  const names = new Map(named.map(({ id, name }) => [id, name]));
  return found.map(({ id, remaining, limit }) => {
    const left = remaining === null ? "none left today" : `${remaining} of ${limit ?? "an unknown number"} left today`;
    const todo = "its syncs wait for the day's end; docs/operations.md says how to see who spent them";
    return warning(`tokens of the CRM: ${names.get(id) ?? "a company"} (${id}) has ${left}`, todo);
  });
}
