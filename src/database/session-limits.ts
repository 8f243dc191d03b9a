import { QueryRunnerAlreadyReleasedError } from "typeorm";
import { MINUTE_MS, SECOND_MS } from "../platform/clock";
import { ServiceError } from "../platform/errors";
import { Secret } from "../platform/keyring";

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
  work: {
    statement: MINUTE_MS,
    lock: 8 * SECOND_MS,
    idleInTransaction: 5 * SECOND_MS,
    transaction: MINUTE_MS,
  },
  /** Idle while the CRM answers, for half a minute at most. Who waits gives up long before a frozen holder is given up. */
  renewalLock: {
    statement: 20 * SECOND_MS,
    lock: 15 * SECOND_MS,
    idleInTransaction: 5 * MINUTE_MS,
    transaction: 5 * MINUTE_MS,
  },
  /** The job library's own sessions take and give back jobs, in single statements. */
  jobs: {
    statement: 30 * SECOND_MS,
    lock: 15 * SECOND_MS,
    idleInTransaction: 5 * SECOND_MS,
    transaction: MINUTE_MS,
  },
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

/**
 * For networks that go away without a word: PostgreSQL asks a silent peer after 10 s and gives it up 15 s later, gives
 * up one that takes nothing for 20 s, and looks every 10 s of a long statement whether anybody waits for it.
 */
const PEER_SETTINGS = {
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
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
    statement_timeout: limits.statement,
    lock_timeout: limits.lock,
    idle_in_transaction_session_timeout: limits.idleInTransaction,
    ...(knowsTransactions ? { transaction_timeout: limits.transaction } : {}),
    ...PEER_SETTINGS,
    // Statements here read few rows, and to compile one took up to a hundred times as long as to execute it.
    jit: "off",
  };
  const given = limited.searchParams.get("options") ?? "";
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  limited.searchParams.set("options", [given, ...options].join(" ").trim());
  return new Secret(limited.href);
}

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

/** PostgreSQL's codes for a lock, a silence or a transaction over its limit: some process was frozen, or is. */
const GIVEN_UP_CODES = new Set(["55P03", "25P03", "25P04"]);
/** And for a statement over its limit, a session or server that was ended or is not there for now. */
const HELD_UP_CODES = new Set([...GIVEN_UP_CODES, "57014", "57P01", "57P03", "57P05", "ECONNREFUSED", "ECONNRESET"]);
/** A cluster's coordinator says so of a tenant's node that is away, in a session that itself goes on. */
const NODE_AWAY_CODES = new Set(["08000", "08001", "08003", "08006"]);
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

/** Whether the work was ended because a process was frozen, this one or another, or a node went: it may go on a little later. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof QueryRunnerAlreadyReleasedError || GIVEN_UP_CODES.has(codeOf(error)) || isNodeAway(error);
}

export const TRY_AGAIN =
  "The service is held up for the moment, and this was called off. Try again in a few seconds, a write with the same idempotency key.";

/** Whether a tenant's node was away, or has been since the session was last connected to it. */
export const isNodeAway = (error: unknown): boolean =>
  NODE_AWAY_CODES.has(codeOf(error)) || (error instanceof Error && NOT_COMMITTED.test(error.message));

function isHeldUp(error: unknown): boolean {
  if (isGivenUp(error) || HELD_UP_CODES.has(codeOf(error))) return true;
  if (!(error instanceof Error)) return false;
  return ENDED.test(error.message) || error.message === NO_SESSION;
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "");
