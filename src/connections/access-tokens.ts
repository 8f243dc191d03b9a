import type { TokenSource } from "../crm/api";
import { CrmError } from "../crm/errors";
import { type CrmOAuth, type Grant, OAuthError, type TokenFailure } from "../crm/oauth";
import { ADDRESSES } from "../crm/prices";
import { AdvisoryLocks } from "../database/between-processes";
import type { Database, TenantScope } from "../database/database";
import { heldUpOf } from "../database/session";
import { SESSION_LIMITS, type SessionLimits } from "../database/session-limits";
import { type ReauthorizationReason, RenewalAttemptRow } from "../entities/connection";
import { type Clock, MINUTE_MS, SECOND_MS, timeLimit } from "../platform/clock";
import type { Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { inWork, workFields } from "../platform/work";
import {
  ConnectionGoneError,
  endAuthorization,
  NEEDS_REAUTHORIZATION,
  NeedsReauthorizationError,
  NOT_CONNECTED,
  noteTrouble,
  type Trouble,
} from "./connection";
import type { Credential, Credentials, PresentAccess } from "./credentials";
import { type HowAsked, Identity, type IdentityParts } from "./grants";

/** Access tokens live 60 minutes (specification 8); one minute is left for the request that uses it. */
const FRESH_FOR_MS = 59 * MINUTE_MS;
/** Renewals hold a database session while the CRM answers; they must not use up the pool that requests need. */
const LOCK_SESSIONS = 8;
/** For one of them to come free: with the wait for the lock itself, a caller has its answer within 30 seconds. */
const SESSION_WITHIN_MS = 10 * SECOND_MS;
/** From asking for the lock to the first byte of the renewal; a frozen process may have lost the lock after that. */
const RENEW_WITHIN_MS = 30 * SECOND_MS;
/** And to that of its proof, with the CRM's half a minute for the renewal between. */
const PROVE_WITHIN_MS = 75 * SECOND_MS;
/** Keeps these advisory locks apart from others of the database. */
const RENEWAL_LOCKS = 7_302_519;

export interface AccessTokenParts extends RenewalParts, IdentityParts {
  databaseUrl: Secret;
  limits?: SessionLimits;
}

/** Called right before a request that the lock guards; each throws where the lock may be another process's by now. */
interface HeldLock {
  mayRenew(): void;
  mayProve(): void;
}

/** Tokens of the company and the user that the connection was authorized by, and of nobody else. */
export interface PinnedTokens extends TokenSource {
  /**
   * Asks the CRM whose the token is now, unless it has to be renewed and so is asked about anyway.
   * @param how what that request is paid from, what may keep it from being sent, and what calls it off
   * @throws BudgetLowError where the reservation has nothing for it
   */
  verify(how?: HowAsked): Promise<void>;
}

/**
 * A valid access token for a connection (specification 3), proven to be of whom authorized (decision 0004). A refresh token
 * works once, so there is one renewal at a time per connection: one promise in this process, one advisory lock across
 * processes, and a second look under the lock.
 */
export class AccessTokens {
  readonly #locks: AdvisoryLocks;
  readonly #renewal: Renewal;
  readonly #identity: Identity;
  readonly #reads = new Map<number, Promise<PresentAccess>>();
  readonly #inFlight = new Map<number, Promise<Secret>>();

  constructor(private readonly parts: AccessTokenParts) {
    this.#renewal = new Renewal(parts);
    this.#identity = new Identity(parts);
    this.#locks = new AdvisoryLocks({
      url: parts.databaseUrl,
      limits: parts.limits ?? SESSION_LIMITS.renewalLock,
      logger: parts.logger,
      sessions: LOCK_SESSIONS,
      withinMs: SESSION_WITHIN_MS,
      space: RENEWAL_LOCKS,
      heldUp: (cause) => new RenewalHeldUpError({ cause }),
    });
  }

  /**
   * All functions throw ConnectionGoneError where the copy is no longer connected, NeedsReauthorizationError where the CRM
   * refuses the grant or the token is another's, OAuthError where a renewal or its proof failed for now, and CrmError
   * where the CRM refuses a token that it has just given, or is asked by `verify` and does not say.
   */
  of(tenantId: number, copyId: number): PinnedTokens {
    const obtain = (refused: Secret | null) => this.#obtain(tenantId, copyId, refused);
    return {
      current: async () => {
        const present = await this.#present(tenantId, copyId);
        return this.#isOfUse(present) ? present.accessToken : obtain(null);
      },
      renewed: obtain,
      verify: async (how) => {
        const present = await this.#present(tenantId, copyId);
        // Where it has to be renewed, the proof of the new one is the look that the reservation may refuse.
        if (!this.#isOfUse(present)) (await how?.reservation?.spend(ADDRESSES.currentUser.price))?.unsent();
        const proof = this.#isOfUse(present) ? await this.#identity.ask(tenantId, copyId, present, how) : "REPLACED";
        if (proof !== "PROVEN") await obtain(proof === "REFUSED" ? present.accessToken : null);
      },
    };
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#inFlight.values());
    await this.#locks.close();
  }

  /** Callers that come while the row is being read share that read. */
  #present(tenantId: number, copyId: number): Promise<PresentAccess> {
    const running = this.#reads.get(copyId);
    if (running) return running;
    const { database, credentials } = this.parts;
    const read = credentials
      .readAccess(database.tenant(tenantId), copyId)
      .then(usable)
      .finally(() => this.#reads.delete(copyId));
    this.#reads.set(copyId, read);
    return read;
  }

  #isFresh({ accessTokenAskedAt }: PresentAccess): boolean {
    // A clock that was far ahead when it was asked for says nothing of its age.
    return Math.abs(this.parts.clock().getTime() - accessTokenAskedAt.getTime()) < FRESH_FOR_MS;
  }

  #isOfUse(present: PresentAccess): boolean {
    return this.#isFresh(present) && present.isProven;
  }

  /** @param refused the token that the CRM answered with 401; null where the present one is too old or not proven */
  #obtain(tenantId: number, copyId: number, refused: Secret | null): Promise<Secret> {
    const running = this.#inFlight.get(copyId);
    // One that began with an older token may end with the very token that this caller was refused.
    if (running) {
      return running.then((token) =>
        token.reveal() === refused?.reveal() ? this.#obtain(tenantId, copyId, refused) : token,
      );
    }
    // Work of its own: where the caller's time is over, what the CRM has granted must be stored all the same.
    const obtained = inWork(workFields(), () =>
      this.#underLock(copyId, (held) => this.#lookAgain(tenantId, copyId, refused, held)),
    ).finally(() => this.#inFlight.delete(copyId));
    this.#inFlight.set(copyId, obtained);
    return obtained;
  }

  /** @throws RenewalHeldUpError where another process holds the lock for too long, and when it is too late to begin */
  #underLock<T>(copyId: number, work: (held: HeldLock) => Promise<T>): Promise<T> {
    const within = (limitMs: number) => {
      const isOver = timeLimit(this.parts.clock, limitMs);
      return () => {
        if (isOver()) throw new RenewalHeldUpError();
      };
    };
    const asked = () => ({ mayRenew: within(RENEW_WITHIN_MS), mayProve: within(PROVE_WITHIN_MS) });
    return this.#locks.hold(String(copyId), asked, work);
  }

  /** Renews once at most: a token that the CRM refuses right after it gave it is not renewed again. */
  async #lookAgain(tenantId: number, copyId: number, refused: Secret | null, held: HeldLock): Promise<Secret> {
    const { database, credentials } = this.parts;
    const scope = database.tenant(tenantId);
    const present = usable(await credentials.readAccess(scope, copyId));
    if (this.#isFresh(present) && present.accessToken.reveal() !== refused?.reveal()) {
      // Whoever was killed between storing a token and proving it has left that to the next need.
      const proof = await this.#identity.prove(tenantId, copyId, present, { mayBegin: held.mayProve });
      if (proof !== "REFUSED") return this.#handedOut(tenantId, copyId);
    }
    const credential = await credentials.read(scope, copyId);
    if (!credential) throw new ConnectionGoneError(NOT_CONNECTED.message);
    const renewed = await this.#renewal.renew(tenantId, copyId, credential, held.mayRenew);
    const proof = renewed && (await this.#identity.prove(tenantId, copyId, renewed, { mayBegin: held.mayProve }));
    if (proof === "REFUSED") {
      throw new CrmError("UNAUTHORIZED", "The CRM refuses the token that it has just renewed.", { status: 401 });
    }
    return this.#handedOut(tenantId, copyId);
  }

  /**
   * What stands after the CRM was asked: meanwhile a person may have authorized anew, with a token of their own that is
   * proven, or another process may have found that the present one is nobody's whom the copy is of.
   */
  async #handedOut(tenantId: number, copyId: number): Promise<Secret> {
    const { database, credentials } = this.parts;
    const present = usable(await credentials.readAccess(database.tenant(tenantId), copyId));
    if (present.isProven) return present.accessToken;
    throw new OAuthError("OUTAGE", "The access token was replaced while the CRM was asked for it.");
  }
}

function usable(access: PresentAccess | null): PresentAccess {
  if (access?.state === "NEEDS_REAUTHORIZATION") throw new NeedsReauthorizationError(NEEDS_REAUTHORIZATION.message);
  if (!access) throw new ConnectionGoneError(NOT_CONNECTED.message);
  return access;
}

export interface RenewalParts {
  database: Database;
  oauth: Pick<CrmOAuth, "refresh">;
  credentials: Credentials;
  clock: Clock;
  logger: Logger;
  metrics?: Metrics;
}

/** Each fails within the limits of its session. */
const STORE_TRIES = 3;

/** Another process renews, or this one was frozen and has lost the right to: nothing was sent and nothing is noted. */
export class RenewalHeldUpError extends OAuthError {
  constructor(options?: ErrorOptions) {
    super("OUTAGE", "The access is being renewed by another process, which takes too long. Try again.", options);
  }
}

/** One renewal of a connection's token pair. The caller holds the connection's renewal lock. */
export class Renewal {
  constructor(private readonly parts: RenewalParts) {}

  /**
   * Commits that it begins, asks the CRM, commits what came, and only then hands the pair out. It stands at once, because
   * the CRM has rotated the token; whose it is has to be proven before it is used.
   * @param mayBegin called right before the request is written; it throws where the lock may be another process's by now
   * @returns null where the answer was to a pair that is no longer the present one
   * @throws NeedsReauthorizationError, or OAuthError where there is no token for now
   */
  async renew(tenantId: number, copyId: number, old: Credential, mayBegin?: () => void): Promise<Credential | null> {
    const { database, oauth, clock } = this.parts;
    const askedAt = clock();
    const { wasUnconfirmed } = await beginAttempt(database.tenant(tenantId), copyId, old.version, askedAt);
    let grant: Grant;
    try {
      grant = await oauth.refresh(old.refreshToken, mayBegin);
    } catch (error) {
      if (!(error instanceof OAuthError) || error instanceof RenewalHeldUpError) throw error;
      this.parts.metrics?.tokenRenewals.inc({ outcome: error.code });
      return this.#failed(tenantId, copyId, old, error, wasUnconfirmed);
    }
    this.parts.metrics?.tokenRenewals.inc({ outcome: "GRANTED" });
    return this.#stored(tenantId, copyId, old, grant, askedAt);
  }

  /**
   * The CRM has rotated the token: what it granted is lost unless it is stored, so a lock or a session that was lost to
   * a freeze is no reason to give up.
   */
  async #stored(
    tenantId: number,
    copyId: number,
    old: Credential,
    grant: Grant,
    askedAt: Date,
  ): Promise<Credential | null> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#store(tenantId, copyId, old, grant, askedAt);
      } catch (error) {
        if (!heldUpOf(error) || tries >= STORE_TRIES) throw error;
        this.parts.logger.warn({ tenantId, err: error, tries }, "a renewed token could not be stored yet");
      }
    }
  }

  #store(tenantId: number, copyId: number, old: Credential, grant: Grant, askedAt: Date): Promise<Credential | null> {
    const { database, credentials } = this.parts;
    return database.tenant(tenantId).transaction(async (scope) => {
      if (!(await credentials.holds(scope, copyId, old.version))) return null;
      // The credential, then the attempt: the order in which disconnecting locks them.
      const replaced = await credentials.replace(scope, copyId, old, grant, askedAt);
      await endAttempt(scope, copyId, old.version);
      return replaced;
    });
  }

  async #failed(
    tenantId: number,
    copyId: number,
    old: Credential,
    error: OAuthError,
    wasUnconfirmed: boolean,
  ): Promise<null> {
    const { database, clock, logger } = this.parts;
    const decision = decideRenewal(error.code, wasUnconfirmed);
    if (decision.next === "NEEDS_REAUTHORIZATION") {
      const moved = await database.tenant(tenantId).transaction(async (scope) => {
        const moved = await endAuthorization(scope, logger, copyId, old.version, decision.reason, clock());
        await endAttempt(scope, copyId, old.version);
        return moved;
      });
      if (!moved) return null;
      logger.warn(
        { tenantId, reason: decision.reason },
        "the CRM refused the grant: the connection needs re-authorization",
      );
      throw new NeedsReauthorizationError(NEEDS_REAUTHORIZATION.message, { cause: error });
    }
    const level = decision.trouble.code === "SERVICE_MISCONFIGURED" ? "error" : "warn";
    logger[level]({ tenantId, code: decision.trouble.code, err: error }, "an access token could not be renewed");
    const isPresent = await database.tenant(tenantId).transaction(async (scope) => {
      const present = await this.parts.credentials.holds(scope, copyId, old.version);
      if (present) await noteTrouble(scope, copyId, decision.trouble, clock());
      if (decision.settled) await endAttempt(scope, copyId, old.version);
      return present;
    });
    if (!isPresent) return null;
    throw error;
  }
}

/**
 * A row says: a renewal was begun with the credential of this version, and its outcome is not known. It is committed
 * before the request is sent, so that it survives whatever happens to this process in between.
 */
async function beginAttempt(
  { tenantId, rows }: TenantScope,
  copyId: number,
  version: number,
  now: Date,
): Promise<{ wasUnconfirmed: boolean }> {
  const [attempt] = await rows<{ was_unconfirmed: boolean }>(
    `WITH before AS MATERIALIZED (
       SELECT version FROM renewal_attempt WHERE tenant_id = $1 AND copy_id = $2
     ), begun AS (
       INSERT INTO renewal_attempt (tenant_id, copy_id, version, started_at) VALUES ($1, $2, $3, $4)
       ON CONFLICT (tenant_id, copy_id) DO UPDATE SET version = EXCLUDED.version, started_at = EXCLUDED.started_at
     )
     SELECT EXISTS (SELECT 1 FROM before WHERE version = $3) AS was_unconfirmed`,
    [tenantId, copyId, version, now],
    { was_unconfirmed: "flag" },
  );
  return { wasUnconfirmed: attempt?.was_unconfirmed ?? false };
}

/** The outcome with the credential of this version is known; an attempt with a newer one is another's. */
async function endAttempt({ tenantId, typed }: TenantScope, copyId: number, version: number): Promise<void> {
  await typed((orm) => orm.delete(RenewalAttemptRow, { tenantId, copyId, version }));
}

/** How the connection goes on after a renewal that brought no token. */
export type RenewalDecision =
  /** The state moves, and nothing asks the CRM again by itself. */
  | { next: "NEEDS_REAUTHORIZATION"; reason: ReauthorizationReason }
  /** The state stays CONNECTED with trouble, and the next need asks again. */
  | { next: "CONNECTED"; trouble: Trouble; settled: boolean };

const OUTAGE: Trouble = {
  code: "CRM_UNAVAILABLE",
  message: "The CRM did not renew the access for now. It is asked again at the next need; nothing has to be done.",
};
const MISCONFIGURED: Trouble = {
  code: "SERVICE_MISCONFIGURED",
  message: "The CRM does not accept this service's app registration. The service's operator has to mend it.",
};

/**
 * Decision 0004: only `invalid_grant` is revocation, and after a renewal whose answer was lost it may as well be the lost
 * rotation. `settled`: whether this request certainly used nothing up, so that no trace of it has to stay.
 */
export function decideRenewal(failure: TokenFailure, wasUnconfirmed: boolean): RenewalDecision {
  switch (failure) {
    case "INVALID_GRANT":
      return { next: "NEEDS_REAUTHORIZATION", reason: wasUnconfirmed ? "RENEWAL_UNCONFIRMED" : "GRANT_REVOKED" };
    case "MISCONFIGURED":
      return { next: "CONNECTED", trouble: MISCONFIGURED, settled: !wasUnconfirmed };
    case "OUTAGE":
      return { next: "CONNECTED", trouble: OUTAGE, settled: !wasUnconfirmed };
    case "UNKNOWN":
      return { next: "CONNECTED", trouble: OUTAGE, settled: false };
  }
}
