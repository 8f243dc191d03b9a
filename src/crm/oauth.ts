import type { CrmConfig } from "../platform/config";
import { ServiceError } from "../platform/errors";
import type { Secret } from "../platform/secret";
import { CrmError } from "./errors";
import type { CrmAnswer, CrmHttp } from "./http";
import { type Grant, outcomeOf, type TokenFailure } from "./token-outcome";

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
    const { clientId, clientSecret, authUrl } = this.config;
    const basic = Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString("base64");
    const answer = await this.#send({
      method: "POST",
      url: `${authUrl}/oauth/token`,
      headers: {
        authorization: `Basic ${basic}`,
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
