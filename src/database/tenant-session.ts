import { createConnection } from "node:net";
import type { PoolClient } from "pg";
import { type DataSource, EntityManager, type QueryRunner } from "typeorm";
import { ServiceError } from "../platform/errors";
import { keepingSession } from "./kept-session";
import type { ObserveSql } from "./observed-sql";

/** Whose rows a database session may see: one tenant's, or (for work that begins without one) every tenant's. */
export type Reach = { tenantId: string } | "every tenant";

/** The operation has taken longer than it may; what it asked of the database was called off. */
export class DeadlineError extends ServiceError {
  readonly code = "DEADLINE_EXCEEDED";
}

/** The code of PostgreSQL's CancelRequest message. */
const CANCEL_REQUEST = 80_877_102;
const CANCEL_TIMEOUT_MS = 2_000;

/** Sessions are pooled and keep their settings: what each is set to, so that it is set again for another reach. */
const reachOf = new WeakMap<PoolClient, string>();

/**
 * An entity manager whose statements and transactions all run in sessions that are set to `reach` first. The row
 * policies of the tables read that setting, so a statement that forgot its tenant finds nothing.
 * @param signal calls off what runs, and refuses what comes later, with a DeadlineError
 */
export function managerWithin(
  dataSource: DataSource,
  reach: Reach,
  observe: ObserveSql,
  signal?: AbortSignal,
): EntityManager {
  const make = () => bind(dataSource.createQueryRunner(), reach, observe, signal);
  const bound: DataSource = Object.create(dataSource, {
    createQueryRunner: { value: signal ? keepingSession(make) : make },
  });
  return new EntityManager(bound);
}

function bind(runner: QueryRunner, reach: Reach, observe: ObserveSql, signal?: AbortSignal): QueryRunner {
  const connect = runner.connect.bind(runner);
  runner.connect = async () => {
    const session: PoolClient = await connect();
    await setReach(session, reach, signal ? "force_generic_plan" : "auto");
    return session;
  };
  prepare(runner, observe);
  if (signal) callOffAt(signal, runner);
  return runner;
}

/** Reads whose plans are kept by the sessions. The texts are the code's own, so there are few; the rest is not prepared. */
const MAX_PREPARED = 500;
const preparedNames = new Map<string, string>();
/** PostgreSQL's code for a kept plan whose result has changed, as `SELECT t.*` does when a newer release adds a column. */
const STALE_PLAN = "0A000";

/** A read that comes again is parsed and planned once in a session. Transactions are left alone: they could not try again. */
function prepare(runner: QueryRunner, observe: ObserveSql): void {
  const query = runner.query.bind(runner) as (text: unknown, ...rest: unknown[]) => Promise<unknown>;
  const ask = async (text: string, rest: unknown[]): Promise<unknown> => {
    const name = runner.isTransactionActive ? null : nameOf(text);
    if (!name) return query(text, ...rest);
    try {
      return await query({ name, text }, ...rest);
    } catch (error) {
      if ((error as { code?: string }).code !== STALE_PLAN) throw error;
      return query(text, ...rest);
    }
  };
  runner.query = async (text: string, ...rest: unknown[]) => (await observe(text, () => ask(text, rest))) as never;
}

function nameOf(text: string): string | null {
  const known = preparedNames.get(text);
  if (known || preparedNames.size >= MAX_PREPARED || !/^\s*(SELECT|WITH)\b/i.test(text)) return known ?? null;
  const name = `read_${preparedNames.size + 1}`;
  preparedNames.set(text, name);
  return name;
}

/**
 * An operation's reads find rows by keys, whatever the values, and to plan one takes several times as long as to
 * execute it: their plans are made once in a session. Work without a deadline is planned as PostgreSQL sees fit.
 */
type Planning = "force_generic_plan" | "auto";

async function setReach(session: PoolClient, reach: Reach, planning: Planning): Promise<void> {
  const wanted = `${planning} ${reach === "every tenant" ? "every" : `one:${reach.tenantId}`}`;
  if (reachOf.get(session) === wanted) return;
  // Forgotten first: a session whose setting failed half-way must not be taken for one that is set.
  reachOf.delete(session);
  const [tenant, every] = reach === "every tenant" ? ["", "on"] : [reach.tenantId, "off"];
  await session.query({ name: "reach", text: SET_REACH, values: [tenant, every, planning] });
  reachOf.set(session, wanted);
}

const SET_REACH = `SELECT set_config('crm.tenant', $1, false), set_config('crm.every_tenant', $2, false),
  set_config('plan_cache_mode', $3, false)`;

/** A statement that runs at the deadline is cancelled in the database, and its session is free again before it is reused. */
function callOffAt(signal: AbortSignal, runner: QueryRunner): void {
  const query = runner.query.bind(runner) as (...args: unknown[]) => Promise<unknown>;
  runner.query = async (...args: unknown[]): Promise<never> => {
    if (signal.aborted) throw deadline();
    let cancelling: Promise<void> | null = null;
    const callOff = () => {
      cancelling = cancel(runner);
    };
    signal.addEventListener("abort", callOff, { once: true });
    try {
      return (await query(...args)) as never;
    } catch (error) {
      if (signal.aborted) throw deadline({ cause: error });
      throw error;
    } finally {
      signal.removeEventListener("abort", callOff);
      await cancelling;
    }
  };
}

type Session = PoolClient & { host: string; port: number; processID: number; secretKey: number };

/**
 * PostgreSQL's CancelRequest, on a connection of its own: it needs no free session and no right over the one that it
 * names. Ends when the server has taken it.
 */
async function cancel(runner: QueryRunner): Promise<void> {
  const { host, port, processID, secretKey }: Session = await runner.connect();
  const packet = Buffer.alloc(16);
  for (const [index, value] of [16, CANCEL_REQUEST, processID, secretKey].entries())
    packet.writeInt32BE(value, index * 4);
  await new Promise<void>((resolve) => {
    const socket = host.startsWith("/") ? createConnection(`${host}/.s.PGSQL.${port}`) : createConnection(port, host);
    socket.setTimeout(CANCEL_TIMEOUT_MS, () => socket.destroy());
    // Where it cannot be sent, the statement goes on until it ends by itself.
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
    socket.on("connect", () => socket.end(packet));
    socket.resume();
  });
}

const deadline = (options?: ErrorOptions) =>
  new DeadlineError("This took too long and was called off. Ask for less at once, or try again.", options);
