import { Pool } from "pg";
import type { TokenSource } from "../crm/api";
import { heldUpOf, SESSION_LIMITS, type SessionLimits, withLimits } from "../database/session-limits";
import { MINUTE_MS, SECOND_MS, timeLimit } from "../platform/clock";
import type { Secret } from "../platform/secret";
import { inWork, workFields } from "../platform/work";
import type { PresentAccess } from "./credentials";
import { ConnectionGoneError, NeedsReauthorizationError, RenewalHeldUpError } from "./errors";
import { NEEDS_REAUTHORIZATION, NOT_CONNECTED } from "./refusals";
import { Renewal, type RenewalParts } from "./renewal";

/** Access tokens live 60 minutes (specification 8); one minute is left for the request that uses it. */
const FRESH_FOR_MS = 59 * MINUTE_MS;
/** Renewals hold a database session while the CRM answers; they must not use up the pool that requests need. */
const LOCK_SESSIONS = 8;
/** For one of them to come free: with the wait for the lock itself, a caller has its answer within 30 seconds. */
const SESSION_WITHIN_MS = 10 * SECOND_MS;
/** From having the lock to the first byte of the request; a frozen process may have lost the lock after that. */
const BEGIN_WITHIN_MS = 30 * SECOND_MS;
/** Keeps these advisory locks apart from others of the database. */
const RENEWAL_LOCKS = 7_302_519;

export interface AccessTokenParts extends RenewalParts {
  databaseUrl: Secret;
  limits?: SessionLimits;
}

/**
 * A valid access token for a connection (specification 3). A refresh token works once, so there is one renewal at a time
 * per connection: one promise in this process, one advisory lock across processes, and a second look under the lock.
 */
export class AccessTokens {
  readonly #locks: Pool;
  readonly #renewal: Renewal;
  readonly #reads = new Map<number, Promise<PresentAccess>>();
  readonly #inFlight = new Map<number, Promise<Secret>>();

  constructor(private readonly parts: AccessTokenParts) {
    this.#renewal = new Renewal(parts);
    const url = withLimits(parts.databaseUrl, parts.limits ?? SESSION_LIMITS.renewalLock);
    this.#locks = new Pool({
      ...{ connectionString: url.reveal(), max: LOCK_SESSIONS },
      ...{ connectionTimeoutMillis: SESSION_WITHIN_MS, keepAlive: true },
    });
    const onError = (error: Error) => parts.logger.warn({ err: error }, "a lock session ended");
    this.#locks.on("error", onError);
    this.#locks.on("connect", (session) => session.on("error", onError));
  }

  /**
   * Both functions throw ConnectionGoneError where the copy is no longer connected, NeedsReauthorizationError where
   * the CRM refuses the grant, and OAuthError where a renewal failed for now.
   */
  of(tenantId: string, copyId: number): TokenSource {
    return {
      current: async () => {
        const { accessToken, accessTokenAskedAt } = await this.#present(tenantId, copyId);
        return this.#isFresh(accessTokenAskedAt) ? accessToken : this.#renew(tenantId, copyId, accessToken);
      },
      renewed: (refused) => this.#renew(tenantId, copyId, refused),
    };
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#inFlight.values());
    await this.#locks.end();
  }

  /** Callers that come while the row is being read share that read. */
  #present(tenantId: string, copyId: number): Promise<PresentAccess> {
    const running = this.#reads.get(copyId);
    if (running) return running;
    const { door, credentials } = this.parts;
    const read = credentials
      .readAccess(door.enter(tenantId), copyId)
      .then(usable)
      .finally(() => this.#reads.delete(copyId));
    this.#reads.set(copyId, read);
    return read;
  }

  #isFresh(askedAt: Date): boolean {
    return this.parts.clock().getTime() - askedAt.getTime() < FRESH_FOR_MS;
  }

  #renew(tenantId: string, copyId: number, stale: Secret): Promise<Secret> {
    const running = this.#inFlight.get(copyId);
    // One that began with an older token may end with the very token that this caller was refused.
    if (running) {
      return running.then((token) =>
        token.reveal() === stale.reveal() ? this.#renew(tenantId, copyId, stale) : token,
      );
    }
    // Work of its own: where the caller's time is over, what the CRM has granted must be stored all the same.
    const renewal = inWork(workFields(), () =>
      this.#underLock(copyId, (mayBegin) => this.#lookAgainAndRenew(tenantId, copyId, stale, mayBegin)),
    ).finally(() => this.#inFlight.delete(copyId));
    this.#inFlight.set(copyId, renewal);
    return renewal;
  }

  /** @throws RenewalHeldUpError where another process holds the lock for too long, and from `mayBegin` when it is too late */
  async #underLock<T>(copyId: number, work: (mayBegin: () => void) => Promise<T>): Promise<T> {
    const session = await this.#locks.connect().catch(heldUp);
    try {
      await session.query("BEGIN");
      const isOver = timeLimit(this.parts.clock, BEGIN_WITHIN_MS);
      const lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
      await session.query(lock, [RENEWAL_LOCKS, String(copyId)]).catch(heldUp);
      return await work(() => {
        if (isOver()) throw new RenewalHeldUpError();
      });
    } finally {
      await session.query("ROLLBACK").then(
        () => session.release(),
        (error: Error) => session.release(error),
      );
    }
  }

  async #lookAgainAndRenew(tenantId: string, copyId: number, stale: Secret, mayBegin: () => void): Promise<Secret> {
    const { door, credentials } = this.parts;
    const scope = door.enter(tenantId);
    const present = usable(await credentials.readAccess(scope, copyId));
    if (present.accessToken.reveal() !== stale.reveal()) return present.accessToken;
    const credential = await credentials.read(scope, copyId);
    if (!credential) throw new ConnectionGoneError(NOT_CONNECTED.message);
    return this.#renewal.renew(tenantId, copyId, credential, mayBegin);
  }
}

function heldUp(error: unknown): never {
  throw heldUpOf(error) ? new RenewalHeldUpError({ cause: error }) : error;
}

function usable(access: PresentAccess | null): PresentAccess {
  if (access?.state === "NEEDS_REAUTHORIZATION") throw new NeedsReauthorizationError(NEEDS_REAUTHORIZATION.message);
  if (!access) throw new ConnectionGoneError(NOT_CONNECTED.message);
  return access;
}
