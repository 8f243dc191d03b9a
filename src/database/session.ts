import { Connection, type PoolClient } from "pg";
import { EntityManager, QueryRunnerAlreadyReleasedError } from "typeorm";
import type { PostgresDriver } from "typeorm/driver/postgres/PostgresDriver";
import { PostgresQueryRunner } from "typeorm/driver/postgres/PostgresQueryRunner";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { traced, workCounts } from "../platform/work";
import { requireShape, type Shape } from "./reads";
import { deadline } from "./session-limits";

/** Runs one statement and takes note of it: its text, never its parameters. */
export type ObserveSql = <T>(text: string, run: () => Promise<T>) => Promise<T>;

/** Counts, times, traces and (at debug) logs each statement of the database's sessions. */
export function observedSql(metrics: Metrics, logger: Logger): ObserveSql {
  return async (text, run) => {
    const counts = workCounts();
    if (counts) counts.sql += 1;
    const ended = metrics.sqlStatements.startTimer();
    try {
      return await traced("sql", { "db.system.name": "postgresql", "db.query.text": text }, run);
    } finally {
      const seconds = ended();
      if (logger.isLevelEnabled("debug"))
        logger.debug({ sql: text.replace(/\s+/g, " ").trim(), seconds }, "a statement");
    }
  };
}

const CANCEL_TIMEOUT_MS = 2_000;
/** As TypeORM says it: also after the deadline, for the session goes back to the pool. */
const ROLLBACK = "ROLLBACK";

/** Members of `pg`'s connection that its types leave out. */
type Client = PoolClient & { host: string; port: number; processID: number; secretKey: number };
type CancelConnection = Connection & {
  connect(port: number | string, host?: string): void;
  cancel(processID: number, secretKey: number): void;
};

/**
 * A session of the pool in the hands of one piece of work. TypeORM asks through `query`, for its typed calls and
 * transactions; our own SQL goes through `rows`; both are refused after the deadline, observed, and called off at it.
 */
export class Session extends PostgresQueryRunner {
  #client: Client | null = null;

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

  override async release(): Promise<void> {
    await super.release();
    this.giveTurnBack();
  }

  /** @param name by which PostgreSQL keeps the statement's plan in the session; null: it does not */
  async rows<T>(text: string, values: readonly unknown[], shape?: Shape<T>, name: string | null = null): Promise<T[]> {
    const { rows, fields } = await this.#ask(text, async () => {
      const client = await this.connect();
      const statement = { text, values: [...values] };
      return client.query(name ? { ...statement, name } : statement);
    });
    if (shape) requireShape(text, fields, shape);
    return rows;
  }

  override query(
    text: string,
    parameters?: unknown[],
    isStructured?: boolean,
  ): ReturnType<PostgresQueryRunner["query"]> {
    return this.#ask(text, () => super.query(text, parameters, isStructured));
  }

  async #ask<T>(text: string, run: () => Promise<T>): Promise<T> {
    if (this.signal?.aborted && text !== ROLLBACK) throw deadline();
    // The driver has heard that it ended.
    if (this.isReleased) throw new QueryRunnerAlreadyReleasedError();
    const running = this.observe(text, run);
    return this.signal ? this.#calledOffAt(this.signal, running) : running;
  }

  /** A statement that runs at the deadline is cancelled in the database, and its session is free again before it is reused. */
  async #calledOffAt<T>(signal: AbortSignal, running: Promise<T>): Promise<T> {
    let cancelling: Promise<void> | null = null;
    const callOff = () => {
      cancelling = this.#client && cancel(this.#client);
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
 * names, and goes in clear also where sessions do not. Ends when the server has taken it.
 */
function cancel({ host, port, processID, secretKey }: Client): Promise<void> {
  const connection = new Connection() as CancelConnection;
  return new Promise<void>((resolve) => {
    setTimeout(() => connection.stream.destroy(), CANCEL_TIMEOUT_MS).unref();
    // Where it cannot be sent, the statement goes on until it ends by itself.
    connection.on("error", () => undefined);
    connection.on("end", () => resolve());
    connection.on("connect", () => connection.cancel(processID, secretKey));
    if (host.startsWith("/")) connection.connect(`${host}/.s.PGSQL.${port}`);
    else connection.connect(port, host);
  });
}
