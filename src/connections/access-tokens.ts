import { Pool } from "pg";
import type { TokenSource } from "../crm/api";
import { MINUTE_MS } from "../platform/clock";
import type { Secret } from "../platform/secret";
import type { PresentAccess } from "./credentials";
import { ConnectionGoneError, NeedsReauthorizationError } from "./errors";
import { NEEDS_REAUTHORIZATION, NOT_CONNECTED } from "./refusals";
import { Renewal, type RenewalParts } from "./renewal";

/** Access tokens live 60 minutes (specification 8); one minute is left for the request that uses it. */
const FRESH_FOR_MS = 59 * MINUTE_MS;
/** Renewals hold a database session while the CRM answers; they must not use up the pool that requests need. */
const LOCK_SESSIONS = 8;
/** Keeps these advisory locks apart from others of the database. */
const RENEWAL_LOCKS = 7_302_519;

export interface AccessTokenParts extends RenewalParts {
  databaseUrl: Secret;
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
    this.#locks = new Pool({ connectionString: parts.databaseUrl.reveal(), max: LOCK_SESSIONS });
    const onError = (error: Error) => parts.logger.warn({ err: error }, "a lock session ended");
    this.#locks.on("error", onError);
    this.#locks.on("connect", (session) => session.on("error", onError));
  }

  /**
   * Both functions throw ConnectionGoneError where the copy is no longer connected, NeedsReauthorizationError where
   * the CRM refuses the grant, and OAuthError where a renewal failed for now.
   */
  of(tenantId: number, copyId: number): TokenSource {
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
  #present(tenantId: number, copyId: number): Promise<PresentAccess> {
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

  #renew(tenantId: number, copyId: number, stale: Secret): Promise<Secret> {
    const running = this.#inFlight.get(copyId);
    // One that began with an older token may end with the very token that this caller was refused.
    if (running) {
      return running.then((token) =>
        token.reveal() === stale.reveal() ? this.#renew(tenantId, copyId, stale) : token,
      );
    }
    const renewal = this.#underLock(copyId, () => this.#lookAgainAndRenew(tenantId, copyId, stale)).finally(() =>
      this.#inFlight.delete(copyId),
    );
    this.#inFlight.set(copyId, renewal);
    return renewal;
  }

  async #underLock<T>(copyId: number, work: () => Promise<T>): Promise<T> {
    const session = await this.#locks.connect();
    try {
      await session.query("BEGIN");
      await session.query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [RENEWAL_LOCKS, String(copyId)]);
      return await work();
    } finally {
      await session.query("ROLLBACK").then(
        () => session.release(),
        (error: Error) => session.release(error),
      );
    }
  }

  async #lookAgainAndRenew(tenantId: number, copyId: number, stale: Secret): Promise<Secret> {
    const { door, credentials } = this.parts;
    const scope = door.enter(tenantId);
    const present = usable(await credentials.readAccess(scope, copyId));
    if (present.accessToken.reveal() !== stale.reveal()) return present.accessToken;
    const credential = await credentials.read(scope, copyId);
    if (!credential) throw new ConnectionGoneError(NOT_CONNECTED.message);
    return this.#renewal.renew(tenantId, copyId, credential);
  }
}

function usable(access: PresentAccess | null): PresentAccess {
  if (access?.state === "NEEDS_REAUTHORIZATION") throw new NeedsReauthorizationError(NEEDS_REAUTHORIZATION.message);
  if (!access) throw new ConnectionGoneError(NOT_CONNECTED.message);
  return access;
}
