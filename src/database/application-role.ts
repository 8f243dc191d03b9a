import { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { Client, type PoolConfig } from "pg";
import { SECOND_MS } from "../platform/clock";
import { messageOf, ServiceError } from "../platform/errors";
import { type Secret, withOptions } from "../platform/keyring";
import { type Ask, readLayout } from "./cluster";
import { DatabaseRoleError, needsOperator, refuseUnfit, type Unfit, unavailable } from "./errors";
import { type SessionLimits, SILENCE_MS, withoutTransactionLimit } from "./session-limits";

/** Owns the tables. All sessions of the service act as this role, which sees one tenant's rows at a time. */
export const APPLICATION_ROLE = "crm_connection";
/** For work that begins with no tenant: a role of its own, because every row policy is asked in every statement. */
export const ACROSS_TENANTS_ROLE = "crm_connection_across";
/** Citus tells its nodes what a transaction sets for itself, as its tenant. To a server without it this means nothing. */
const REACHES_NODES = "-c citus.propagate_set_commands=local";
/** Any fixed number: the name of "making the roles" among this database's advisory locks. */
const ROLE_LOCK = 7_302_520;

/** An operator waits for it, perhaps before something that takes connections and never speaks. */
export const CONNECT_TIMEOUT_MS = 10 * SECOND_MS;

/** Of much that is asked there is no limit: a host that goes without a word is found out by TCP. */
const ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: SILENCE_MS };

/** Not yet connected. @throws DatabaseUnavailableError where a certificate that the address names cannot be read */
export function connectionTo(url: Secret): Client {
  const config = { connectionString: url.reveal(), connectionTimeoutMillis: CONNECT_TIMEOUT_MS, ...ALIVE };
  try {
    // What it is asked next says so.
    return new Client(config).on("error", () => undefined);
  } catch (cause) {
    throw unavailable(url, cause);
  }
}

/**
 * By which a session finds out that its server's host has gone without a word. Where nothing is awaited TCP asks, which by
 * itself begins after two hours, and gives it up 10 s later. What was sent and not taken it would send again for a quarter of
 * an hour: an answer is waited for a little longer than the server lets a statement take.
 */
export function patience({ statement }: SessionLimits): PoolConfig {
  const longest = statement === 0 ? 0 : statement + SILENCE_MS;
  return { ...ALIVE, stream: () => socketFor(longest) };
}

const NO_ANSWER = "The database did not answer in time";

/** @param patienceMs until it is given up where nothing comes and nothing is sent; 0: it is not */
function socketFor(patienceMs: number): Socket {
  const socket = new Socket().setTimeout(patienceMs);
  // Again and again: one that is spared may be left later.
  return socket.on("timeout", async () => {
    const heard = socket.bytesRead;
    // A process that was frozen reads first what came meanwhile.
    await setImmediate();
    if (socket.bytesRead === heard) socket.destroy(Object.assign(new Error(NO_ANSWER), { code: "ETIMEDOUT" }));
  });
}

/** Which it is, and whether it is set as its address says. */
const SESSION = "SELECT pg_backend_pid() AS pid, current_setting('crm.tenant', true) = '0' AS keeps";
/** As PgBouncer says it. */
const POOLER = /startup parameter|pooling mode/;

/** What a session is asked while an operator waits. */
export const answering =
  (session: Client) =>
  async <T>(text: string, values: unknown[] = []): Promise<T[]> =>
    (await session.query({ text, values, ...AN_ANSWER })).rows;
const AN_ANSWER = { query_timeout: CONNECT_TIMEOUT_MS };

/**
 * Work in a session of its own. Behind a pooler that gives a session to one client after the other, a statement meets another
 * tenant's setting and sees nothing: it is looked for before anything is set or locked, which would stay in somebody else's.
 * @returns why the work was not begun; null: it is done
 * @throws DatabaseUnavailableError, and what the work throws
 */
export async function inOwnSession(url: Secret, work: (own: Client) => Promise<void>): Promise<Unfit | null> {
  const marked = withOptions(url, "-c crm.tenant=0");
  const [own, other] = [connectionTo(marked), connectionTo(marked)];
  try {
    const pooled = await pooledBecause(own, other).catch((cause: unknown) => {
      throw unavailable(url, cause);
    });
    await other.end();
    if (!pooled) await work(own);
    return pooled;
  } finally {
    await Promise.allSettled([own.end(), other.end()]);
  }
}

async function pooledBecause(...sessions: [Client, Client]): Promise<Unfit | null> {
  try {
    for (const session of sessions) await session.connect();
    const [one, other] = [answering(sessions[0]), answering(sessions[1])];
    const look = async (ask: Ask) => (await ask<{ pid: number; keeps: boolean | null }>(SESSION))[0];
    // Twice: the next free one, or the one that was free last.
    const pids = [(await look(one))?.pid, (await look(one))?.pid];
    await other("BEGIN");
    const held = await look(other);
    const isShared = pids[0] !== pids[1] || pids.includes(held?.pid) || pids[0] !== (await look(one))?.pid;
    if (isShared) return pooler("which gives a session to one client after the other");
    return held?.keeps ? null : pooler("which drops what a session begins with, as its role and limits");
  } catch (cause) {
    if (POOLER.test(messageOf(cause))) return pooler(`which says: ${messageOf(cause)}`);
    throw cause;
  }
}

const pooler = (how: string): Unfit => ({
  what: `a pooler stands before it, ${how}`,
  todo: "give DATABASE_URL the address of PostgreSQL itself",
});

/**
 * Whoever DATABASE_URL names, a superuser perhaps, all sessions act as a role that cannot pass the row policies. What is
 * missing of the roles and of their rights is made, where the user may, and else told; where nothing is missing, nothing is asked.
 * The address says too whether the server knows a limit for transactions, which PostgreSQL 17 has brought.
 * @returns the address by which the service connects
 * @throws DatabaseUnavailableError, DatabaseRoleError, UnfitDatabaseError with what to do
 */
export async function asApplication(url: Secret): Promise<Secret> {
  let known = url;
  const prepare = async (client: Client) => {
    const ask: Ask = async (sql) => (await client.query(sql)).rows;
    const [limit] = await ask("SELECT FROM pg_settings WHERE name = 'transaction_timeout'");
    if (!limit) known = withoutTransactionLimit(url);
    refuseUnfit(await unfitBecause(ask));
    const layout = await readLayout(ask);
    if (layout.kind === "UNUSABLE") refuseUnfit(layout);
    if (await lacks(client)) {
      await client.query("SELECT pg_advisory_lock($1)", [ROLE_LOCK]);
      if (await lacks(client)) await client.query(MAKE_ROLES).catch(() => undefined);
    }
    const missing = await lacks(client);
    if (missing) refuse(missing);
  };
  const pooled = await inOwnSession(url, prepare).catch((cause: unknown) => {
    throw cause instanceof ServiceError || needsOperator(cause) ? cause : unavailable(url, cause);
  });
  refuseUnfit(pooled);
  return withOptions(known, `-c role=${APPLICATION_ROLE} ${REACHES_NODES}`);
}

/** Why nothing can be written to this database, or not safely; null where it can. What a session sets for itself is not looked at. */
export async function unfitBecause(ask: Ask): Promise<Unfit | null> {
  const [unfit = null] = await ask<Unfit>(UNFIT);
  return unfit;
}

/** A session of ours may not set session_replication_role. */
const UNFIT = `SELECT what, todo FROM (VALUES
  (pg_is_in_recovery(), 'it is a standby, which takes no writes', 'give DATABASE_URL the primary''s address'),
  ((SELECT reset_val = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only'),
    'default_transaction_read_only is on', 'look whether its disk is full, and set it off'),
  (current_setting('session_replication_role') = 'replica',
    'session_replication_role is replica, so that no foreign key holds', 'RESET it for the database and its user'),
  (current_setting('server_encoding') <> 'UTF8',
    'its encoding is ' || current_setting('server_encoding') || ', which not every name has a place in',
    'make it with ENCODING ''UTF8''')) looked (is_so, what, todo) WHERE is_so LIMIT 1`;

/** Why the user cannot act as the roles yet; null where all is there. */
async function lacks(client: Client): Promise<Error | null> {
  try {
    await client.query(`SET ROLE ${ACROSS_TENANTS_ROLE}; SET ROLE ${APPLICATION_ROLE}`);
    const { rows } = await client.query<{ lack: string }>(LACK);
    return rows[0] ? new Error(rows[0].lack) : null;
  } catch (error) {
    return new Error(messageOf(error));
  } finally {
    await client.query("RESET ROLE");
  }
}

/** Citus passes a statement on in the name of the role that asks, and logs in to its nodes as that. */
const LACK = `SELECT lack FROM (VALUES
  (has_database_privilege(current_database(), 'CREATE') AND has_schema_privilege('public', 'CREATE'),
    'the role ${APPLICATION_ROLE} may not create tables'),
  (pg_has_role('${ACROSS_TENANTS_ROLE}', current_user, 'USAGE'), '${ACROSS_TENANTS_ROLE} does not inherit ${APPLICATION_ROLE}'),
  (NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') OR (SELECT bool_and(rolcanlogin) FROM pg_roles
    WHERE rolname IN ('${APPLICATION_ROLE}', '${ACROSS_TENANTS_ROLE}')), 'Citus cannot log in to its nodes as them')
  ) looked (is_so, lack) WHERE NOT is_so LIMIT 1`;

function refuse(cause: unknown): never {
  const what = `The database's user may not act as ${APPLICATION_ROLE} and ${ACROSS_TENANTS_ROLE}: ${messageOf(cause)}.`;
  throw new DatabaseRoleError(
    `${what} As an administrator of the server, run what docs/operations.md lists under Roles.`,
  );
}

/** Roles belong to the whole server: another database's service may be making them at the same moment. */
const MAKE_ROLES = `
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['${APPLICATION_ROLE}', '${ACROSS_TENANTS_ROLE}'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', name);
    END IF;
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')
      AND NOT (SELECT rolcanlogin FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('ALTER ROLE %I LOGIN', name);
    END IF;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
      EXECUTE format('GRANT %I TO %I', name, current_user);
    END IF;
  END LOOP;
  IF NOT pg_has_role('${ACROSS_TENANTS_ROLE}', '${APPLICATION_ROLE}', 'USAGE') THEN
    GRANT ${APPLICATION_ROLE} TO ${ACROSS_TENANTS_ROLE};
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
  EXECUTE format('GRANT CREATE, CONNECT, TEMPORARY ON DATABASE %I TO ${APPLICATION_ROLE}', current_database());
END $$;
GRANT USAGE, CREATE ON SCHEMA public TO ${APPLICATION_ROLE};
`;
