import { createHash, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Actor } from "../auth/actor";
import { type PolicyRefusal, recordAudit, refusalToDisconnect, refusedByPolicy } from "../auth/policies";
import { basicOf, OAuthError } from "../crm/oauth";
import { jsonOf } from "../crm/parsing/values";
import type { Database, TenantScope } from "../database/database";
import { heldUpOf } from "../database/errors";
import { enqueueJob, type JobKind } from "../database/jobs";
import { AuthorizationRequestRow, CredentialRow, RenewalAttemptRow } from "../entities/connection";
import { KeptSnoozeRow } from "../entities/deal";
import { FieldMappingRow } from "../entities/writeback";
import type { Clock } from "../platform/clock";
import type { CrmConfig } from "../platform/config";
import { accepted, type Outcome, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import type { AccessTokens } from "./access-tokens";
import { ConnectionGoneError, lockConnection, moveToNotConnected, NeedsReauthorizationError } from "./connection";
import { type EndsSync, retireCopy } from "./copies";
import type { Credentials } from "./credentials";

export interface DisconnectingParts {
  database: Database;
  clock: Clock;
  logger: Logger;
  endsSync: EndsSync;
}

/** Ends a connection on our side; the CRM is not asked, and what was written there stays (specification 3). */
export class Disconnecting {
  constructor(private readonly parts: DisconnectingParts) {}

  /** One short transaction (decision 0004), idempotent: disconnecting what is not connected succeeds. */
  async disconnect(actor: Actor): Promise<Outcome<null, PolicyRefusal>> {
    const policy = refusalToDisconnect(actor);
    const message = "Only an owner or admin of your organization may disconnect the CRM. Ask one of them.";
    const refusal = await refusedByPolicy(this.parts, actor, "disconnect", policy && refused(policy, message));
    if (refusal) return refusal;
    const { database, clock, logger, endsSync } = this.parts;
    await database.tenant(actor.tenantId).transaction(async (scope) => {
      const present = await lockConnection(scope);
      await forget(scope);
      if (present.state === "NOT_CONNECTED" || present.copyId === null) return;
      await moveToNotConnected(scope, present.state, clock());
      await retireCopy(scope, present.copyId, endsSync);
      // What was said of deals goes last: a page that was waited for may have kept some of it.
      await scope.typed((orm) => orm.delete(KeptSnoozeRow, { tenantId: actor.tenantId }));
      await recordAudit(scope, logger, { action: "DISCONNECTED", actor, at: clock() });
    });
    return accepted(null);
  }
}

/**
 * Tokens, begun renewals, and consents, whoever started them: who disconnects does not expect that a browser tab connects
 * again. And the chosen fields.
 */
async function forget({ tenantId, typed }: TenantScope): Promise<void> {
  for (const entity of [CredentialRow, RenewalAttemptRow, AuthorizationRequestRow, FieldMappingRow]) {
    await typed((orm) => orm.delete(entity, { tenantId }));
  }
}

/** A renewal with the credential of that version, which the CRM may have ended. */
interface Doubt {
  tenantId: number;
  copyId: number;
  version: number;
}

export const CONFIRM_GRANT: JobKind<Doubt> = {
  name: "confirm_grant",
  payload: z.object({ tenantId: z.int(), copyId: z.int(), version: z.int() }),
  subjectOf: ({ tenantId }) => tenantId,
};

/** The body's ids come as numbers or as text (wire fact 2.5); none is longer than what a number holds. */
const crmId = z.union([z.int().positive(), z.string().regex(/^\d{1,15}$/)]).transform(Number);
const callbackOf = (clientId: string) =>
  z.object({ client_id: z.literal(clientId), company_id: crmId, user_id: crmId });

/** Connections of one CRM user, each of another tenant: there is hardly ever a second. */
const MOST_CONNECTIONS = 100;

export interface UninstallParts {
  database: Database;
  credentials: Credentials;
  tokens: AccessTokens;
  crm: Pick<CrmConfig, "clientId" | "clientSecret">;
  logger: Logger;
  metrics: Metrics;
}

/**
 * TAKEN: one renewal for each connection of that user is on its way. UNKNOWN: there is none that could be renewed. HELD_UP:
 * the database was away, and the CRM may say it again.
 */
export type UninstallOutcome = "TAKEN" | "UNKNOWN" | "UNREADABLE" | "HELD_UP";

/**
 * The CRM says that a user has uninstalled the app. It says so once, late, or to a connection that was made anew since, so
 * its word stops nothing: it is a reason to renew at once, and a renewal that is refused is what ends an authorization.
 */
export class Uninstalls {
  readonly #expected: Buffer;

  constructor(private readonly parts: UninstallParts) {
    this.#expected = digest(basicOf(parts.crm));
  }

  /** Whether the header is our own registration's id and secret; in the same time whatever it is. */
  admits(authorization: string | undefined): boolean {
    const given = /^basic +(\S+)$/i.exec(authorization ?? "")?.[1] ?? "";
    const isOurs = timingSafeEqual(digest(`Basic ${given}`), this.#expected);
    if (!isOurs) this.parts.metrics.uninstallCallbacks.inc({ outcome: "REFUSED" });
    return isOurs;
  }

  /** @param body of a request that is from the CRM */
  async take(body: string): Promise<UninstallOutcome> {
    const { crm, logger, metrics } = this.parts;
    const read = callbackOf(crm.clientId).safeParse(jsonOf(body));
    const heldUp = (error: unknown) => {
      if (!heldUpOf(error)) throw error;
      logger.warn({ err: error }, "an uninstall that the CRM tells could not be looked at");
      return null;
    };
    const begun = read.success ? await this.#doubt(read.data.company_id, read.data.user_id).catch(heldUp) : 0;
    const outcome = !read.success ? "UNREADABLE" : begun === null ? "HELD_UP" : begun > 0 ? "TAKEN" : "UNKNOWN";
    metrics.uninstallCallbacks.inc({ outcome });
    logger.info({ outcome, connections: begun }, "the CRM says that the app was uninstalled");
    return outcome;
  }

  async #doubt(companyId: number, userId: number): Promise<number> {
    const { database } = this.parts;
    const doubts = await database.acrossTenants<Doubt>(
      `SELECT c.tenant_id AS "tenantId", c.copy_id AS "copyId", x.version FROM synced_copy s
       JOIN connection c ON c.tenant_id = s.tenant_id AND c.copy_id = s.id
       JOIN credential x ON x.tenant_id = s.tenant_id AND x.copy_id = s.id
       WHERE s.crm_company_id = $1 AND s.crm_user_id = $2 AND c.state = 'CONNECTED' LIMIT ${MOST_CONNECTIONS}`,
      [companyId, userId],
      { tenantId: "number", copyId: "number", version: "number" },
    );
    for (const doubt of doubts) await enqueueJob(database.tenant(doubt.tenantId), CONFIRM_GRANT, doubt);
    return doubts.length;
  }

  /** The worker's side. A pair that was renewed or replaced since it was doubted has been accepted later than that. */
  async confirm({ tenantId, copyId, version }: Doubt): Promise<void> {
    const { database, credentials, tokens, logger } = this.parts;
    const present = await credentials.readAccess(database.tenant(tenantId), copyId);
    if (present?.state !== "CONNECTED" || present.version !== version) return;
    try {
      await tokens.of(tenantId, copyId).renewed(present.accessToken);
    } catch (error) {
      if (error instanceof NeedsReauthorizationError || error instanceof ConnectionGoneError) return;
      if (!(error instanceof OAuthError)) throw error;
      logger.warn({ tenantId, err: error }, "whether the app was uninstalled shows at the next need for a token");
    }
  }
}

/** Texts of any length become comparable in constant time. */
const digest = (text: string) => createHash("sha256").update(text).digest();
