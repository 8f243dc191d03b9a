import { type CrmOAuth, OAuthError } from "../crm/oauth";
import type { Grant } from "../crm/token-outcome";
import type { TenantDoor } from "../database/tenant-door";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { endAuthorization } from "./connection-store";
import type { Credential, Credentials } from "./credentials";
import { ConnectionGoneError, NeedsReauthorizationError } from "./errors";
import { NEEDS_REAUTHORIZATION } from "./refusals";
import { beginAttempt, endAttempt } from "./renewal-attempts";
import { decideRenewal } from "./renewal-decision";
import { noteTrouble } from "./trouble";

export interface RenewalParts {
  door: TenantDoor;
  oauth: Pick<CrmOAuth, "refresh">;
  credentials: Credentials;
  clock: Clock;
  logger: Logger;
  metrics?: Metrics;
}

/** One renewal of a connection's token pair. The caller holds the connection's renewal lock. */
export class Renewal {
  constructor(private readonly parts: RenewalParts) {}

  /**
   * Commits that it begins, asks the CRM, commits what came, and only then hands the pair out. It stands at once, because
   * the CRM has rotated the token; whose it is has to be proven before it is used.
   * @throws NeedsReauthorizationError, ConnectionGoneError, or OAuthError where there is no token for now
   */
  async renew(tenantId: number, copyId: number, old: Credential): Promise<Credential> {
    const { door, oauth, clock } = this.parts;
    const askedAt = clock();
    const { wasUnconfirmed } = await beginAttempt(door.enter(tenantId), copyId, old.version, askedAt);
    let grant: Grant;
    try {
      grant = await oauth.refresh(old.refreshToken);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      this.parts.metrics?.tokenRenewals.inc({ outcome: error.code });
      return this.#failed(tenantId, copyId, old, error, wasUnconfirmed);
    }
    this.parts.metrics?.tokenRenewals.inc({ outcome: "GRANTED" });
    // The credential, then the attempt: the order in which disconnecting locks them.
    const stored = await door.transaction(tenantId, async (scope) => {
      const replaced = await this.parts.credentials.replace(scope, copyId, old, grant, askedAt);
      await endAttempt(scope, copyId);
      return replaced;
    });
    return stored ?? this.#replaced(tenantId, copyId, old);
  }

  async #failed(
    tenantId: number,
    copyId: number,
    old: Credential,
    error: OAuthError,
    wasUnconfirmed: boolean,
  ): Promise<Credential> {
    const { door, clock, logger } = this.parts;
    const decision = decideRenewal(error.code, wasUnconfirmed);
    if (decision.next === "NEEDS_REAUTHORIZATION") {
      const moved = await door.transaction(tenantId, async (scope) => {
        const moved = await endAuthorization(scope, logger, copyId, old.version, decision.reason, clock());
        await endAttempt(scope, copyId);
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
    const isPresent = await door.transaction(tenantId, async (scope) => {
      const present = await this.parts.credentials.holds(scope, copyId, old.version);
      if (present) await noteTrouble(scope, copyId, decision.trouble, clock());
      if (decision.settled) await endAttempt(scope, copyId);
      return present;
    });
    if (!isPresent) return this.#replaced(tenantId, copyId, old);
    throw error;
  }

  /** The answer was to a pair that a person's authorization has replaced meanwhile: that one is the present. */
  async #replaced(tenantId: number, copyId: number, old: Credential): Promise<Credential> {
    const present = await this.parts.credentials.read(this.parts.door.enter(tenantId), copyId);
    if (present && present.version !== old.version) return present;
    throw new ConnectionGoneError("The CRM was disconnected while its access was renewed.");
  }
}
