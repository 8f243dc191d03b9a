import { moveToNeedsReauthorization } from "../../src/connections/connection";
import { HOUR_MS } from "../../src/platform/clock";
import type { Connected, Renewals } from "./renewals";
import { connect, until } from "./stories";
import { copyOf } from "./tokens";

/** Holds a tenant's row until it is released. */
export async function lockRow(on: Renewals, table: string, { tenantId }: Connected) {
  const session = on.database.dataSource.createQueryRunner();
  await session.startTransaction();
  await session.query(`SELECT 1 FROM ${table} WHERE tenant_id = $1 FOR UPDATE`, [tenantId]);
  return { release: () => session.commitTransaction().then(() => session.release()) };
}

/** As PostgreSQL does of a process that it does not reach any more. */
export async function endLockSessions(on: Renewals): Promise<void> {
  const ended = await on.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database d ON d.oid = database
     WHERE locktype = 'advisory' AND objsubid = 2 AND datname = current_database()`,
  );
  expect(ended).toHaveLength(1);
}

/** Waits until so many sessions of this database wait for a row. */
export function waiting(on: Renewals, sessions: number): Promise<boolean> {
  return until(`${sessions} wait for a row`, async () => {
    const waits = (await on.database.lockWaits()).filter(({ sql }) => !sql.includes("pg_advisory"));
    return new Set(waits.map(({ pid }) => pid)).size === sessions;
  });
}

/** As where the CRM has refused the present credential. */
export async function loseAuthorization(on: Renewals, acme: Connected): Promise<void> {
  const { version } = await on.stored(acme);
  await on.access.database
    .tenant(acme.tenantId)
    .transaction((scope) => moveToNeedsReauthorization(scope, acme.copyId, version, "GRANT_REVOKED", on.clock()));
}

/** A renewal that is sent, for a token that has grown old; its answer is held back until `end`. */
export async function renewalInFlight(on: Renewals, acme: Connected) {
  on.later(HOUR_MS);
  const end = on.fail({ kind: "hang" });
  const renewal = acme.source.current();
  renewal.catch(() => undefined);
  await on.isSent();
  return { renewal, end };
}

/** The only answer of the token endpoint that is held back until `end`. */
export async function renewalHeldBack(on: Renewals, acme: Connected) {
  const end = on.simulator.control.fail({ match: "/oauth/token", times: 1, with: { kind: "hang" } });
  const renewal = acme.source.current();
  renewal.catch(() => undefined);
  await on.isSent();
  return { renewal, end };
}

/** The same, of a process that has lost its lock. */
export async function renewalWithoutLock(on: Renewals, acme: Connected) {
  on.later(HOUR_MS);
  const held = await renewalHeldBack(on, acme);
  await endLockSessions(on);
  return held;
}

/** A renewal whose answer is held back until `end`, while the authorization is lost and a person authorizes anew. */
export async function renewalDuringAuthorization(on: Renewals, acme: Connected) {
  const held = await renewalHeldBack(on, acme);
  await loseAuthorization(on, acme);
  await connect(on.service, on.simulator, { tenant: acme.tenant });
  expect(await copyOf(on.database, acme.tenant)).toBe(acme.copyId);
  return held;
}

export async function disconnect(on: Renewals, { tenant }: Connected): Promise<void> {
  const answer = await on.service.ask("mutation { disconnect { __typename } }", {}, { tenant });
  expect(answer).toMatchObject({ data: { disconnect: { __typename: "DisconnectSuccess" } } });
}
