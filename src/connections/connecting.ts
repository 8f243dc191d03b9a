import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "../auth/actor";
import { type PolicyRefusal, recordAudit, refusalToConnect, refusedByPolicy } from "../auth/policies";
import { CrmError, explain, stopBehind } from "../crm/errors";
import type { CrmHttp } from "../crm/http";
import { type CrmOAuth, type Grant, OAuthError } from "../crm/oauth";
import type { CrmCurrentUser } from "../crm/parsing/records";
import type { Database, TenantScope } from "../database/database";
import { forgetOld } from "../database/upsert";
import { AuthorizationRequestRow, type ConnectionRow, RenewalAttemptRow } from "../entities/connection";
import { type Clock, MINUTE_MS, SECOND_MS } from "../platform/clock";
import { accepted, type Outcome, type Refused, refused } from "../platform/errors";
import type { Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import { type LockedConnection, lockConnection, moveToConnected, readConnection } from "./connection";
import { createCopy, type EndsSync, keepSnoozes, retireCopy } from "./copies";
import type { Credentials } from "./credentials";
import { ownerOf } from "./grants";
import type { KeepOut } from "./keep-out";

const STATE_BYTES = 32;
const STATE_LIFE_MS = 10 * MINUTE_MS;
/** Consents that a tenant may begin in the ten minutes of one; a few people with a few pages each need no more. */
const MAX_BEGUN_CONSENTS = 20;
/** How often, and for how long, whoever repeats a connect that is under way looks for its end: two calls to the CRM. */
const [POLL_MS, AWAITED_MS] = [200, MINUTE_MS];
/** How often who completes a connect says so, and after what silence nobody does: a process that was killed does not end its own. */
const [BEAT_MS, SILENT_MS] = [SECOND_MS, 5 * SECOND_MS];

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
type Answer = Outcome<null, ConnectRefusal>;

export interface ConnectInput {
  code: string | null;
  state: string;
  error: string | null;
}

/** The tokens of a consent, and the CRM user who gave it. */
interface Authorized {
  grant: Grant;
  refreshToken: Secret;
  /** When the code was sent: the access token's life counts from then. */
  askedAt: Date;
  user: CrmCurrentUser;
}

/** Starts the syncs of a connection. `sync/schedule.ts` does it; `services.ts` gives it. */
interface StartsSync extends EndsSync {
  /**
   * Enqueues the first run of an authorization, in the transaction that connects.
   * @param isKept an earlier authorization's copy, which may hold what the user sees no more
   */
  authorized(scope: TenantScope, copyId: number, isKept: boolean): Promise<void>;
}

export interface ConnectingParts {
  database: Database;
  http: CrmHttp;
  oauth: CrmOAuth;
  credentials: Credentials;
  crmBaseUrl: string;
  clock: Clock;
  logger: Logger;
  keepOut: KeepOut;
  startsSync: StartsSync;
  /** Why nothing that needs the CRM may be begun now; null where it may. */
  stopped(): Promise<Refused<"CRM_UNAVAILABLE"> | null>;
}

const MESSAGES = {
  NOT_ALLOWED_FOR_ROLE: "Only an owner or admin of your organization may connect the CRM. Ask one of them.",
  NOT_ALLOWED_ON_PLAN: "The CRM connection is part of the Medium and Sales plans. Change the plan to connect.",
  ANOTHER_CRM_CONNECTED: "A CRM is connected already and was left as it is. Disconnect it first.",
  DIFFERENT_CRM_COMPANY:
    "You authorized with a user of another CRM company than the connected one. Disconnect first, or authorize with the right account.",
} as const;

function tooManyBegun(retryAt: Date): Refusal {
  const message = `Your organization has begun ${MAX_BEGUN_CONSENTS} authorizations within ten minutes. Complete the last one in the CRM, or start again after ${retryAt.toISOString()}.`;
  return { ...refused("LIMIT_REACHED", message), retryAt };
}

const VOID_CONSENT: Refusal = refused(
  "AUTHORIZATION_STATE_INVALID",
  "This authorization was not started by you, was used already, is older than ten minutes or was ended by a disconnect. Start again.",
);
const rejected = (message: string): Refusal => refused("AUTHORIZATION_REJECTED", message);
/** A user's "Cancel" as the CRM's documents call it, and as its SDK does. Any other error is the CRM's, or our registration's. */
const CANCELLED: ReadonlySet<string | null> = new Set(["user_denied", "access_denied"]);
const CANCELLED_IN_CRM: Refusal = refused(
  "AUTHORIZATION_DENIED_BY_USER",
  "The authorization was cancelled in the CRM. Nothing was changed.",
);
const ERROR_OF_CRM = rejected(
  "The CRM answered with an error instead of an authorization. Nothing was changed. Start again; if it comes again, tell the operator.",
);
const unavailable = (message: string): Refusal => refused("CRM_UNAVAILABLE", message);

/** Connecting a CRM (specification 3): the browser's consent, then code, token and `users/me`, and only then anything stored. */
export class Connecting {
  constructor(private readonly parts: ConnectingParts) {}

  /** Why {@link start} would refuse this actor now; null where it would not. */
  async refusal(actor: Actor, scope: TenantScope, connection: ReadsConnection): Promise<ConnectRefusal | null> {
    const policy = refusalToConnect(actor);
    if (policy) return policy;
    const { clock, stopped } = this.parts;
    const asked = [barred(actor, connection), stopped(), consentsResumeAt(scope, clock())] as const;
    const [code, stop, retryAt] = await Promise.all(asked);
    return code ?? stop?.code ?? (retryAt && "LIMIT_REACHED");
  }

  async start(actor: Actor): Promise<Outcome<{ authorizationUrl: string; expiresAt: Date }, ConnectRefusal>> {
    const { database, clock, logger, oauth, stopped } = this.parts;
    const code = await barred(actor, () => readConnection(database.tenant(actor.tenantId)));
    if (code) return this.#noteBarred(actor, "startConnect", code);
    // A consent that nobody may complete would be given for nothing.
    const stop = await stopped();
    if (stop) return this.#reject(actor, stop);
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

  /**
   * Completes a consent with what the redirect address received. Whose request is repeated, as browsers and React do, has
   * its answer, also a refusal, of which that alone is stored; and the CRM, which takes a code once, is asked once.
   */
  async complete(actor: Actor, input: ConnectInput): Promise<Answer> {
    const [scope, now] = [this.parts.database.tenant(actor.tenantId), this.parts.clock()];
    const earlier = () => earlierAnswer(scope, actor, input, now);
    const code = await barred(actor, () => readConnection(scope));
    if (code === "ANOTHER_CRM_CONNECTED" && (await earlier())?.ok) return accepted(null);
    if (code) return this.#noteBarred(actor, "connect", code);
    if (!input.code && !input.error) {
      const message = "Neither a code nor an error came back from the CRM. Start again.";
      return this.#reject(actor, refused("INVALID_INPUT", message, "code"));
    }
    if (!(await consumeState(scope, actor, input, now))) return (await earlier()) ?? this.#reject(actor, VOID_CONSENT);
    if (input.error || !input.code) {
      if (CANCELLED.has(input.error)) return this.#reject(actor, CANCELLED_IN_CRM, input.state);
      this.parts.logger.warn({ error: input.error }, "the CRM's redirect brought an error instead of a code");
      return this.#reject(actor, ERROR_OF_CRM, input.state);
    }
    const over = new AbortController();
    void showLife(scope, input.state, over.signal);
    try {
      const validated = await this.#validate(input.code);
      if (!validated.ok) return await this.#reject(actor, validated, input.state);
      return await this.#store(actor, input.state, validated.value);
    } catch (error) {
      // Who tries again would wait for this one; where the database is away, they do.
      await endConsent(scope, input.state, {}).catch(() => undefined);
      throw error;
    } finally {
      over.abort();
    }
  }

  async #noteBarred(actor: Actor, operation: string, code: Barred): Promise<Refusal> {
    if (code === "ANOTHER_CRM_CONNECTED") return this.#reject(actor, refused(code, MESSAGES[code]));
    const refusal = refused(code, MESSAGES[code]);
    return (await refusedByPolicy(this.parts, actor, operation, refusal)) ?? refusal;
  }

  /** Ends the consent, where it is one, and notes why it came to nothing. */
  #reject(actor: Actor, why: Refusal, state?: string): Promise<Refusal> {
    const tenant = this.parts.database.tenant(actor.tenantId);
    return tenant.transaction((scope) => this.#noteRejected(scope, actor, why, state));
  }

  async #noteRejected(scope: TenantScope, actor: Actor, why: Refusal, state?: string): Promise<Refusal> {
    const { logger, clock } = this.parts;
    if (state !== undefined) await endConsent(scope, state, { refusal: why });
    await recordAudit(scope, logger, { action: "CONSENT_REJECTED", actor, at: clock(), code: why.code });
    return why;
  }

  /** Exchanges the code and asks the CRM whose token it is, before anything is stored (specification 4.2). */
  async #validate(code: string): Promise<Outcome<Authorized, ConnectRefusal>> {
    const { oauth, http, crmBaseUrl, clock } = this.parts;
    const askedAt = clock();
    try {
      const grant = await oauth.exchangeCode(code);
      const user = await ownerOf(http, crmBaseUrl, grant.accessToken);
      const { refreshToken } = grant;
      if (!user.active) return rejected("The CRM user who authorized is deactivated. Authorize with an active one.");
      if (!refreshToken) return rejected("The CRM granted no refresh token. Start again.");
      return accepted({ grant, refreshToken, askedAt, user });
    } catch (error) {
      if (error instanceof OAuthError || error instanceof CrmError) return this.#refusalOf(error);
      throw error;
    }
  }

  #refusalOf(error: OAuthError | CrmError): Refusal {
    const { logger } = this.parts;
    const stop = stopBehind(error);
    if (stop) return unavailable(`${stop.message} Nothing was stored; start again later.`);
    logger.warn({ err: error, code: error.code }, "an authorization could not be validated");
    switch (error.code) {
      case "INVALID_GRANT":
        return rejected("The CRM did not accept the authorization code. Start again.");
      case "MISCONFIGURED":
        logger.error(
          { code: error.code },
          "the CRM refuses our app registration: check CRM_CLIENT_ID, CRM_CLIENT_SECRET, CRM_REDIRECT_URL",
        );
        return rejected("The CRM does not accept this service's registration. Tell its operator.");
      case "ACCOUNT_CLOSED":
        return rejected(explain("ACCOUNT_CLOSED"));
      case "OUTAGE":
      case "UNKNOWN":
      case "UNAVAILABLE":
      case "RATE_LIMITED":
      case "UNREADABLE":
        return unavailable("The CRM did not give a usable answer. Nothing was stored; start again in a while.");
      default:
        return rejected("The CRM refused the token that it had just issued. Start again.");
    }
  }

  /** Looks again at the connection under its lock, and either stores all that connecting means or nothing. */
  #store(actor: Actor, state: string, authorized: Authorized): Promise<Answer> {
    const { database, clock, credentials, keepOut, startsSync } = this.parts;
    const { grant, refreshToken, askedAt, user } = authorized;
    return database.tenant(actor.tenantId).transaction(async (scope): Promise<Answer> => {
      const now = clock();
      const present = await lockConnection(scope);
      const admission = admit(present, user);
      const isLetIn = admission === "NEW_COPY" || admission === "SAME_COPY";
      const refusal = isLetIn ? null : refused(admission, MESSAGES[admission]);
      // A disconnect, which voids it, locks the connection too.
      const isThere = await scope.typed((orm) => orm.existsBy(AuthorizationRequestRow, consentOf(scope, state)));
      if (!isThere) return this.#noteRejected(scope, actor, VOID_CONSENT);
      if (refusal) return this.#noteRejected(scope, actor, refusal, state);
      const keptId = admission === "SAME_COPY" ? present.copyId : null;
      const copyId = keptId ?? (await this.#newCopy(scope, present, user, now));
      await credentials.put(scope, copyId, grant, refreshToken, askedAt);
      // What a renewal left that was killed as a disconnect overtook it says nothing of this pair.
      await scope.typed((orm) => orm.delete(RenewalAttemptRow, { tenantId: actor.tenantId }));
      // Who keeps an address out holds the connection's lock too, and looks for it afterwards.
      const kept = await keepOut.read(scope);
      await moveToConnected(scope, present.state, copyId, kept?.user(user) ?? user, now);
      await startsSync.authorized(scope, copyId, keptId !== null);
      await this.#noteConnected(scope, actor, present, user, keptId !== null, now);
      // Last: until then it says that it is under way.
      await endConsent(scope, state, { usedAt: now });
      return accepted(null);
    });
  }

  async #noteConnected(
    scope: TenantScope,
    actor: Actor,
    { state }: LockedConnection,
    { companyId, id }: CrmCurrentUser,
    isKept: boolean,
    at: Date,
  ): Promise<void> {
    const { logger } = this.parts;
    const subject = `company ${companyId}, user ${id}`;
    await recordAudit(scope, logger, { action: "CONSENT_COMPLETED", actor, at });
    if (state === "NOT_CONNECTED") return recordAudit(scope, logger, { action: "CONNECTED", actor, at, subject });
    const code = isKept ? "SAME_USER" : "OTHER_USER";
    return recordAudit(scope, logger, { action: "REAUTHORIZED", actor, at, code, subject });
  }

  /** Another user sees other records than what an earlier copy holds, so that one goes; what was said of its deals stays. */
  async #newCopy(scope: TenantScope, { copyId }: LockedConnection, user: CrmCurrentUser, now: Date): Promise<number> {
    if (copyId !== null) {
      await retireCopy(scope, copyId, this.parts.startsSync);
      // Afterwards: who snoozes a deal at this moment is waited for.
      await keepSnoozes({ ...scope, copyId }, null, now);
    }
    return createCopy(scope, user, now);
  }
}

export type Admission = "NEW_COPY" | "SAME_COPY" | "ANOTHER_CRM_CONNECTED" | "DIFFERENT_CRM_COMPANY";

/**
 * Decides what a validated authorization does (specification 3; decision 0004): a connected CRM is never replaced, another
 * company's must be disconnected first, and another user of the company sees other records, so it needs a new copy.
 */
export function admit(
  present: Pick<LockedConnection, "state" | "bound">,
  user: Pick<CrmCurrentUser, "id" | "companyId">,
): Admission {
  if (present.state === "CONNECTED") return "ANOTHER_CRM_CONNECTED";
  if (present.state === "NOT_CONNECTED" || !present.bound) return "NEW_COPY";
  if (present.bound.companyId !== user.companyId) return "DIFFERENT_CRM_COMPANY";
  return present.bound.userId === user.id ? "SAME_COPY" : "NEW_COPY";
}

const hashOf = (state: string) => createHash("sha256").update(state).digest();

type Barred = PolicyRefusal | "ANOTHER_CRM_CONNECTED";
type ReadsConnection = () => Promise<ConnectionRow | null>;

/** Why neither a consent may begin nor one be completed; null where both may. */
async function barred(actor: Actor, connection: ReadsConnection): Promise<Barred | null> {
  const policy = refusalToConnect(actor);
  if (policy) return policy;
  return (await connection())?.state === "CONNECTED" ? "ANOTHER_CRM_CONNECTED" : null;
}

/** Makes the `state` of one consent: random, bound to the actor, good for ten minutes, stored as a hash only. */
async function issueState(scope: TenantScope, actor: Actor, now: Date): Promise<{ state: string; expiresAt: Date }> {
  const state = randomBytes(STATE_BYTES).toString("base64url");
  const expiresAt = new Date(now.getTime() + STATE_LIFE_MS);
  const stored = { tenantId: scope.tenantId, stateHash: hashOf(state), userId: actor.userId, expiresAt };
  await scope.typed((orm) => orm.insert(AuthorizationRequestRow, stored));
  return { state, expiresAt };
}

/** Deletes consents that are over: no repeat of one has an answer any more. Later by as long as one lives, for clocks differ. */
export const sweepConsents = (database: Database, logger: Logger, now: Date): Promise<void> =>
  forgetOld(database, { table: "authorization_request", instant: "expires_at", keptMs: STATE_LIFE_MS }, logger, now);

/**
 * Whether the tenant has begun as many consents as it may. Counted by their audit events, because a consent that was
 * ended, or voided by a disconnect, has cost its rows all the same. The caller holds the connection's lock.
 * @returns from when on another may be begun; null where one may be now
 */
async function consentsResumeAt({ tenantId, rows }: TenantScope, now: Date): Promise<Date | null> {
  const [first] = await rows<{ at: Date }>(
    `SELECT at FROM audit_event WHERE tenant_id = $1 AND action = 'CONSENT_STARTED' AND at > $2
     ORDER BY at DESC OFFSET ${MAX_BEGUN_CONSENTS - 1} LIMIT 1`,
    [tenantId, new Date(now.getTime() - STATE_LIFE_MS)],
    { at: "instant" },
  );
  return first ? new Date(first.at.getTime() + STATE_LIFE_MS) : null;
}

/** What the browser brought back, by which a repeat is known from another answer to the same consent page. */
const answerOf = ({ code, error }: ConnectInput) => hashOf(JSON.stringify([code, error]));

/** Uses a `state` up. Of any number of callers at once, at most one is told true. */
async function consumeState(scope: TenantScope, actor: Actor, input: ConnectInput, now: Date): Promise<boolean> {
  const used = await scope.rows(
    `UPDATE authorization_request SET used_at = $4, answer_hash = $5, alive_at = now()
     WHERE tenant_id = $1 AND state_hash = $2 AND user_id = $3 AND expires_at > $4 AND used_at IS NULL RETURNING 1 AS used`,
    [scope.tenantId, hashOf(input.state), actor.userId, now, answerOf(input)],
  );
  return used.length === 1;
}

const consentOf = ({ tenantId }: TenantScope, state: string) => ({ tenantId, stateHash: hashOf(state) });

/** Says each second that it is under way, one word after the other. */
async function showLife({ tenantId, rows }: TenantScope, state: string, over: AbortSignal): Promise<void> {
  const say = `UPDATE authorization_request SET alive_at = now()
    WHERE tenant_id = $1 AND state_hash = $2 AND alive_at IS NOT NULL`;
  const next = () => sleep(BEAT_MS, true, { signal: over }).catch(() => false);
  while (await next()) await rows(say, [tenantId, hashOf(state)]).catch(() => []);
}

/** Ends a consent that was used up. It stays for its ten minutes, with that connection's instant, or the refusal. */
const endConsent = (scope: TenantScope, state: string, end: Partial<AuthorizationRequestRow>) =>
  scope.typed((orm) => orm.update(AuthorizationRequestRow, consentOf(scope, state), { ...end, aliveAt: null }));

/** What the actor's own `state` came to: the connection that there is, or the refusal of this very answer of the CRM. One under way is waited for. */
async function earlierAnswer(scope: TenantScope, actor: Actor, input: ConnectInput, now: Date): Promise<Answer | null> {
  for (let waited = 0; ; waited += POLL_MS) {
    const [used] = await scope.rows<{ isUnderWay: boolean; hasConnected: boolean | null; refusal: Refusal | null }>(
      `SELECT coalesce(a.alive_at > now() - interval '${SILENT_MS} milliseconds', false) AS "isUnderWay",
         a.refusal IS NULL AND c.connected_at = a.used_at AND c.state = 'CONNECTED' AS "hasConnected",
         CASE WHEN a.answer_hash = $5 THEN a.refusal END AS refusal
       FROM authorization_request a JOIN connection c ON c.tenant_id = $1
       WHERE a.tenant_id = $1 AND a.state_hash = $2 AND a.user_id = $3 AND a.expires_at > $4 AND a.used_at IS NOT NULL`,
      [scope.tenantId, hashOf(input.state), actor.userId, now, answerOf(input)],
      { isUnderWay: "flag", hasConnected: "flag", refusal: "json" },
    );
    if (used?.hasConnected && input.code && !input.error) return accepted(null);
    if (!used?.isUnderWay || waited >= AWAITED_MS) return used?.refusal ?? null;
    await sleep(POLL_MS);
  }
}
