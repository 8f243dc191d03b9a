import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { Connection, type PoolClient, type QueryConfig, type QueryResult } from "pg";
import { EntityManager, QueryRunnerAlreadyReleasedError } from "typeorm";
import type { PostgresDriver } from "typeorm/driver/postgres/PostgresDriver";
import { PostgresQueryRunner } from "typeorm/driver/postgres/PostgresQueryRunner";
import { codeOf, ServiceError, UNREACHED_CODES } from "../platform/errors";
import { requireShape, type Shape } from "./rows";

/** The operation has taken longer than it may; what it asked of the database was called off. */
export class DeadlineError extends ServiceError {
  readonly code = "DEADLINE_EXCEEDED";
}

export const deadline = (options?: ErrorOptions) =>
  new DeadlineError("This took too long and was called off. Ask for less at once, or try again.", options);

/** Somebody else holds what the statement needs, or the session was ended: temporary, and nothing of it was done. */
export class HeldUpError extends ServiceError {
  readonly code = "TEMPORARILY_UNAVAILABLE";
}

/** PostgreSQL's codes for a lock, a silence or a transaction over its limit, as of a frozen process, and for locks that wait for each other. */
const LOCK_CODES = ["55P03", "25P03", "25P04", "40P01"];
/** For a session that was ended, and a server that was, or is not there or full for now. */
const ENDED_CODES = ["57P01", "57P02", "57P03", "57P05", "53300", "ECONNRESET", "EPIPE", "ETIMEDOUT"];
const GIVEN_UP_CODES = new Set<unknown>([...LOCK_CODES, ...ENDED_CODES, ...UNREACHED_CODES]);
/** For a disk or a memory that is full, or a database that takes no writes: it is so until somebody makes room, or names the primary. */
const FULL_CODES = new Set<unknown>(["53100", "53200", "25006"]);
/** For a statement over its limit: again it would take as long, so that whoever goes on by itself must not. */
const TOO_LONG = "57014";
/** A cluster's coordinator says so of a tenant's node that is away, in a session that itself goes on. */
const NODE_AWAY_CODES = new Set<unknown>(["08000", "08001", "08003", "08006"]);
/** And, where the node went away at the commit: nothing was kept. */
const NOT_COMMITTED = /^(could not commit transaction for shard|failure on connection marked as essential)/;
/** As the driver says that the session has ended under a statement; it has no codes for these. */
const ENDED = /^(Connection terminated|Client has encountered a connection error|Client was closed)/;
/** As the pool says that no session came free in time. */
const NO_SESSION = "timeout exceeded when trying to connect";

/** The error that a caller may be told where the database held the work up; null for any other error. */
export function heldUpOf(error: unknown): HeldUpError | null {
  if (error instanceof HeldUpError) return error;
  return isHeldUp(error) ? new HeldUpError(TRY_AGAIN, { cause: error }) : null;
}

/** Whether the work was ended because a process was frozen, this one or another, or the server or a node went: it may go on a little later. */
export const isGivenUp = (error: unknown): boolean =>
  error instanceof QueryRunnerAlreadyReleasedError ||
  GIVEN_UP_CODES.has(codeOf(error)) ||
  isNodeAway(error) ||
  (error instanceof Error && ENDED.test(error.message));

export const TRY_AGAIN =
  "The service is held up for the moment, and this was called off. Try again in a few seconds, a write with the same idempotency key.";

/** Whether a tenant's node was away, or has been since the session was last connected to it. */
export const isNodeAway = (error: unknown): boolean =>
  NODE_AWAY_CODES.has(codeOf(error)) || (error instanceof Error && NOT_COMMITTED.test(error.message));

/** Whether the server has no room, or is to be read alone: nothing of the work was done, and somebody must act. */
export const isFull = (error: unknown): boolean => FULL_CODES.has(codeOf(error));

function isHeldUp(error: unknown): boolean {
  if (isGivenUp(error) || isFull(error) || codeOf(error) === TOO_LONG) return true;
  return error instanceof Error && error.message === NO_SESSION;
}

/** Runs one statement and takes note of it: its text, never its parameters. */
export type ObserveSql = <T>(text: string, run: () => Promise<T>) => Promise<T>;

const CANCEL_TIMEOUT_MS = 2_000;

/** Members of `pg`'s connection that its types leave out. */
type Client = PoolClient & { connection: Connection; host: string; port: number; processID: number; secretKey: number };
type CancelConnection = Connection & {
  connect(port: number | string, host?: string): void;
  cancel(processID: number, secretKey: number): void;
};

/** What a session is set to for the statements that follow: by one of no rows, which it has parsed by this name. */
export interface Setting extends QueryConfig<string[]> {
  name: string;
  values: string[];
  done(): void;
}

/**
 * A setting and the statement that needs it in one message with one Sync, so one transaction: where the setting
 * fails the statement is passed by, and where the statement fails the setting is taken back. The driver answers with a list.
 */
async function withSetting(client: Client, setting: Setting | null, statement: QueryConfig): Promise<QueryResult> {
  if (!setting) return client.query(statement);
  client.connection.stream.cork();
  // Only bound: a Parse here would be taken for the statement's, which may then be passed by.
  client.connection.bind({ statement: setting.name, values: setting.values }, true);
  client.connection.execute(null, true);
  const asked = client.query(statement);
  client.connection.stream.uncork();
  const results = [await asked].flat();
  setting.done();
  return results.at(-1) ?? asked;
}

/**
 * A session of the pool in the hands of one piece of work. TypeORM asks through `query`, for its typed calls and
 * transactions; our own SQL goes through `rows`; both are refused after the deadline, observed, and called off at it.
 */
export class Session extends PostgresQueryRunner {
  #client: Client | null = null;
  #setting: Setting | null = null;

  constructor(
    driver: PostgresDriver,
    private readonly observe: ObserveSql,
    private readonly giveTurnBack: () => void,
    private readonly signal?: AbortSignal,
  ) {
    super(driver, "master");
    this.manager = new EntityManager(this.dataSource, this);
  }

  override async connect(): Promise<Client> {
    const client: Client = this.#client ?? (await super.connect());
    this.#client = client;
    return client;
  }

  /** @param error with which its work ended: a session that takes no writes takes none when the database does again, and is ended */
  override async release(error?: unknown): Promise<void> {
    if (codeOf(error) === "25006") this.releaseCallback = this.releaseCallback?.bind(null, error);
    await super.release();
    this.giveTurnBack();
  }

  /** Told to PostgreSQL before the next statement; in one message with it where that is one whose plan is kept. */
  setFirst(setting: Setting): void {
    this.#setting = setting;
  }

  async #setNow(client: Client): Promise<void> {
    const setting = this.#takeSetting();
    if (setting) await client.query(setting).then(() => setting.done());
  }

  #takeSetting(): Setting | null {
    const setting = this.#setting;
    this.#setting = null;
    return setting;
  }

  /** @param name by which PostgreSQL keeps the statement's plan in the session; null: it does not */
  async rows<T>(text: string, values: readonly unknown[], shape?: Shape<T>, name: string | null = null): Promise<T[]> {
    const { rows, fields } = await this.#ask(text, async () => {
      const client = await this.connect();
      const statement = { text, values: [...values] };
      if (name) return withSetting(client, this.#takeSetting(), { ...statement, name });
      await this.#setNow(client);
      return client.query(statement);
    });
    if (shape) requireShape(text, fields, shape);
    return rows;
  }

  override query(
    text: string,
    parameters?: unknown[],
    isStructured?: boolean,
  ): ReturnType<PostgresQueryRunner["query"]> {
    return this.#ask(text, async () => {
      await this.#setNow(await this.connect());
      return super.query(text, parameters, isStructured);
    });
  }

  async #ask<T>(text: string, run: () => Promise<T>): Promise<T> {
    // Also after the deadline TypeORM rolls back, for the session goes back to the pool.
    if (this.signal?.aborted && text !== "ROLLBACK") throw deadline();
    // The driver has heard that it ended.
    if (this.isReleased) throw new QueryRunnerAlreadyReleasedError();
    const running = this.observe(text, run);
    return this.signal ? this.#calledOffAt(this.signal, running) : running;
  }

  /** A statement that runs at the deadline is cancelled in the database, and its session is free again before it is reused. */
  async #calledOffAt<T>(signal: AbortSignal, running: Promise<T>): Promise<T> {
    let cancelling: Promise<void> | null = null;
    const callOff = () => {
      cancelling = this.#client && cancel(this.#client, running);
    };
    signal.addEventListener("abort", callOff, { once: true });
    try {
      return await running;
    } catch (error) {
      if (signal.aborted) throw deadline({ cause: error });
      throw error;
    } finally {
      signal.removeEventListener("abort", callOff);
      await cancelling;
    }
  }
}

/**
 * PostgreSQL's CancelRequest, on a connection of its own: it needs no free session and no right over the one that it
 * names, and goes in clear also where sessions do not. Ends when a server has taken it. Where the statement still runs then,
 * as on a host that another has taken over from, its session ends: nobody waits for it.
 */
function cancel({ host, port, processID, secretKey, connection: { stream } }: Client, running: Promise<unknown>) {
  const connection = new Connection() as CancelConnection;
  const taken = new Promise<void>((resolve) => connection.on("end", resolve));
  const over = Promise.allSettled([running, taken]).then(() => true);
  // What came while the process was frozen is read first.
  const late = sleep(CANCEL_TIMEOUT_MS, false, { ref: false }).then(setImmediate);
  void Promise.race([over, late]).then((isOver) => isOver || [connection.stream.destroy(), stream.destroy()]);
  connection.on("error", () => undefined);
  connection.on("connect", () => connection.cancel(processID, secretKey));
  connection.connect(host.startsWith("/") ? `${host}/.s.PGSQL.${port}` : port, host);
  return taken;
}
