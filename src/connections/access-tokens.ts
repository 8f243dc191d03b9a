import { ADDRESSES, type TokenSource } from "../crm/calls";
import { CrmError } from "../crm/errors";
import { OAuthError } from "../crm/oauth";
import { AdvisoryLocks } from "../database/between-processes";
import { SESSION_LIMITS, type SessionLimits } from "../database/session-limits";
import { MINUTE_MS, msApart, SECOND_MS, timeLimit } from "../platform/clock";
import type { Secret } from "../platform/keyring";
import { inWork, workFields } from "../platform/work";
import { ConnectionGoneError, NEEDS_REAUTHORIZATION, NeedsReauthorizationError, NOT_CONNECTED } from "./connection";
import type { PresentAccess } from "./credentials";
import { type HowAsked, Identity, type IdentityParts } from "./grants";
import { Renewal, RenewalHeldUpError, type RenewalParts } from "./renewal";

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
/** How long a run goes by one look at its credential where no change of the connection is told. */
const LOOKED_AT_WITHIN_MS = 100;
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
  readonly #inFlight = new Map<string, Promise<Secret>>();

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

  async #present(tenantId: number, copyId: number): Promise<PresentAccess> {
    const { database, credentials } = this.parts;
    const access = await credentials.readAccess(database.tenant(tenantId), copyId);
    if (access?.state === "NEEDS_REAUTHORIZATION") throw new NeedsReauthorizationError(NEEDS_REAUTHORIZATION.message);
    if (!access) throw new ConnectionGoneError(NOT_CONNECTED.message);
    return access;
  }

  #isFresh({ accessTokenAskedAt }: PresentAccess): boolean {
    // A clock that was far ahead when it was asked for says nothing of its age.
    return msApart(accessTokenAskedAt, this.parts.clock()) < FRESH_FOR_MS;
  }

  #isOfUse(present: PresentAccess): boolean {
    return this.#isFresh(present) && present.isProven;
  }

  /** @param refused the token that the CRM answered with 401; null where the present one is too old or not proven */
  #obtain(tenantId: number, copyId: number, refused: Secret | null): Promise<Secret> {
    const whose = `${tenantId} ${copyId}`;
    const running = this.#inFlight.get(whose);
    // One that began with an older token may end with the very token that this caller was refused.
    if (running) {
      return running.then((token) =>
        token.reveal() === refused?.reveal() ? this.#obtain(tenantId, copyId, refused) : token,
      );
    }
    // Work of its own: where the caller's time is over, what the CRM has granted must be stored all the same.
    const obtained = inWork(workFields(), () =>
      this.#underLock(copyId, (held) => this.#lookAgain(tenantId, copyId, refused, held)),
    ).finally(() => this.#inFlight.delete(whose));
    this.#inFlight.set(whose, obtained);
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
    const present = await this.#present(tenantId, copyId);
    if (this.#isFresh(present) && present.accessToken.reveal() !== refused?.reveal()) {
      // Whoever was killed between storing a token and proving it has left that to the next need.
      const proof = await this.#identity.prove(tenantId, copyId, present, { mayBegin: held.mayProve });
      if (proof !== "REFUSED") return this.#handedOut(tenantId, copyId);
    }
    const { database, credentials } = this.parts;
    const credential = await credentials.read(database.tenant(tenantId), copyId);
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
    const present = await this.#present(tenantId, copyId);
    if (present.isProven) return present.accessToken;
    throw new OAuthError("OUTAGE", "The access token was replaced while the CRM was asked for it.");
  }
}

/**
 * For the many requests of a run: one look at the credential serves those of the next 100 ms, and none once a change of
 * the connection is told. What writes looks each time.
 * @param onChange calls `forget` when the connection changes; returns what ends that
 */
export function lookedAtBriefly(tokens: PinnedTokens, onChange: (forget: () => void) => () => void): PinnedTokens {
  let look: { begunAt: number; token: Promise<Secret>; end: () => void } | null = null;
  const forget = () => {
    look?.end();
    look = null;
  };
  const begin = () => {
    // Told from before it begins: a change while it is under way must not be missed.
    const unsubscribe = onChange(forget);
    const timer = setTimeout(forget, LOOKED_AT_WITHIN_MS).unref();
    const end = () => {
      clearTimeout(timer);
      unsubscribe();
    };
    const begun = { begunAt: performance.now(), token: tokens.current(), end };
    begun.token.catch(forget);
    return begun;
  };
  const current = () => {
    // A timer is late in a process that was frozen.
    if (look && performance.now() - look.begunAt >= LOOKED_AT_WITHIN_MS) forget();
    look ??= begin();
    return look.token;
  };
  return { ...tokens, current, renewed: (refused) => tokens.renewed(refused).finally(forget) };
}
