import { type CrmOAuth, OAuthError } from "../crm/oauth";
import type { Grant } from "../crm/token-outcome";
import type { Database } from "../database/database";
import { heldUpOf } from "../database/session-limits";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { endAuthorization } from "./connection-store";
import type { Credential, Credentials } from "./credentials";
import { ConnectionGoneError, NeedsReauthorizationError, RenewalHeldUpError } from "./errors";
import { NEEDS_REAUTHORIZATION } from "./refusals";
import { beginAttempt, endAttempt } from "./renewal-attempts";
import { decideRenewal } from "./renewal-decision";
import { noteTrouble } from "./trouble";

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

/** One renewal of a connection's token pair. The caller holds the connection's renewal lock. */
export class Renewal {
  constructor(private readonly parts: RenewalParts) {}

  /**
   * Commits that it begins, asks the CRM, commits what came, and only then hands the pair out. It stands at once, because
   * the CRM has rotated the token; whose it is has to be proven before it is used.
   * @param mayBegin called right before the request is written; it throws where the lock may be another process's by now
   * @throws NeedsReauthorizationError, ConnectionGoneError, or OAuthError where there is no token for now
   */
  async renew(tenantId: number, copyId: number, old: Credential, mayBegin?: () => void): Promise<Credential> {
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
    const stored = await this.#stored(tenantId, copyId, old, grant, askedAt);
    return stored ?? this.#replaced(tenantId, copyId, old);
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
  ): Promise<Credential> {
    const { database, clock, logger } = this.parts;
    const decision = decideRenewal(error.code, wasUnconfirmed);
    if (decision.next === "NEEDS_REAUTHORIZATION") {
      const moved = await database.tenant(tenantId).transaction(async (scope) => {
        const moved = await endAuthorization(scope, logger, copyId, old.version, decision.reason, clock());
        await endAttempt(scope, copyId, old.version);
        return moved;
      });
      if (!moved) return this.#replaced(tenantId, copyId, old);
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
    if (!isPresent) return this.#replaced(tenantId, copyId, old);
    throw error;
  }

  /** The answer was to a pair that a person's authorization has replaced meanwhile: that one is the present. */
  async #replaced(tenantId: number, copyId: number, old: Credential): Promise<Credential> {
    const present = await this.parts.credentials.read(this.parts.database.tenant(tenantId), copyId);
    if (present && present.version !== old.version) return present;
    throw new ConnectionGoneError("The CRM was disconnected while its access was renewed.");
  }
}
