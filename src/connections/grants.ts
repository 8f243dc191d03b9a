import { CrmApi } from "../crm/api";
import type { CallParts, Reservation, TokenSource } from "../crm/calls";
import { CrmError, stopBehind } from "../crm/errors";
import type { CrmHttp } from "../crm/http";
import { OAuthError } from "../crm/oauth";
import type { CrmCurrentUser } from "../crm/parsing/records";
import type { Database, TenantScope } from "../database/database";
import { CredentialRow, type ReauthorizationReason } from "../entities/connection";
import { type Clock, DAY_MS, HOUR_MS, msApart } from "../platform/clock";
import type { Secret } from "../platform/keyring";
import type { Logger } from "../platform/logger";
import { forEachLogged } from "../platform/work";
import {
  type Bound,
  ConnectionGoneError,
  endAuthorization,
  endTrouble,
  NeedsReauthorizationError,
  noteTrouble,
} from "./connection";
import type { CopyRef } from "./copies";
import type { Credential, Credentials } from "./credentials";
import { NO_TOKEN, TOKEN_TROUBLES } from "./renewal";
import { boundOf, followCompany } from "./visibility";

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

const ENDED: Partial<Record<ReauthorizationReason, string>> = {
  IDENTITY_CHANGED:
    "The CRM's access belongs to another user or company than the one that authorized. Authorize again with that user, or disconnect.",
  GRANT_REVOKED: "The user who authorized is no longer active in the CRM. Authorize with another user.",
};

/** The token is the authorization's own; or it is no longer the present one; or the CRM refuses it (401). */
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
function refusalOfOwner(
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
    return database.tenant(tenantId).transaction(async (scope) => {
      await followCompany(scope, copyId, user);
      if (isProven) return "PROVEN";
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
      if (!stopBehind(error)) await this.#unproven(tenantId, copyId, held, error);
      throw new OAuthError("OUTAGE", "The CRM did not say whose the renewed access token is.", { cause: error });
    }
  }

  async #unproven(tenantId: number, copyId: number, { version }: HeldToken, err: CrmError): Promise<void> {
    const { database, credentials, clock, logger } = this.parts;
    logger.warn({ tenantId, err }, "the CRM did not say whose a renewed access token is");
    // What runs are refused goes on, and says more.
    const trouble = { ...NO_TOKEN, over: TOKEN_TROUBLES };
    await database.tenant(tenantId).transaction(async (scope) => {
      if (await credentials.holds(scope, copyId, version)) await noteTrouble(scope, copyId, trouble, clock());
    });
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

/** The CRM forgets a refresh token that nobody used for so long. */
const IDLE_MS = 60 * DAY_MS;
/** Half of that: a month is left for what may go wrong. */
const RENEWED_AFTER_MS = 30 * DAY_MS;
/** A renewal that failed is tried again after this; until then the next need asks by itself. */
const TRIED_EVERY_MS = DAY_MS;
/** A worker looks so often: no index begins with an age, and a month is left. */
const LOOK_EVERY_MS = HOUR_MS;
/** In one look, which ends with the one in hand where the CRM is slow; the next one finds the others. */
const [CONNECTIONS_A_LOOK, LONGEST_LOOK_MS] = [20, 5_000];

interface KeepingParts extends Pick<IdentityParts, "database" | "clock" | "logger"> {
  tokens: { of(tenantId: number, copyId: number): TokenSource };
}

/** Keeps the grants of connections alive that nothing else renews: where runs are only made by request, for one. */
export class Grants {
  #lookedAt = new Date(0);

  constructor(private readonly parts: KeepingParts) {}

  /** Done periodically, by several workers at once. */
  async sweep(): Promise<void> {
    const { database, clock, logger } = this.parts;
    const now = clock();
    // A clock that was far ahead once must not end the looks.
    if (msApart(this.#lookedAt, now) < LOOK_EVERY_MS) return;
    const idle = await database.acrossTenants<CopyRef>(
      `WITH idle AS MATERIALIZED (
         SELECT x.tenant_id, x.copy_id FROM credential x JOIN connection c ON c.tenant_id = x.tenant_id
         WHERE c.state = 'CONNECTED' AND c.copy_id = x.copy_id AND x.access_token_asked_at NOT BETWEEN $1 AND $3
           AND (x.kept_alive_at IS NULL OR x.kept_alive_at NOT BETWEEN $2 AND $3)
       )
       SELECT tenant_id AS "tenantId", copy_id AS "copyId" FROM idle LIMIT ${CONNECTIONS_A_LOOK}`,
      [new Date(now.getTime() - RENEWED_AFTER_MS), ...triedLately(now)],
      { tenantId: "number", copyId: "number" },
    );
    const isOver = () => clock().getTime() - now.getTime() > LONGEST_LOOK_MS;
    await forEachLogged(idle, async (connection) => void (isOver() || (await this.#keep(connection, now))), logger);
    if (idle.length < CONNECTIONS_A_LOOK && !isOver()) this.#lookedAt = now;
  }

  async #keep({ tenantId, copyId }: CopyRef, now: Date): Promise<void> {
    const { database, tokens, logger } = this.parts;
    if (!(await takeTurn(database.tenant(tenantId), copyId, now))) return;
    try {
      await tokens.of(tenantId, copyId).current();
    } catch (error) {
      if (error instanceof ConnectionGoneError || error instanceof NeedsReauthorizationError) return;
      logger.warn({ tenantId, err: error }, "a grant that nothing has used for a month could not be renewed yet");
    }
  }
}

/** A try of a time that is still far off was noted by a clock that was wrong. */
const triedLately = (now: Date): [from: Date, until: Date] => [
  new Date(now.getTime() - TRIED_EVERY_MS),
  new Date(now.getTime() + TRIED_EVERY_MS),
];

/** @returns false where another worker has tried since, or the connection is another one by now */
async function takeTurn({ tenantId, rows }: TenantScope, copyId: number, now: Date): Promise<boolean> {
  const taken = await rows(
    `UPDATE credential SET kept_alive_at = $3
     WHERE tenant_id = $1 AND copy_id = $2 AND (kept_alive_at IS NULL OR kept_alive_at NOT BETWEEN $4 AND $5) RETURNING 1 AS taken`,
    [tenantId, copyId, now, ...triedLately(now)],
  );
  return taken.length > 0;
}

/** When the CRM would forget the authorization of a copy if nothing used it until then; null: it has none. */
export async function grantEndsAt({ tenantId, typed }: TenantScope, copyId: number): Promise<Date | null> {
  const select = { tenantId: true, accessTokenAskedAt: true } as const;
  const credential = await typed((orm) => orm.findOne(CredentialRow, { select, where: { tenantId, copyId } }));
  return credential && new Date(credential.accessTokenAskedAt.getTime() + IDLE_MS);
}
