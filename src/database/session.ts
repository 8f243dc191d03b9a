import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { type ClientBase, Connection, type PoolClient, type QueryConfig, type QueryResult } from "pg";
import { EntityManager, QueryRunnerAlreadyReleasedError } from "typeorm";
import type { PostgresDriver } from "typeorm/driver/postgres/PostgresDriver";
import { PostgresQueryRunner } from "typeorm/driver/postgres/PostgresQueryRunner";
import { codeOf } from "../platform/errors";
import { deadline } from "./errors";
import { requireShape, type Shape } from "./rows";
import { SESSION_LIFE_MS } from "./session-limits";

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

/** Also without parameters: where the setting failed PostgreSQL passes all by up to a Sync, which a plain query does not have. */
const EXTENDED = { queryMode: "extended" };

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
  const asked = client.query({ ...statement, ...EXTENDED });
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

  /** @param error for which it is ended, and not given back to the pool */
  override async release(error?: unknown): Promise<void> {
    if (error) this.releaseCallback = this.releaseCallback?.bind(null, error);
    await super.release();
    this.giveTurnBack();
  }

  /** Told to PostgreSQL before the next statement; in one message with it where that is SQL of our own. */
  setFirst(setting: Setting): void {
    this.#setting = setting;
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
      return withSetting(client, this.#takeSetting(), { text, values: [...values], ...(name && { name }) });
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
      const client = await this.connect();
      const setting = this.#takeSetting();
      if (setting) await client.query(setting).then(setting.done);
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
function cancel({ host, port, processID, secretKey, connection: { stream } }: Client, running?: Promise<unknown>) {
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

/**
 * Characters of all statements whose plans are kept: each session that has met all of them holds a hundred bytes for one. An operation's
 * reads have as many texts as it has shapes, so one that comes once is not kept.
 */
const MAX_PREPARED = 500_000;

/** The statements whose plans are kept, by their texts. No name is given twice: a session may still hold what had it. */
export class Prepared {
  readonly #names = new Map<string, string>();
  readonly #seen = new LRUCache<string, true>({ max: 1_000 });
  #characters = 0;
  #named = 0;
  #begun: number;

  /** @param now in milliseconds */
  constructor(private readonly now = () => performance.now()) {
    this.#begun = now();
  }

  /** The name under which a statement that comes again is parsed and planned once in a session; null for what reads and adds nothing. */
  nameOf(text: string): string | null {
    const known = this.#names.get(text);
    if (known || !/^\s*(SELECT|WITH|INSERT)\b/i.test(text)) return known ?? null;
    if (!this.#seen.has(text)) {
      this.#seen.set(text, true);
      return null;
    }
    if (this.#characters + text.length > MAX_PREPARED && !this.#renew()) return null;
    this.#characters += text.length;
    this.#named += 1;
    const name = `read_${this.#named}`;
    this.#names.set(text, name);
    return name;
  }

  /** Those that are asked for now take the place of all, as often as sessions are opened anew. */
  #renew(): boolean {
    const now = this.now();
    if (now - this.#begun < SESSION_LIFE_MS) return false;
    this.#names.clear();
    this.#characters = 0;
    this.#begun = now;
    return true;
  }
}

export const prepared = new Prepared();

/**
 * For each session that is opened. Whoever waits in vain leaves, and the server learns nothing of it: a commit that waits for a
 * standby would keep its locks and its session until that is back, as would all that come after it, until the server has no session
 * left. And a server that goes down may end one with the word that it is ready: nobody has it yet, and unheard that ends the process.
 */
export function callOffUnanswered(session: ClientBase): void {
  session.on("error", (error) => hasKey(session) && codeOf(error) === "ETIMEDOUT" && void cancel(session));
}
const hasKey = (session: ClientBase): session is Client => "secretKey" in session;
