import type { Actor } from "../auth/actor";
import { recordAudit, recordPolicyRefusal } from "../auth/audit";
import { type PolicyRefusal, refusalToConnect } from "../auth/policies";
import { CrmError, explain, stopBehind } from "../crm/errors";
import type { CrmHttp } from "../crm/http";
import { type CrmOAuth, OAuthError } from "../crm/oauth";
import type { CrmCurrentUser } from "../crm/parsing/records";
import type { Grant } from "../crm/token-outcome";
import type { Database, TenantScope } from "../database/database";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import { accepted, type Outcome, type Refused, refused } from "../platform/outcome";
import { admit } from "./admission";
import { consentsResumeAt, consumeState, endConsent, issueState, MAX_BEGUN_CONSENTS } from "./authorization-state";
import { createCopy, type LockedConnection, lockConnection, moveToConnected, readConnection } from "./connection-store";
import type { Credentials } from "./credentials";
import { ownerOf } from "./identity";

export type ConnectRefusal =
  | PolicyRefusal
  | "ANOTHER_CRM_CONNECTED"
  | "AUTHORIZATION_REJECTED"
  | "AUTHORIZATION_DENIED_BY_USER"
  | "AUTHORIZATION_STATE_INVALID"
  | "DIFFERENT_CRM_COMPANY"
  | "CRM_UNAVAILABLE"
  | "LIMIT_REACHED"
  | "INVALID_INPUT";

type Refusal = Refused<ConnectRefusal>;

export interface ConnectInput {
  code: string | null;
  state: string;
  error: string | null;
}

export interface ConnectingParts {
  database: Database;
  http: CrmHttp;
  oauth: CrmOAuth;
  credentials: Credentials;
  crmBaseUrl: string;
  clock: Clock;
  logger: Logger;
  /** Enqueues the first run of an authorization, in the transaction that connects; a kept copy may hold what the user sees no more. */
  enqueueFirstRun(scope: TenantScope, copyId: number, isKept: boolean): Promise<void>;
  /** Takes an earlier user's copy out of sight, in that transaction. */
  retireCopy(scope: TenantScope, copyId: number): Promise<void>;
}

const MESSAGES = {
  NOT_ALLOWED_FOR_ROLE: "Only an owner or admin of your organization may connect the CRM. Ask one of them.",
  NOT_ALLOWED_ON_PLAN: "The CRM connection is part of the Medium and Sales plans. Change the plan to connect.",
  ANOTHER_CRM_CONNECTED: "A CRM is connected already and was left as it is. Disconnect it first.",
  DIFFERENT_CRM_COMPANY:
    "You authorized with a user of another CRM company than the connected one. Disconnect first, or authorize with the right account.",
} as const;
const refusal = (code: keyof typeof MESSAGES): Refusal => refused(code, MESSAGES[code]);

function tooManyBegun(retryAt: Date): Refusal {
  const message = `Your organization has begun ${MAX_BEGUN_CONSENTS} authorizations within ten minutes. Complete the last one in the CRM, or start again after ${retryAt.toISOString()}.`;
  return { ...refused("LIMIT_REACHED", message), retryAt };
}

const VOID_CONSENT =
  "This authorization was not started by you, was used already, is older than ten minutes or was ended by a disconnect. Start again.";

/** Connecting a CRM (specification 3): the browser's consent, then code, token and `users/me`, and only then anything stored. */
export class Connecting {
  constructor(private readonly parts: ConnectingParts) {}

  /** Why connecting would be refused to this actor now; null where it would be allowed. */
  async refusal(actor: Actor): Promise<PolicyRefusal | "ANOTHER_CRM_CONNECTED" | null> {
    const policy = refusalToConnect(actor);
    if (policy) return policy;
    const connection = await readConnection(this.parts.database.tenant(actor.tenantId));
    return connection?.state === "CONNECTED" ? "ANOTHER_CRM_CONNECTED" : null;
  }

  async start(actor: Actor): Promise<Outcome<{ authorizationUrl: string; expiresAt: Date }, ConnectRefusal>> {
    const refusedFor = await this.#refused(actor, "startConnect");
    if (refusedFor) return refusedFor;
    const { database, clock, logger, oauth } = this.parts;
    return database.tenant(actor.tenantId).transaction(async (scope) => {
      const now = clock();
      await lockConnection(scope);
      const retryAt = await consentsResumeAt(scope, now);
      if (retryAt) return this.#noteRejected(scope, actor, tooManyBegun(retryAt));
      const { state, expiresAt } = await issueState(scope, actor, now);
      await recordAudit(scope, logger, { action: "CONSENT_STARTED", actor, at: now });
      return accepted({ authorizationUrl: oauth.authorizationUrl(state), expiresAt });
    });
  }

  /** Completes a consent with what the redirect address received. A refusal leaves nothing stored. */
  async complete(actor: Actor, input: ConnectInput): Promise<Outcome<null, ConnectRefusal>> {
    const refusedFor = await this.#refused(actor, "connect");
    if (refusedFor) return refusedFor;
    if (!input.code && !input.error) {
      const message = "Neither a code nor an error came back from the CRM. Start again.";
      return this.#rejected(actor, refused("INVALID_INPUT", message, "code"));
    }
    const scope = this.parts.database.tenant(actor.tenantId);
    if (!(await consumeState(scope, actor, input.state, this.parts.clock()))) {
      return this.#rejected(actor, refused("AUTHORIZATION_STATE_INVALID", VOID_CONSENT));
    }
    if (input.error || !input.code) {
      const message = "The authorization was cancelled in the CRM. Nothing was changed.";
      return this.#rejected(actor, refused("AUTHORIZATION_DENIED_BY_USER", message), input.state);
    }
    const askedAt = this.parts.clock();
    const validated = await this.#validate(input.code);
    if (validated.ok) return this.#store(actor, input.state, validated.value, askedAt);
    return this.#rejected(actor, validated, input.state);
  }

  /** Why neither a consent may begin nor one be completed; role and plan are noted. */
  async #refused(actor: Actor, operation: string): Promise<Refusal | null> {
    const code = await this.refusal(actor);
    if (!code) return null;
    if (code === "ANOTHER_CRM_CONNECTED") return this.#rejected(actor, refusal(code));
    const { database, logger, clock } = this.parts;
    await recordPolicyRefusal(database, logger, actor, refused(code, MESSAGES[code]), operation, clock());
    return refusal(code);
  }

  /** Ends the consent, where it is one, and notes why it came to nothing. */
  #rejected(actor: Actor, why: Refusal, state?: string): Promise<Refusal> {
    return this.parts.database.tenant(actor.tenantId).transaction(async (scope) => {
      if (state !== undefined) await endConsent(scope, state);
      return this.#noteRejected(scope, actor, why);
    });
  }

  async #noteRejected(scope: TenantScope, actor: Actor, why: Refusal): Promise<Refusal> {
    const { logger, clock } = this.parts;
    await recordAudit(scope, logger, { action: "CONSENT_REJECTED", actor, at: clock(), code: why.code });
    return why;
  }

  /** Exchanges the code and asks the CRM whose token it is, before anything is stored (specification 4.2). */
  async #validate(code: string): Promise<Outcome<{ grant: Grant; user: CrmCurrentUser }, ConnectRefusal>> {
    try {
      const grant = await this.parts.oauth.exchangeCode(code);
      const user = await ownerOf(this.parts.http, this.parts.crmBaseUrl, grant.accessToken);
      if (user.active) return accepted({ grant, user });
      return refused(
        "AUTHORIZATION_REJECTED",
        `The CRM user ${user.email} is deactivated. Authorize with an active one.`,
      );
    } catch (error) {
      if (error instanceof OAuthError || error instanceof CrmError) return this.#refusalOf(error);
      throw error;
    }
  }

  #refusalOf(error: OAuthError | CrmError): Refusal {
    const stop = stopBehind(error);
    if (stop) return refused("CRM_UNAVAILABLE", `${stop.message} Nothing was stored; start again later.`);
    this.parts.logger.warn({ err: error, code: error.code }, "an authorization could not be validated");
    switch (error.code) {
      case "INVALID_GRANT":
        return refused("AUTHORIZATION_REJECTED", "The CRM did not accept the authorization code. Start again.");
      case "MISCONFIGURED":
        this.parts.logger.error(
          { code: error.code },
          "the CRM refuses our app registration: check CRM_CLIENT_ID, CRM_CLIENT_SECRET, CRM_REDIRECT_URL",
        );
        return refused(
          "AUTHORIZATION_REJECTED",
          "The CRM does not accept this service's registration. Tell its operator.",
        );
      case "ACCOUNT_CLOSED":
        return refused("AUTHORIZATION_REJECTED", explain("ACCOUNT_CLOSED"));
      case "OUTAGE":
      case "UNKNOWN":
      case "UNAVAILABLE":
      case "RATE_LIMITED":
      case "UNREADABLE":
        return refused(
          "CRM_UNAVAILABLE",
          "The CRM did not give a usable answer. Nothing was stored; start again in a while.",
        );
      default:
        return refused("AUTHORIZATION_REJECTED", "The CRM refused the token that it had just issued. Start again.");
    }
  }

  #store(
    actor: Actor,
    state: string,
    validated: { grant: Grant; user: CrmCurrentUser },
    askedAt: Date,
  ): Promise<Outcome<null, ConnectRefusal>> {
    const { grant, user } = validated;
    const { refreshToken } = grant;
    if (!refreshToken) {
      const message = "The CRM granted no refresh token. Start again.";
      return this.#rejected(actor, refused("AUTHORIZATION_REJECTED", message), state);
    }
    return this.parts.database
      .tenant(actor.tenantId)
      .transaction(async (scope): Promise<Outcome<null, ConnectRefusal>> => {
        const now = this.parts.clock();
        const present = await lockConnection(scope);
        const reject = (why: Refusal) => this.#noteRejected(scope, actor, why);
        if (!(await endConsent(scope, state))) return reject(refused("AUTHORIZATION_STATE_INVALID", VOID_CONSENT));
        const admission = admit(present, user);
        if (admission === "ANOTHER_CRM_CONNECTED" || admission === "DIFFERENT_CRM_COMPANY")
          return reject(refusal(admission));
        const copyId = await this.#copyFor(scope, admission, present, user, now);
        await this.parts.credentials.put(scope, copyId, grant, refreshToken, askedAt);
        await moveToConnected(scope, present.state, copyId, user, now);
        await this.parts.enqueueFirstRun(scope, copyId, copyId === present.copyId);
        await this.#noteConnected(scope, actor, present, admission, now);
        return accepted(null);
      });
  }

  async #noteConnected(
    scope: TenantScope,
    actor: Actor,
    { state }: LockedConnection,
    admission: "NEW_COPY" | "SAME_COPY",
    at: Date,
  ): Promise<void> {
    const { logger } = this.parts;
    await recordAudit(scope, logger, { action: "CONSENT_COMPLETED", actor, at });
    if (state === "NOT_CONNECTED") return recordAudit(scope, logger, { action: "CONNECTED", actor, at });
    const code = admission === "SAME_COPY" ? "SAME_USER" : "OTHER_USER";
    return recordAudit(scope, logger, { action: "REAUTHORIZED", actor, at, code });
  }

  /** The same user sees what the copy holds; another one sees other records, so the earlier copy goes. */
  async #copyFor(
    scope: TenantScope,
    admission: "NEW_COPY" | "SAME_COPY",
    present: LockedConnection,
    user: CrmCurrentUser,
    now: Date,
  ): Promise<number> {
    if (admission === "SAME_COPY" && present.copyId !== null) return present.copyId;
    if (present.copyId !== null) await this.parts.retireCopy(scope, present.copyId);
    return createCopy(scope, user, now);
  }
}
