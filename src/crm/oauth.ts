import { z } from "zod";
import type { CrmConfig } from "../platform/config";
import { ServiceError } from "../platform/errors";
import { Secret } from "../platform/keyring";
import { CrmError } from "./errors";
import { type CrmAnswer, type CrmHttp, textOf } from "./http";
import { jsonOf } from "./parsing/values";

/**
 * The tokens of a granting answer. `refreshToken` is null where the answer had none: the old one stays. `expires_in`, which
 * may be text, is not read (a token is renewed by its age), nor `api_domain` (the address is configuration).
 */
export interface Grant {
  accessToken: Secret;
  refreshToken: Secret | null;
}

/**
 * What an answer of the token endpoint means, or its absence:
 * - INVALID_GRANT: the code or refresh token is not accepted (any more): for a refresh token, revocation
 * - MISCONFIGURED: the CRM does not accept our registration, our request or its address; only the operator can mend it
 * - OUTAGE: temporary, and the request certainly had no effect
 * - UNKNOWN: temporary as far as we know, and the request may have had its effect: a refresh token may be used up
 */
export type TokenFailure = "INVALID_GRANT" | "MISCONFIGURED" | "OUTAGE" | "UNKNOWN";
type TokenOutcome = { kind: "GRANTED"; grant: Grant } | { kind: TokenFailure };

/** The parts of an answer that decide. */
export type TokenAnswer = Pick<CrmAnswer, "status" | "contentType" | "body">;

/** Characters: no header may be longer, and it is kept sealed. */
const MAX_TOKEN = 16_000;

const grantForm = z.object({
  access_token: z.string().min(1).max(MAX_TOKEN),
  refresh_token: z.string().min(1).max(MAX_TOKEN).nullish(),
});
const errorForm = z.object({ error: z.string() });

/** RFC 6749 5.2: what the client did wrong, as opposed to what became of the grant. */
const OUR_MISTAKES = new Set([
  "invalid_client",
  "invalid_request",
  "invalid_scope",
  "unauthorized_client",
  "unsupported_grant_type",
]);
/** Where a service answers that is not the token endpoint, or does not take our form of request. */
const WRONG_ADDRESS = new Set([301, 302, 303, 307, 308, 404, 405, 410, 415]);

/** Only `invalid_grant` under the documented 400 or 401 is a revocation; whatever cannot be understood never is. */
export function outcomeOf(answer: TokenAnswer): TokenOutcome {
  const { status, contentType } = answer;
  const json = jsonOf(textOf(answer));
  if (status === 200) return granted(json);
  if (status >= 500 || (status > 200 && status < 300)) return { kind: "UNKNOWN" };
  if (status === 408 || status === 429 || contentType.includes("html")) return { kind: "OUTAGE" };
  if (WRONG_ADDRESS.has(status)) return { kind: "MISCONFIGURED" };
  const error = errorForm.safeParse(json).data?.error ?? "";
  if (OUR_MISTAKES.has(error)) return { kind: "MISCONFIGURED" };
  if (error === "invalid_grant" && (status === 400 || status === 401)) return { kind: "INVALID_GRANT" };
  return { kind: "OUTAGE" };
}

/** An unreadable success is the worst answer: the token that it held is lost. */
function granted(json: unknown): TokenOutcome {
  const parsed = grantForm.safeParse(json);
  if (!parsed.success) return { kind: "UNKNOWN" };
  const { access_token, refresh_token } = parsed.data;
  const refreshToken = refresh_token ? new Secret(refresh_token) : null;
  return { kind: "GRANTED", grant: { accessToken: new Secret(access_token), refreshToken } };
}

/** No grant came; `code` says what that means. */
export class OAuthError extends ServiceError {
  constructor(
    readonly code: TokenFailure,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The header by which the registration proves itself, to the CRM as the CRM to us. */
export const basicOf = ({ clientId, clientSecret }: Pick<CrmConfig, "clientId" | "clientSecret">): string =>
  `Basic ${Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString("base64")}`;

/** The CRM's OAuth 2.0 addresses: where the browser goes, and the token endpoint with Basic client authentication. */
export class CrmOAuth {
  constructor(
    private readonly http: CrmHttp,
    private readonly config: CrmConfig,
  ) {}

  /** Specification 5.5: no scope parameter; the granted scopes are those of the app registration. */
  authorizationUrl(state: string): string {
    const url = new URL(`${this.config.authUrl}/oauth/authorize`);
    url.searchParams.set("client_id", this.config.clientId);
    url.searchParams.set("redirect_uri", this.config.redirectUrl);
    url.searchParams.set("state", state);
    return url.href;
  }

  /** @throws OAuthError */
  exchangeCode(code: string): Promise<Grant> {
    return this.#token({ grant_type: "authorization_code", code, redirect_uri: this.config.redirectUrl });
  }

  /**
   * @param mayBegin called right before the request is written; what it throws comes out as it is
   * @throws OAuthError
   */
  refresh(refreshToken: Secret, mayBegin?: () => void): Promise<Grant> {
    return this.#token({ grant_type: "refresh_token", refresh_token: refreshToken.reveal() }, mayBegin);
  }

  async #token(form: Record<string, string>, mayBegin?: () => void): Promise<Grant> {
    const answer = await this.#send({
      method: "POST",
      url: `${this.config.authUrl}/oauth/token`,
      headers: {
        authorization: basicOf(this.config),
        "content-type": "application/x-www-form-urlencoded",
        accept: "application/json",
      },
      body: new URLSearchParams(form).toString(),
      mayBegin,
      // The CRM has rotated the token by then.
      readLate: true,
    });
    const outcome = outcomeOf(answer);
    if (outcome.kind === "GRANTED") return outcome.grant;
    throw new OAuthError(outcome.kind, `The CRM's token endpoint answered ${answer.status} (${outcome.kind}).`);
  }

  async #send(request: Parameters<CrmHttp["send"]>[0]): Promise<CrmAnswer> {
    try {
      return await this.http.send(request);
    } catch (cause) {
      if (!(cause instanceof CrmError)) throw cause;
      throw new OAuthError(cause.detail.neverSent ? "OUTAGE" : "UNKNOWN", cause.message, { cause });
    }
  }
}
