import type { PoolClient } from "pg";
import type { DataSource } from "typeorm";
import { PostgresDriver } from "typeorm/driver/postgres/PostgresDriver";
import { codeOf } from "../platform/errors";
import { isWorkOver, workFields } from "../platform/work";
import { deadline, HeldUpError, TRY_AGAIN } from "./errors";
import type { Shape } from "./rows";
import { type ObserveSql, prepared, Session } from "./session";
import { SESSION_LIMITS, type SessionTurns } from "./session-limits";

/** Whose rows a session sees: the row policies compare `crm.tenant` with each row. null: nobody's. */
interface Reach {
  tenantId: number | null;
  /**
   * An operation's reads find rows by keys, whatever the values, and to plan one takes several times as long as to
   * execute it: they are planned once in a session, without bitmaps, which few rows do not repay. Other work is planned as PostgreSQL sees fit.
   */
  planning: "force_generic_plan" | "auto";
  /** In it a statement acts that stands alone; null: as the application, like all of its sessions. */
  role: string | null;
}

/** How a reach is given to sessions; decided once, by what the database is. */
interface ReachWay {
  /** Done whenever a session is taken from the pool. */
  enter(session: Session, reach: Reach): Promise<void>;
  /** One statement that stands alone. */
  alone<T>(session: Session, reach: Reach, work: () => Promise<T>): Promise<T>;
  begin(session: Session, reach: Reach): Promise<void>;
}

/**
 * Sessions are pooled and keep their settings: what each is set to, so that it is set again for another tenant. "": that is
 * not known, as where the statement that came with a setting failed.
 */
const settingOf = new WeakMap<PoolClient, string>();

/** A setting of the session, remembered: a statement that stands alone is one message. */
const bySession: ReachWay = {
  async enter(session, { tenantId, planning, role }) {
    const client = await session.connect();
    const wanted = `${planning} ${tenantId}`;
    const statement = { name: "reach", text: SET_REACH, values: [String(tenantId ?? ""), planning, role ?? ""] };
    const done = () => void settingOf.set(client, wanted);
    if (!settingOf.has(client)) {
      // A session's first goes by itself, and is parsed by that.
      await session.rows(statement.text, statement.values, undefined, statement.name);
      done();
    }
    if (settingOf.get(client) === wanted && role === null) return;
    // Forgotten first: a session whose setting failed half-way must not be taken for one that is set.
    settingOf.set(client, "");
    session.setFirst({ ...statement, done });
  },
  alone: (_session, _reach, work) => work(),
  begin: (session) => session.startTransaction(),
};

/** Of no rows, so that what comes with it has only its own. The role ends with the message. */
const SET_REACH = `SELECT WHERE set_config('crm.tenant', $1, false) || set_config('plan_cache_mode', $2, false) || set_config('enable_bitmapscan',
  CASE $2 WHEN 'auto' THEN 'on' ELSE 'off' END, false) IS NULL OR CASE WHEN $3 <> '' THEN set_config('role', $3, true) IS NULL END`;

/**
 * SET LOCAL in a transaction: all that Citus takes along to the shards of other nodes. It plans for one node by the
 * values of a statement, so plans are never made without them there (force_generic_plan).
 */
const byTransaction: ReachWay = {
  enter: async (session) => void (await session.connect()),
  // What is nobody's is read without a setting.
  alone: (session, reach, work) =>
    reach.tenantId === null && reach.role === null ? work() : inTransaction(session, reach, byTransaction, work),
  async begin(session, { tenantId, role }) {
    await session.startTransaction();
    // No parameter can stand here, and set_config does not reach the shards; it is a number.
    const tenant = tenantId === null ? "" : `SET LOCAL crm.tenant = '${Number(tenantId)}'; `;
    await session.rows(tenant + (role === null ? "" : `SET LOCAL ROLE ${role}; `) + ON_NODES, []);
  },
};

/** What ours began with the nodes' sessions do not know: locks are waited for, commits written, and statements compiled there. */
const ON_NODES = `SET LOCAL lock_timeout = ${SESSION_LIMITS.work.lock}; SET LOCAL synchronous_commit = on; SET LOCAL jit = off`;

const REACH_WAYS = { session: bySession, transaction: byTransaction };

async function inTransaction<T>(session: Session, reach: Reach, way: ReachWay, work: () => Promise<T>): Promise<T> {
  try {
    await way.begin(session, reach);
    const done = await work();
    await session.commitTransaction();
    return done;
  } catch (error) {
    // A session that has ended has rolled back already.
    if (session.isTransactionActive) await session.rollbackTransaction().catch(() => undefined);
    throw error;
  }
}

/** PostgreSQL's code for a kept plan whose result has changed, as `SELECT t.*` does when a newer release adds a column. */
const STALE_PLAN = "0A000";

/** That a session takes no writes; and that its user may not act as the role, or was dropped and made anew. */
const [NO_WRITES, NO_ROLE] = ["25006", new Set<unknown>(["42501", "22023"])] as const;

/** An operation that waits for longer is told so; a read waits until its deadline, and a job for as long as it takes. */
const TURN_WITHIN_MS = 10_000;

/** The parts that all sessions of a process share. */
export interface SessionParts {
  dataSource: DataSource;
  observe: ObserveSql;
  turns: SessionTurns;
  /** Citus: "transaction". */
  reach: keyof typeof REACH_WAYS;
}

/** The sessions that one scope's statements run in: each is leased from the pool, set to the reach, and given back. */
export class Sessions {
  readonly #reach: Reach;
  #kept: Session | null = null;

  /** @param signal calls off what runs, and refuses what comes later, with a DeadlineError */
  constructor(
    readonly parts: SessionParts,
    tenantId: number | null,
    private readonly signal?: AbortSignal,
    role: string | null = null,
  ) {
    this.#reach = { tenantId, planning: signal ? "force_generic_plan" : "auto", role };
  }

  /** The rows of a statement that stands alone; a read is prepared, and asked once more where its plan is of yesterday. */
  async rows<T>(text: string, values: readonly unknown[], shape?: Shape<T>): Promise<T[]> {
    const name = prepared.nameOf(text);
    try {
      return await this.alone((session) => session.rows<T>(text, values, shape, name));
    } catch (error) {
      if (!name || codeOf(error) !== STALE_PLAN) throw error;
      return this.alone((session) => session.rows<T>(text, values, shape));
    }
  }

  alone<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#within((session) => this.#way.alone(session, this.#reach, () => work(session)));
  }

  transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#within((session) => inTransaction(session, this.#reach, this.#way, () => work(session)));
  }

  get #way() {
    return REACH_WAYS[this.parts.reach];
  }

  async #within<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const session = this.#takeKept() ?? (await this.#lease());
    // Not kept where it failed: the reach that came with a statement was taken back with it.
    const done = await work(session).catch(async (error: unknown) => {
      await session.release(this.#endsBy(error));
      throw error;
    });
    await this.#giveBack(session);
    return done;
  }

  async #lease(): Promise<Session> {
    if (this.signal?.aborted) throw deadline();
    const { dataSource, observe } = this.parts;
    if (!(dataSource.driver instanceof PostgresDriver)) throw new Error("the database is no PostgreSQL");
    const session = new Session(dataSource.driver, observe, await this.#turn(), this.signal);
    try {
      await this.#way.enter(session, this.#reach);
      // After the last wait before the first statement. What has begun ends by its session's limits.
      if (isWorkOver()) throw deadline();
      return session;
    } catch (error) {
      await session.release(this.#endsBy(error));
      throw error;
    }
  }

  /** A session is asked of the pool when it is this tenant's turn. What is nobody's is only read. @returns gives its place back */
  #turn(): Promise<() => void> {
    const { tenantId, role } = this.#reach;
    const isBackground = !this.signal && workFields().operationId === undefined;
    const use = isBackground ? "background" : role === null && (this.signal || tenantId === null) ? "read" : "work";
    const within = this.signal ?? (isBackground ? undefined : AbortSignal.timeout(TURN_WITHIN_MS));
    return this.parts.turns.take(String(tenantId ?? ""), use, within).catch((cause: unknown) => {
      throw this.signal ? deadline({ cause }) : new HeldUpError(TRY_AGAIN, { cause });
    });
  }

  /** @returns the error where its session would go on failing when all is well again */
  #endsBy(error: unknown): unknown {
    const code = codeOf(error);
    return code === NO_WRITES || (this.#reach.role !== null && NO_ROLE.has(code)) ? error : undefined;
  }

  #takeKept(): Session | null {
    const kept = this.#kept;
    this.#kept = null;
    if (!kept?.isReleased) return kept;
    // It has ended by itself, and its place is still to be given back.
    void kept.release();
    return null;
  }

  /**
   * An operation's next statement goes on in the session of the one before, which is set to its tenant already: the levels of a query follow each
   * other within a turn of the event loop. Where none comes at once it is given back, so that an operation which waits for something else holds none.
   * Nor is one kept that acts in a role, which ends with the statement.
   */
  async #giveBack(session: Session): Promise<void> {
    const isKept = this.signal && this.#reach.role === null && !this.#kept && !session.isTransactionActive;
    if (!isKept) return session.release();
    this.#kept = session;
    const release = () => void (this.#kept === session && this.#takeKept()?.release());
    setImmediate(() => setImmediate(release));
  }
}
