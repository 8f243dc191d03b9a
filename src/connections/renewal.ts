import { recordAudit } from "../auth/policies";
import { explain, stopBehind } from "../crm/errors";
import { type CrmOAuth, type Grant, OAuthError, type TokenFailure } from "../crm/oauth";
import type { Database, TenantScope } from "../database/database";
import { outlast } from "../database/errors";
import { ConnectionRow, type ReauthorizationReason, RenewalAttemptRow } from "../entities/connection";
import { type Clock, MINUTE_MS, timeLimit } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import {
  endAuthorization,
  move,
  NEEDS_REAUTHORIZATION,
  NeedsReauthorizationError,
  noteTrouble,
  type Trouble,
} from "./connection";
import type { Credential, Credentials } from "./credentials";

export interface RenewalParts {
  database: Database;
  oauth: Pick<CrmOAuth, "refresh">;
  credentials: Credentials;
  clock: Clock;
  logger: Logger;
  metrics?: Metrics;
}

/** A database that is upgraded or restored is away for no longer; the CRM has no second pair for whoever gives up. */
const STORE_WITHIN_MS = 30 * MINUTE_MS;

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
      if (stopBehind(error)) {
        // No failure of the CRM: everybody is told of the stop by itself. An earlier request may still have had its effect.
        if (!wasUnconfirmed) await endAttempt(database.tenant(tenantId), copyId, old.version);
        throw error;
      }
      this.parts.metrics?.tokenRenewals.inc({ outcome: error.code });
      return this.#failed(tenantId, copyId, old, error, wasUnconfirmed);
    }
    this.parts.metrics?.tokenRenewals.inc({ outcome: "GRANTED" });
    return this.#stored(tenantId, copyId, old, grant, askedAt);
  }

  /**
   * The CRM has rotated the token: what it granted is lost unless it is stored, so a lock or a session that was lost to
   * a freeze, or a database that is away or being restored, is no reason to give up.
   */
  #stored(tenantId: number, copyId: number, old: Credential, grant: Grant, askedAt: Date): Promise<Credential | null> {
    const store = () => this.#store(tenantId, copyId, old, grant, askedAt);
    return outlast(store, timeLimit(this.parts.clock, STORE_WITHIN_MS), (err) =>
      this.parts.logger.warn({ tenantId, err }, "a renewed token could not be stored yet"),
    );
  }

  #store(tenantId: number, copyId: number, old: Credential, grant: Grant, askedAt: Date): Promise<Credential | null> {
    const { database, credentials } = this.parts;
    return database.tenant(tenantId).transaction(async (scope) => {
      // The connection, the credential, then the attempt: the order in which disconnecting locks them.
      const locked = { where: { tenantId, copyId }, lock: { mode: "pessimistic_write" } } as const;
      const connection = await scope.typed((orm) => orm.findOne(ConnectionRow, locked));
      const replaced = await credentials.replace(scope, copyId, old, grant, askedAt);
      if (replaced && connection?.reauthorizationReason === "RENEWAL_UNCONFIRMED") await this.#takeBack(scope);
      await endAttempt(scope, copyId, old.version);
      return replaced;
    });
  }

  /** Another renewal was refused the token that this one had used up: nobody has withdrawn the grant. */
  async #takeBack(scope: TenantScope): Promise<void> {
    const { clock, logger } = this.parts;
    const event = { action: "NEEDS_REAUTHORIZATION", actor: null, at: clock(), code: "TAKEN_BACK" } as const;
    await move(scope, "NEEDS_REAUTHORIZATION", "CONNECTED", event.at, {});
    await recordAudit(scope, logger, event);
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
      if (decision.settled || !present) await endAttempt(scope, copyId, old.version);
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

/** A run that had no token says so in the same words: in others each run would tell both anew. */
export const NO_TOKEN = {
  code: "CRM_UNAVAILABLE",
  message: explain("NO_TOKEN", { todo: "It is tried again at the next need, as when you ask for a sync." }),
} as const;
const MISCONFIGURED: Trouble = {
  code: "SERVICE_MISCONFIGURED",
  message: "The CRM does not accept this service's app registration. The service's operator has to mend it.",
};
/** A renewed access token shows these to be over. What a list of the CRM has met under the same code may go on all the same. */
export const TOKEN_TROUBLES = [NO_TOKEN, MISCONFIGURED].map(({ message }) => message);

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
      return { next: "CONNECTED", trouble: NO_TOKEN, settled: !wasUnconfirmed };
    case "UNKNOWN":
      return { next: "CONNECTED", trouble: NO_TOKEN, settled: false };
  }
}
