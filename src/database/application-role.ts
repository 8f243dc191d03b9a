import { Client } from "pg";
import { Secret } from "../platform/secret";
import { unavailable } from "./migrate";
import { withoutTransactionLimit } from "./session-limits";

/** Owns the tables and works with them where the configured user would pass every row policy. */
export const APPLICATION_ROLE = "crm_connection";
/** Any fixed number: the name of "making the role" among this database's advisory locks. */
const ROLE_LOCK = 7_302_520;

/**
 * A superuser, and a role with BYPASSRLS, pass every row policy. Where the configured user is one, all sessions of the
 * service act as a role that cannot; it is made where it is missing. Any other user works as itself.
 * The address says whether the server knows a limit for transactions, which PostgreSQL 17 has brought.
 * @throws DatabaseUnavailableError with what to do
 */
export async function withoutBypass(url: Secret): Promise<Secret> {
  let known = url;
  const client = new Client({ connectionString: url.reveal() });
  try {
    await client.connect();
    const { rows } = await client.query(
      `SELECT rolsuper OR rolbypassrls AS bypasses, current_setting('transaction_timeout', true) IS NULL AS "isOld"
       FROM pg_roles WHERE rolname = current_user`,
    );
    if (rows[0]?.isOld) known = withoutTransactionLimit(url);
    if (!rows[0]?.bypasses) return known;
    await client.query("SELECT pg_advisory_lock($1)", [ROLE_LOCK]);
    await client.query(MAKE_ROLE);
  } catch (cause) {
    throw unavailable(url, cause);
  } finally {
    await client.end().catch(() => undefined);
  }
  const limited = new URL(known.reveal());
  limited.searchParams.set("options", `-c role=${APPLICATION_ROLE}`);
  return new Secret(limited.href);
}

/** Roles belong to the whole server: another database's service may be making it at the same moment. */
const MAKE_ROLE = `
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${APPLICATION_ROLE}') THEN
    CREATE ROLE ${APPLICATION_ROLE} NOLOGIN NOSUPERUSER NOBYPASSRLS;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
  EXECUTE format('GRANT CREATE, CONNECT, TEMPORARY ON DATABASE %I TO ${APPLICATION_ROLE}', current_database());
END $$;
GRANT USAGE, CREATE ON SCHEMA public TO ${APPLICATION_ROLE};
`;
