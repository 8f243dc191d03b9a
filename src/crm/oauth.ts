import { z } from "zod";
import type { CrmConfig } from "../platform/config";
import { ServiceError } from "../platform/errors";
import { Secret } from "../platform/secret";
import { CrmError } from "./errors";
import type { CrmAnswer, CrmHttp } from "./http";

/**
 * What a token answer grants. `refreshToken` is null where the answer had none: the old one stays. The answer's
 * `api_domain` is not read: the base address is configuration, and an address from outside is never called.
 */
export interface Grant {
  accessToken: Secret;
  refreshToken: Secret | null;
}

/**
 * Why no grant came:
 * - INVALID_GRANT: the code or refresh token is not accepted (any more)
 * - MISCONFIGURED: the CRM does not accept our app registration or our request; only the operator can mend it
 * - UNAVAILABLE: temporary, or an answer that cannot be understood
 */
export type OAuthFailure = "INVALID_GRANT" | "MISCONFIGURED" | "UNAVAILABLE";

export class OAuthError extends ServiceError {
  constructor(
    readonly code: OAuthFailure,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const grantForm = z.object({
  access_token: z.string().min(1),
  refresh_token: z.string().min(1).nullish(),
});
const errorForm = z.object({ error: z.string() });

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

  /** @throws OAuthError */
  refresh(refreshToken: Secret): Promise<Grant> {
    return this.#token({ grant_type: "refresh_token", refresh_token: refreshToken.reveal() });
  }

  async #token(form: Record<string, string>): Promise<Grant> {
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
    });
    return answer.status === 200 ? grantOf(answer) : refuse(answer);
  }

  async #send(request: Parameters<CrmHttp["send"]>[0]): Promise<CrmAnswer> {
    try {
      return await this.http.send(request);
    } catch (cause) {
      if (cause instanceof CrmError) throw new OAuthError("UNAVAILABLE", cause.message, { cause });
      throw cause;
    }
  }
}

function grantOf(answer: CrmAnswer): Grant {
  const parsed = grantForm.safeParse(jsonOrNull(answer.text));
  if (!parsed.success) throw new OAuthError("UNAVAILABLE", "The CRM's token answer cannot be read.");
  const { access_token, refresh_token } = parsed.data;
  return {
    accessToken: new Secret(access_token),
    refreshToken: refresh_token ? new Secret(refresh_token) : null,
  };
}

/** The `error` word decides, under 400 and 401 alike; without a readable one nothing is known, so it is temporary. */
function refuse(answer: CrmAnswer): never {
  const error = errorForm.safeParse(jsonOrNull(answer.text)).data?.error;
  const status = `The CRM's token endpoint answered ${answer.status}`;
  if ((answer.status !== 400 && answer.status !== 401) || error === undefined) {
    throw new OAuthError("UNAVAILABLE", `${status}.`);
  }
  if (error === "invalid_grant") throw new OAuthError("INVALID_GRANT", `${status} (invalid_grant).`);
  throw new OAuthError("MISCONFIGURED", `${status}: it does not accept the app registration or the request.`);
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
