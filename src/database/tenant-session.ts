import type { PoolClient } from "pg";
import { type DataSource, EntityManager, type QueryRunner } from "typeorm";
import { isWorkOver, workFields } from "../platform/work";
import { callOffAt, deadline } from "./deadline";
import { keepingSession } from "./kept-session";
import { type ObserveSql, observeStatements } from "./observed-sql";
import { prepareReads } from "./prepared-reads";
import { HeldUpError, TRY_AGAIN } from "./session-limits";
import type { SessionTurns } from "./session-turns";

/** Whose rows a database session may see: one tenant's, or (for work that begins without one) every tenant's. */
export type Reach = { tenantId: string } | "every tenant";

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
  turns: SessionTurns,
  signal?: AbortSignal,
): EntityManager {
  const make = () => bind(takingTurns(dataSource.createQueryRunner(), reach, turns, signal), reach, observe, signal);
  const bound: DataSource = Object.create(dataSource, {
    createQueryRunner: { value: signal ? keepingSession(make) : make },
  });
  return new EntityManager(bound);
}

/** An operation that waits for longer is told so; a read waits until its deadline, and a job for as long as it takes. */
const TURN_WITHIN_MS = 10_000;

/** A session is asked of the pool when it is this tenant's turn, and its place given back with it. */
function takingTurns(runner: QueryRunner, reach: Reach, turns: SessionTurns, signal?: AbortSignal): QueryRunner {
  const tenantId = reach === "every tenant" ? "" : reach.tenantId;
  const use = signal ? "read" : workFields().operationId !== undefined && tenantId !== "" ? "work" : "background";
  const connect = runner.connect.bind(runner);
  const release = runner.release.bind(runner);
  let turn: Promise<() => void> | null = null;
  runner.connect = async () => {
    turn ??= turns.take(tenantId, use, signal ?? (use === "work" ? AbortSignal.timeout(TURN_WITHIN_MS) : undefined));
    await turn.catch((cause: unknown) => {
      throw signal ? deadline({ cause }) : new HeldUpError(TRY_AGAIN, { cause });
    });
    return connect();
  };
  runner.release = async () => {
    await release().finally(() =>
      turn?.then(
        (giveBack) => giveBack(),
        () => undefined,
      ),
    );
  };
  return runner;
}

function bind(runner: QueryRunner, reach: Reach, observe: ObserveSql, signal?: AbortSignal): QueryRunner {
  const connect = runner.connect.bind(runner);
  let hasBegun = false;
  runner.connect = async () => {
    const session: PoolClient = await connect();
    await setReach(session, reach, signal ? "force_generic_plan" : "auto");
    // After the last wait before the first statement. What has begun ends by its session's limits.
    if (!hasBegun && isWorkOver()) throw deadline();
    hasBegun = true;
    return session;
  };
  prepareReads(runner);
  observeStatements(runner, observe);
  if (signal) callOffAt(signal, runner);
  return runner;
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
