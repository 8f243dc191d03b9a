import type { PoolClient } from "pg";
import { type DataSource, EntityManager, type QueryRunner } from "typeorm";
import { isWorkOver, workFields } from "../platform/work";
import { callOffAt, deadline } from "./deadline";
import { keepingSession } from "./kept-session";
import { type ObserveSql, observeStatements } from "./observed-sql";
import { prepareReads } from "./prepared-reads";
import { HeldUpError, TRY_AGAIN } from "./session-limits";
import type { SessionTurns } from "./session-turns";

/** Sessions are pooled and keep their settings: what each is set to, so that it is set again for another tenant. */
const reachOf = new WeakMap<PoolClient, string>();

/**
 * An entity manager whose statements and transactions all run in sessions that are set to the tenant first. The row
 * policies of the tables read that setting, so a statement that forgot its tenant finds nothing.
 * @param tenantId null: to none, which sees nothing until it acts as another role
 * @param signal calls off what runs, and refuses what comes later, with a DeadlineError
 */
export function managerWithin(
  dataSource: DataSource,
  tenantId: number | null,
  observe: ObserveSql,
  turns: SessionTurns,
  signal?: AbortSignal,
  reach: Reach = "session",
): EntityManager {
  const make = () =>
    bind(takingTurns(dataSource.createQueryRunner(), tenantId, turns, signal), tenantId, observe, signal, reach);
  const bound: DataSource = Object.create(dataSource, {
    createQueryRunner: { value: signal ? keepingSession(make) : make },
  });
  return new EntityManager(bound);
}

/** An operation that waits for longer is told so; a read waits until its deadline, and a job for as long as it takes. */
const TURN_WITHIN_MS = 10_000;

/** A session is asked of the pool when it is this tenant's turn, and its place given back with it. */
function takingTurns(
  runner: QueryRunner,
  tenantId: number | null,
  turns: SessionTurns,
  signal?: AbortSignal,
): QueryRunner {
  const use = signal ? "read" : workFields().operationId !== undefined ? "work" : "background";
  const connect = runner.connect.bind(runner);
  const release = runner.release.bind(runner);
  let turn: Promise<() => void> | null = null;
  runner.connect = async () => {
    const within = signal ?? (use === "work" ? AbortSignal.timeout(TURN_WITHIN_MS) : undefined);
    turn ??= turns.take(String(tenantId ?? ""), use, within);
    await turn.catch((cause: unknown) => {
      throw signal ? deadline({ cause }) : new HeldUpError(TRY_AGAIN, { cause });
    });
    return connect();
  };
  runner.release = async () => {
    await release();
    await turn?.then(
      (giveBack) => giveBack(),
      () => undefined,
    );
  };
  return runner;
}

function bind(
  runner: QueryRunner,
  tenantId: number | null,
  observe: ObserveSql,
  signal?: AbortSignal,
  reach: Reach = "session",
): QueryRunner {
  const connect = runner.connect.bind(runner);
  let hasBegun = false;
  runner.connect = async () => {
    const session: PoolClient = await connect();
    if (reach === "session") await setReach(session, tenantId, signal ? "force_generic_plan" : "auto");
    // After the last wait before the first statement. What has begun ends by its session's limits.
    if (!hasBegun && isWorkOver()) throw deadline();
    hasBegun = true;
    return session;
  };
  if (reach === "session") prepareReads(runner);
  else byTransaction(runner, tenantId);
  observeStatements(runner, observe);
  if (signal) callOffAt(signal, runner);
  return runner;
}

export type Reach = "session" | "transaction";

function byTransaction(runner: QueryRunner, tenantId: number | null): void {
  const query = runner.query.bind(runner) as (...args: unknown[]) => Promise<never>;
  const start = runner.startTransaction.bind(runner);
  runner.startTransaction = async (...args) => {
    await start(...args);
    if (tenantId !== null) await query(`SET LOCAL crm.tenant = '${tenantId}'`);
  };
  runner.query = async (...args: unknown[]) => {
    if (runner.isTransactionActive) return query(...args);
    await runner.startTransaction();
    try {
      const done = await query(...args);
      await runner.commitTransaction();
      return done;
    } catch (error) {
      await runner.rollbackTransaction().catch(() => undefined);
      throw error;
    }
  };
}

/**
 * An operation's reads find rows by keys, whatever the values, and to plan one takes several times as long as to
 * execute it: their plans are made once in a session. Work without a deadline is planned as PostgreSQL sees fit.
 */
type Planning = "force_generic_plan" | "auto";

async function setReach(session: PoolClient, tenantId: number | null, planning: Planning): Promise<void> {
  const wanted = `${planning} ${tenantId}`;
  if (reachOf.get(session) === wanted) return;
  // Forgotten first: a session whose setting failed half-way must not be taken for one that is set.
  reachOf.delete(session);
  await session.query({ name: "reach", text: SET_REACH, values: [String(tenantId ?? ""), planning] });
  reachOf.set(session, wanted);
}

const SET_REACH = `SELECT set_config('crm.tenant', $1, false), set_config('plan_cache_mode', $2, false)`;
