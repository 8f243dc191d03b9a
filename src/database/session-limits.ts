import { MINUTE_MS, SECOND_MS } from "../platform/clock";
import { Secret, withOptions } from "../platform/keyring";

/** Milliseconds after which PostgreSQL ends a session's statement or the session itself; 0: no limit. */
export interface SessionLimits {
  /** One statement, what it waits for included. */
  statement: number;
  /** Waiting for one lock. */
  lock: number;
  /** Silence within a transaction: its process is frozen or cut off, and others wait for its locks. */
  idleInTransaction: number;
  /** A whole transaction, so that not even half a message from a frozen process holds locks for ever. */
  transaction: number;
}

/**
 * By kind of work (decision 0057). A frozen process keeps its sockets, so PostgreSQL learns nothing of it but silence.
 * Whoever waits must outlast the silence that is allowed to the one who holds, and nobody waits for longer than 30 s.
 */
export const SESSION_LIMITS = {
  /**
   * The pool of `Database`: requests, pages of syncs, matching, batches of a purge, the operator's
   * commands. Statements of one transaction follow each other within milliseconds; what takes minutes goes in batches.
   */
  work: { statement: MINUTE_MS, lock: 8 * SECOND_MS, idleInTransaction: 5 * SECOND_MS, transaction: MINUTE_MS },
  /** Idle while the CRM answers, for half a minute at most. Who waits gives up long before a frozen holder is given up. */
  renewalLock: {
    statement: 20 * SECOND_MS,
    lock: 15 * SECOND_MS,
    idleInTransaction: 5 * MINUTE_MS,
    transaction: 5 * MINUTE_MS,
  },
  /** The job library's own sessions take and give back jobs, in single statements. */
  jobs: { statement: 30 * SECOND_MS, lock: 15 * SECOND_MS, idleInTransaction: 5 * SECOND_MS, transaction: MINUTE_MS },
  /** Only listens: whatever it says is answered at once. */
  listener: {
    statement: 10 * SECOND_MS,
    lock: 5 * SECOND_MS,
    idleInTransaction: 5 * SECOND_MS,
    transaction: 10 * SECOND_MS,
  },
  /**
   * An index on a large table takes what it takes. But a change of a table that waits for its lock makes everybody wait
   * behind it, so it gives up first, and the start fails with the tables as they were.
   */
  migration: { statement: 0, lock: 20 * SECOND_MS, idleInTransaction: 30 * SECOND_MS, transaction: 0 },
  /** Waits for another process's migrations, however long they take; nobody waits for its answer. */
  migrationTurn: { statement: 0, lock: 0, idleInTransaction: 0, transaction: 0 },
} satisfies Record<string, SessionLimits>;

/** A session of the pool is opened anew after so long: its kept plans go with it. */
export const SESSION_LIFE_MS = 30 * MINUTE_MS;
/** So long a server is silent before it is asked whether it is there: by TCP, and by who only listens. */
export const SILENCE_MS = 10 * SECOND_MS;
/**
 * For networks that go away without a word: PostgreSQL asks a silent peer after 10 s and gives it up 15 s later, gives
 * up one that takes nothing for 20 s, and looks every 10 s of a long statement whether anybody waits for it.
 */
const PEER_SETTINGS = {
  ...{ tcp_keepalives_idle: 10, tcp_keepalives_interval: 5, tcp_keepalives_count: 3 },
  tcp_user_timeout: 20 * SECOND_MS,
  client_connection_check_interval: 10 * SECOND_MS,
};

/** Said in an address of a server before PostgreSQL 17, which ends a session that names a setting it does not know. */
const NO_TRANSACTION_LIMIT = "without_transaction_timeout";

/** The same address, for a server that has no limit for whole transactions: there half a message may hold locks longer. */
export function withoutTransactionLimit(url: Secret): Secret {
  const marked = new URL(url.reveal());
  marked.searchParams.set(NO_TRANSACTION_LIMIT, "");
  return new Secret(marked.href);
}

/** The database's address for sessions with these limits: they begin with them, before their first statement. */
export function withLimits(url: Secret, limits: SessionLimits): Secret {
  const limited = new URL(url.reveal());
  const knowsTransactions = !limited.searchParams.has(NO_TRANSACTION_LIMIT);
  limited.searchParams.delete(NO_TRANSACTION_LIMIT);
  const settings = {
    ...{ statement_timeout: limits.statement, lock_timeout: limits.lock },
    ...{ idle_in_transaction_session_timeout: limits.idleInTransaction, idle_session_timeout: 0 },
    ...{ ...(knowsTransactions && { transaction_timeout: limits.transaction }), ...PEER_SETTINGS },
    // Whatever it is set to: texts are read as written, who waited for a lock sees what was committed, and a crash keeps it. In
    // other zones instants of long ago are some seconds off the minute, which is no date to JavaScript.
    ...{ DateStyle: "ISO", TimeZone: "UTC", array_nulls: "on", standard_conforming_strings: "on" },
    ...{ default_transaction_isolation: "read\\ committed", quote_all_identifiers: "off" },
    // No other schema's tables, without row policies. To compile a statement took up to a hundred times as long as to execute it.
    ...{ search_path: "public", row_security: "on", jit: "off", synchronous_commit: "on" },
  };
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  return withOptions(new Secret(limited.href), options.join(" "));
}

/** The uses of a session, in the order in which they are served. */
const SESSION_USES = ["read", "work", "background"] as const;
/** Reads of operations, what else an operation does, and whatever nobody waits for: jobs, sweeps. */
export type SessionUse = (typeof SESSION_USES)[number];

export interface SessionShares {
  sessions: number;
  /** Of all sessions, for each use: what is left over is there for the others, whoever holds the rest. */
  most: Record<SessionUse, number>;
  /** In the background while operations hold sessions too. */
  backgroundBeside: number;
  /** Of one tenant, whatever for, and of those for anything but reads. */
  ofTenant: number;
  unreadOfTenant: number;
}

/** All but one are shared out by turns (`SESSION_SHARES`); the last is for whether the database answers at all. */
export const POOL_SIZE = 20;

/** How many of a process's sessions operations and jobs may hold (decision 0057). */
export const SESSION_SHARES: SessionShares = {
  sessions: POOL_SIZE - 1,
  most: { read: 15, work: 12, background: 10 },
  backgroundBeside: 3,
  ofTenant: 6,
  unreadOfTenant: 4,
};

interface Tenant {
  held: number;
  /** Held for anything but reads. */
  unread: number;
  waiting: Record<SessionUse, (() => void)[]>;
}

/**
 * Whose turn it is to have a database session: within a use the tenants take turns, and none holds more than its share,
 * so that one tenant's burst waits behind itself and not before the others (decision 0057).
 */
export class SessionTurns {
  /** In the order of their turns: who comes anew, and who was served, goes to the end. */
  readonly #tenants = new Map<string, Tenant>();
  readonly #held: Record<SessionUse, number> = { read: 0, work: 0, background: 0 };

  constructor(private readonly shares: SessionShares) {}

  /**
   * @param givesUp ends the wait, whose reason is then thrown
   * @returns gives the session's place back; called again, it does nothing
   */
  async take(tenantId: string, use: SessionUse, givesUp?: AbortSignal): Promise<() => void> {
    const tenant = this.#tenants.get(tenantId) ?? noneHeld();
    this.#tenants.set(tenantId, tenant);
    await new Promise<void>((begin, giveUp) => {
      const leave = () => {
        tenant.waiting[use] = tenant.waiting[use].filter((other) => other !== serve);
        this.#forgetIdle(tenantId, tenant);
        giveUp(givesUp?.reason);
      };
      const serve = () => {
        givesUp?.removeEventListener("abort", leave);
        begin();
      };
      tenant.waiting[use].push(serve);
      if (givesUp?.aborted) return leave();
      givesUp?.addEventListener("abort", leave, { once: true });
      this.#serve();
    });
    let isGivenBack = false;
    return () => {
      if (isGivenBack) return;
      isGivenBack = true;
      this.#count(tenant, use, -1);
      this.#forgetIdle(tenantId, tenant);
      this.#serve();
    };
  }

  #serve(): void {
    for (const use of SESSION_USES) {
      for (let next = this.#next(use); next; next = this.#next(use)) {
        const [tenantId, tenant] = next;
        this.#tenants.delete(tenantId);
        this.#tenants.set(tenantId, tenant);
        this.#count(tenant, use, 1);
        tenant.waiting[use].shift()?.();
      }
    }
  }

  /** The tenant that waits for this use and may have a session now, and whose last turn is longest ago. */
  #next(use: SessionUse): [string, Tenant] | null {
    if (!this.#isFree(use)) return null;
    for (const entry of this.#tenants) {
      const [, tenant] = entry;
      if (tenant.waiting[use].length > 0 && this.#isWithinShare(tenant, use)) return entry;
    }
    return null;
  }

  #isFree(use: SessionUse): boolean {
    const { sessions, most, backgroundBeside } = this.shares;
    const { read, work, background } = this.#held;
    if (read + work + background >= sessions) return false;
    const isBeside = use === "background" && read + work > 0;
    return this.#held[use] < (isBeside ? backgroundBeside : most[use]);
  }

  #isWithinShare({ held, unread }: Tenant, use: SessionUse): boolean {
    return held < this.shares.ofTenant && (use === "read" || unread < this.shares.unreadOfTenant);
  }

  #forgetIdle(tenantId: string, tenant: Tenant): void {
    if (isIdle(tenant) && this.#tenants.get(tenantId) === tenant) this.#tenants.delete(tenantId);
  }

  #count(tenant: Tenant, use: SessionUse, by: 1 | -1): void {
    this.#held[use] += by;
    tenant.held += by;
    if (use !== "read") tenant.unread += by;
  }
}

const noneHeld = (): Tenant => ({ held: 0, unread: 0, waiting: { read: [], work: [], background: [] } });
const isIdle = ({ held, waiting }: Tenant) => held === 0 && SESSION_USES.every((use) => waiting[use].length === 0);
