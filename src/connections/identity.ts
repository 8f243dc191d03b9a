import { CrmApi } from "../crm/api";
import type { CallParts } from "../crm/calls";
import { CrmError } from "../crm/errors";
import type { CrmHttp } from "../crm/http";
import { OAuthError } from "../crm/oauth";
import type { CrmCurrentUser } from "../crm/parsing/records";
import type { Reservation } from "../crm/prices";
import type { Database } from "../database/database";
import type { ReauthorizationReason } from "../entities/connection";
import type { Clock } from "../platform/clock";
import type { Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import {
  type Bound,
  endAuthorization,
  endTrouble,
  NeedsReauthorizationError,
  noteTrouble,
  TOKEN_TROUBLES,
  type Trouble,
} from "./connection";
import { boundOf, keepTimeZone } from "./copies";
import type { Credential, Credentials } from "./credentials";

export interface IdentityParts {
  database: Database;
  http: CrmHttp;
  crmBaseUrl: string;
  credentials: Credentials;
  /** The tokens of these questions are counted there; none is refused for want of them. */
  reservationOf?(tenantId: number, copyId: number): Reservation;
  clock: Clock;
  logger: Logger;
}

/** How a question is paid for, kept from being sent, and called off. */
export type HowAsked = Pick<CallParts, "mayBegin" | "reservation" | "stop">;
type HeldToken = Pick<Credential, "version" | "accessToken" | "isProven">;

const UNPROVEN: Trouble = {
  code: "CRM_UNAVAILABLE",
  message:
    "The CRM does not say for now whose the renewed access is. It is asked at the next need; nothing has to be done.",
};
const ENDED: Partial<Record<ReauthorizationReason, string>> = {
  IDENTITY_CHANGED:
    "The CRM's access belongs to another user or company than the one that authorized. Authorize again with that user, or disconnect.",
  GRANT_REVOKED: "The user who authorized is no longer active in the CRM. Authorize with another user.",
};

/**
 * The token is the authorization's own; or it is no longer the present one; or the CRM refuses it (401).
 */
export type Proof = "PROVEN" | "REPLACED" | "REFUSED";

/** Asks `users/me` with a token that nobody may use for anything else yet. @throws CrmError */
export function ownerOf(
  http: CrmHttp,
  crmBaseUrl: string,
  accessToken: Secret,
  how: HowAsked = {},
): Promise<CrmCurrentUser> {
  const refused = async () => {
    throw new CrmError("UNAUTHORIZED", "The CRM refused the token that it had just issued.", { status: 401 });
  };
  const tokens = { current: async () => accessToken, renewed: refused };
  return new CrmApi({ http, baseUrl: crmBaseUrl, tokens, ...how }).currentUser();
}

function nullWhereRefused(error: unknown): null {
  if (error instanceof CrmError && error.code === "UNAUTHORIZED") return null;
  throw error;
}

/** Why a token of `user` must not be used for a copy of `bound`; null where it may. */
export function refusalOfOwner(
  bound: Bound,
  user: Pick<CrmCurrentUser, "id" | "companyId" | "active">,
): ReauthorizationReason | null {
  if (user.companyId !== bound.companyId || user.id !== bound.userId) return "IDENTITY_CHANGED";
  return user.active ? null : "GRANT_REVOKED";
}

/** Whose an access token is: the company and the user of the authorization, or nothing is read or written (decision 0004). */
export class Identity {
  constructor(private readonly parts: IdentityParts) {}

  /**
   * Asks the CRM whose the token is, and commits the answer.
   * @throws NeedsReauthorizationError where it is nobody's whom the copy is of, CrmError where the CRM does not say
   */
  async ask(
    tenantId: number,
    copyId: number,
    held: HeldToken,
    { reservation = this.parts.reservationOf?.(tenantId, copyId), ...how }: HowAsked = {},
  ): Promise<Proof> {
    const { database, http, crmBaseUrl, credentials } = this.parts;
    const { version, accessToken, isProven } = held;
    const user = await ownerOf(http, crmBaseUrl, accessToken, { ...how, reservation }).catch(nullWhereRefused);
    if (!user) return "REFUSED";
    const bound = await boundOf(database.tenant(tenantId), copyId);
    if (!bound) return "REPLACED";
    const reason = refusalOfOwner(bound, user);
    if (reason) return this.#end(tenantId, copyId, version, reason);
    if (user.timeZone !== null && user.timeZone !== bound.timeZone)
      await keepTimeZone(database.tenant(tenantId), copyId, user.timeZone);
    if (isProven) return "PROVEN";
    return database.tenant(tenantId).transaction(async (scope) => {
      // The connection before the credential: the order in which disconnecting locks them.
      await endTrouble(scope, copyId, TOKEN_TROUBLES);
      return (await credentials.prove(scope, copyId, version)) ? "PROVEN" : "REPLACED";
    });
  }

  /** As `ask`, for a token that is of no use until it is proven: where the CRM does not say, there is none for now. */
  async prove(tenantId: number, copyId: number, held: HeldToken, how: HowAsked): Promise<Proof> {
    if (held.isProven) return "PROVEN";
    try {
      return await this.ask(tenantId, copyId, held, how);
    } catch (error) {
      if (!(error instanceof CrmError)) throw error;
      const { database, credentials, clock, logger } = this.parts;
      logger.warn({ tenantId, err: error }, "the CRM did not say whose a renewed access token is");
      await database.tenant(tenantId).transaction(async (scope) => {
        if (await credentials.holds(scope, copyId, held.version)) await noteTrouble(scope, copyId, UNPROVEN, clock());
      });
      throw new OAuthError("OUTAGE", "The CRM did not say whose the renewed access token is.", { cause: error });
    }
  }

  async #end(tenantId: number, copyId: number, version: number, reason: ReauthorizationReason): Promise<"REPLACED"> {
    const { database, clock, logger } = this.parts;
    const ended = await database
      .tenant(tenantId)
      .transaction((scope) => endAuthorization(scope, logger, copyId, version, reason, clock()));
    if (!ended) return "REPLACED";
    logger.warn({ tenantId, reason }, "users/me names no active user of the authorization: it has to be given again");
    throw new NeedsReauthorizationError(ENDED[reason] ?? reason);
  }
}
