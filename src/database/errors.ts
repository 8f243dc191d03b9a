import { setTimeout as sleep } from "node:timers/promises";
import { QueryRunnerAlreadyReleasedError } from "typeorm";
import { codeOf, messageOf, ServiceError } from "../platform/errors";
import { type Secret, UnsealError } from "../platform/keyring";

/** The database cannot be used; the message says which and why, without its password. */
export class DatabaseUnavailableError extends ServiceError {
  readonly code = "DATABASE_UNAVAILABLE";
}

/** PostgreSQL's code for a server that is full, or for a user or database that has as many sessions as it may. */
export const NO_SESSION_LEFT = "53300";
export const MORE_SESSIONS = "raise max_connections, or the CONNECTION LIMIT of its user or database";

/** The error of a database that refuses or does not answer, without its password. */
export function unavailable(url: Secret, cause: unknown): DatabaseUnavailableError {
  const { host, pathname } = new URL(url.reveal());
  const what = `The database ${pathname.slice(1)} at ${host} cannot be reached: ${messageOf(cause)}.`;
  const todo =
    codeOf(cause) === NO_SESSION_LEFT ? "All its sessions are taken" : "Check DATABASE_URL and that PostgreSQL runs";
  return new DatabaseUnavailableError(`${what} ${todo}.`, { cause });
}

/** The database takes no writes, not every name, or no session of our own; the message says what to do. */
class UnfitDatabaseError extends ServiceError {
  readonly code = "DATABASE_UNFIT";
}

export type Unfit = Record<"what" | "todo", string>;

export function refuseUnfit(unfit: Unfit | null): void {
  if (unfit) throw new UnfitDatabaseError(`The database cannot be used: ${unfit.what}; ${unfit.todo}.`);
}

/** The database's user may not act as the service's roles; the message says what an administrator has to run. */
export class DatabaseRoleError extends ServiceError {
  readonly code = "DATABASE_ROLE";
}

/** No version of the service has made its tables in this database. */
export class NoTablesError extends ServiceError {
  readonly code = "NO_TABLES";
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

/** For what was called off before the caller's own time began. */
export function heldUpAtDeadline(cause: unknown): never {
  throw cause instanceof DeadlineError ? new HeldUpError(TRY_AGAIN, { cause }) : cause;
}

/** PostgreSQL's codes for a lock, a silence or a transaction over its limit, as of a frozen process, and for locks that wait for each other. */
const DEADLOCK = "40P01";
const LOCK_CODES = ["55P03", "25P03", "25P04", DEADLOCK];
/** For a session that was ended, and a server that was, or is not there or full for now. */
const ENDED_CODES = ["57P01", "57P02", "57P03", "57P05", NO_SESSION_LEFT, "ECONNRESET", "EPIPE", "ETIMEDOUT"];
/** By which the network says that nothing was reached: no address, no way, nobody there. */
export const UNREACHED_CODES = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN"];
const GIVEN_UP_CODES = new Set<unknown>([...LOCK_CODES, ...ENDED_CODES, ...UNREACHED_CODES]);
/**
 * For a disk, a memory or temp_file_limit that is full, a server that may open no more files, a disk that fails, or a database
 * that takes no writes: it is so until somebody makes room, mends the disk, or names the primary.
 */
const FULL_CODES = ["53100", "53200", "53400", "53000", "58030", "25006"];
/**
 * For a database that is not there, or takes no sessions, as while it is restored, for a user who may not log in or has lost
 * rights, and for tables that the start has seen and nobody finds now, as while a restore drops them.
 */
const SHUT_CODES = ["3D000", "55000", "28000", "28P01", "42501", "42P01"];
const OPERATOR_CODES = new Set<unknown>([...FULL_CODES, ...SHUT_CODES]);
/** It has a code of these, and is a bug: a row of another tenant. Known by who found it, whatever lc_messages is, or on a cluster by the words. */
const OF_POLICY = /^ExecWithCheckOptions |row-level security/;
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

/** Whether the server has no room, is to be read alone, or is shut to its user: nothing of the work was done, and somebody must act. */
export const needsOperator = (error: unknown): boolean =>
  OPERATOR_CODES.has(codeOf(error)) && !OF_POLICY.test(`${foundBy(error)} ${messageOf(error)}`);
/** PostgreSQL's own name of the place. */
const foundBy = (error: unknown) =>
  typeof error === "object" && error !== null && "routine" in error ? error.routine : "";

/** How a failure is logged after which the work is tried again: "warn" mends itself. */
export const levelOf = (error: unknown): "error" | "warn" =>
  error instanceof UnsealError || needsOperator(error) ? "error" : "warn";

function isHeldUp(error: unknown): boolean {
  if (isGivenUp(error) || needsOperator(error) || codeOf(error) === TOO_LONG) return true;
  return error instanceof Error && error.message === NO_SESSION;
}

/** Sooner than another process could be refused a token that a renewal has used up. */
const AGAIN_MS = 250;
/** At least, for a process that was frozen until its time was over. */
const TRIES = 3;

/**
 * What nobody tells a second time is lost unless it is kept: while the database holds that up it is tried again.
 * @param isOver whether it is given up
 * @param tell of the first failure
 */
export async function outlast<T>(
  keep: () => Promise<T>,
  isOver: () => boolean,
  tell: (err: unknown) => void,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await keep();
    } catch (error) {
      if (heldUpOf(error) === null || (tries >= TRIES && isOver())) throw error;
      if (tries === 1) tell(error);
      await sleep(AGAIN_MS);
    }
  }
}

/** Of those that wait for each other's locks one is ended, and goes behind the others; that it is the same one so often is no chance. */
const MOST_DEADLOCKS = 5;

/** Does a transaction again, or a statement, that was ended because it and another waited for each other: it kept nothing. */
export async function behindOthers<T>(work: () => Promise<T>, tries = MOST_DEADLOCKS): Promise<T> {
  return work().catch((error: unknown) => {
    if (codeOf(error) !== DEADLOCK || tries <= 1) throw error;
    return behindOthers(work, tries - 1);
  });
}
