import { randomBytes } from "node:crypto";
import type { Settings } from "../model/options";

const CODE_LIFE_MS = 5 * 60_000;
const ACCESS_LIFE_MS = 60 * 60_000;
/** As the wire has it: a second short of the hour. */
const EXPIRES_IN_SECONDS = 3_599;
const SCOPE = "base,deals:full,contacts:full,activities:read,users:read";

interface Code {
  userId: number;
  redirectUri: string;
  expiresAt: number;
}

/** One consent of one user. `retired` still works under the grace rule, until the current token is used. */
interface Grant {
  userId: number;
  current: string;
  retired: string | null;
}

/** Whose an access token is: whom `users/me` names, and whose records it shows. */
export interface Identity {
  userId: number;
  /** Absent: the simulated company. */
  company?: Settings["company"];
}

interface AccessToken {
  /** Who consented: who loses the token when the grant is revoked. */
  grantedBy: number;
  identity: Identity;
  expiresAt: number;
}

export interface TokenAnswer {
  access_token: string;
  token_type: "Bearer";
  refresh_token: string;
  scope: string;
  expires_in: number;
  /** For links only: a client that calls it would leave the simulator. */
  api_domain: string;
}

export type CodeOutcome = { kind: "granted"; answer: TokenAnswer } | { kind: "unknown" | "expired" | "wrong_redirect" };

/** Codes and tokens: random, unlike the data, as a client must never be able to foresee them. */
export class Grants {
  private readonly codes = new Map<string, Code>();
  private readonly access = new Map<string, AccessToken>();
  private readonly refresh = new Map<string, Grant>();
  /** By the user who consented. */
  private readonly mistaken = new Map<number, Identity>();

  constructor(private readonly settings: Pick<Settings, "company" | "now" | "refreshTokens">) {}

  issueCode(userId: number, redirectUri: string): string {
    const code = `${this.settings.company.id}.${userId}.${randomBytes(20).toString("hex")}`;
    this.codes.set(code, { userId, redirectUri, expiresAt: this.clock() + CODE_LIFE_MS });
    return code;
  }

  expireCodes(): void {
    for (const code of this.codes.values()) code.expiresAt = 0;
  }

  redeem(code: string, redirectUri: string | undefined): CodeOutcome {
    const known = this.codes.get(code);
    if (!known) return { kind: "unknown" };
    if (known.expiresAt <= this.clock()) return { kind: "expired" };
    if (known.redirectUri !== redirectUri) return { kind: "wrong_redirect" };
    this.codes.delete(code);
    const grant: Grant = { userId: known.userId, current: this.newRefreshToken(known.userId), retired: null };
    this.refresh.set(grant.current, grant);
    return { kind: "granted", answer: this.answer(grant) };
  }

  renew(refreshToken: string): TokenAnswer | null {
    const grant = this.refresh.get(refreshToken);
    if (!grant) return null;
    if (this.settings.refreshTokens !== "same") this.rotate(grant, refreshToken);
    return this.answer(grant);
  }

  private rotate(grant: Grant, used: string): void {
    const keepsUsed = this.settings.refreshTokens === "grace";
    // Under the grace rule using the current token ends its predecessor; using the predecessor replaces the unused successor.
    const dead = used === grant.current ? grant.retired : grant.current;
    if (dead !== null) this.refresh.delete(dead);
    if (!keepsUsed) this.refresh.delete(used);
    grant.retired = keepsUsed ? used : null;
    grant.current = this.newRefreshToken(grant.userId);
    this.refresh.set(grant.current, grant);
  }

  identityOf(accessToken: string): Identity | null {
    const known = this.access.get(accessToken);
    return known && known.expiresAt > this.clock() ? known.identity : null;
  }

  /** Access tokens that the user's grants give from now on are another's; where asked, those that live as well. */
  mistake(userId: number, identity: Identity, andLiving: boolean): void {
    this.mistaken.set(userId, identity);
    if (!andLiving) return;
    for (const token of this.access.values()) if (token.grantedBy === userId) token.identity = identity;
  }

  /** A refresh token takes the whole grant with it, an access token only itself. */
  revokeToken(token: string): void {
    this.access.delete(token);
    const grant = this.refresh.get(token);
    if (grant) this.revokeUser(grant.userId);
  }

  revokeUser(userId: number): void {
    this.killAccessTokens(userId);
    for (const [token, grant] of this.refresh) if (grant.userId === userId) this.refresh.delete(token);
    for (const [text, code] of this.codes) if (code.userId === userId) this.codes.delete(text);
  }

  killAccessTokens(userId: number): void {
    for (const [token, access] of this.access) if (access.grantedBy === userId) this.access.delete(token);
  }

  private answer(grant: Grant): TokenAnswer {
    const accessToken = `v1u:${randomBytes(150).toString("base64")}:${randomBytes(48).toString("base64")}`;
    const { userId: grantedBy } = grant;
    const identity = this.mistaken.get(grantedBy) ?? { userId: grantedBy };
    this.access.set(accessToken, { grantedBy, identity, expiresAt: this.clock() + ACCESS_LIFE_MS });
    return {
      access_token: accessToken,
      token_type: "Bearer",
      refresh_token: grant.current,
      scope: SCOPE,
      expires_in: EXPIRES_IN_SECONDS,
      api_domain: `https://${this.settings.company.domain}.pipedrive.com`,
    };
  }

  private newRefreshToken(userId: number): string {
    return `${this.settings.company.id}:${userId}:${randomBytes(20).toString("hex")}`;
  }

  private clock(): number {
    return this.settings.now().getTime();
  }
}
