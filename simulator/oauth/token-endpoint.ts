import { type Answer, json } from "../api/answer";
import type { Settings } from "../model/options";
import type { Grants } from "./grants";

export interface TokenRequest {
  contentType: string;
  authorization: string | undefined;
  body: string;
}

/** Every refusal of the token endpoint is a 400 of this form. */
function refused(error: string, message: string): Answer {
  return json(400, { success: false, message, error });
}

export function tokenAnswer(settings: Settings, grants: Grants, request: TokenRequest): Answer {
  if (!isForm(request.contentType)) {
    return refused("invalid_request", "Invalid request: content must be application/x-www-form-urlencoded");
  }
  const form = new URLSearchParams(request.body);
  const refusal = clientRefusal(settings, form, request.authorization);
  if (refusal) return refusal;
  switch (form.get("grant_type")) {
    case null:
      return refused("invalid_request", "Missing parameter: `grant_type`");
    case "authorization_code":
      return codeAnswer(grants, form);
    case "refresh_token":
      return refreshAnswer(grants, form);
    default:
      return refused("unsupported_grant_type", "Unsupported grant type: `grant_type` is invalid");
  }
}

/** 200 for an unknown token as well. */
export function revokeAnswer(settings: Settings, grants: Grants, request: TokenRequest): Answer {
  const form = new URLSearchParams(request.body);
  const refusal = clientRefusal(settings, form, request.authorization);
  if (refusal) return refusal;
  grants.revokeToken(form.get("token") ?? "");
  return json(200, { success: true });
}

function isForm(contentType: string): boolean {
  return contentType.split(";")[0]?.trim().toLowerCase() === "application/x-www-form-urlencoded";
}

function clientRefusal(settings: Settings, form: URLSearchParams, authorization: string | undefined): Answer | null {
  const client = credentials(form, authorization);
  if (!client) return refused("invalid_client", "Invalid client: cannot retrieve client credentials");
  const isKnown = client.id === settings.clientId && client.secret === settings.clientSecret;
  return isKnown ? null : refused("invalid_client", "Invalid client: client is invalid");
}

/** Basic authentication; the body is accepted too, though discouraged. */
function credentials(form: URLSearchParams, authorization: string | undefined): { id: string; secret: string } | null {
  const basic = /^Basic\s+(\S+)$/i.exec(authorization ?? "")?.[1];
  if (basic !== undefined) {
    const text = Buffer.from(basic, "base64").toString("utf8");
    const colon = text.indexOf(":");
    return colon < 0 ? null : { id: text.slice(0, colon), secret: text.slice(colon + 1) };
  }
  const id = form.get("client_id");
  const secret = form.get("client_secret");
  return id !== null && secret !== null ? { id, secret } : null;
}

function codeAnswer(grants: Grants, form: URLSearchParams): Answer {
  const code = form.get("code");
  if (code === null) return refused("invalid_request", "Missing parameter: `code`");
  const outcome = grants.redeem(code, form.get("redirect_uri") ?? undefined);
  switch (outcome.kind) {
    case "granted":
      return json(200, outcome.answer);
    case "unknown":
      return refused("invalid_grant", "Invalid grant: authorization code is invalid");
    case "expired":
      return refused("invalid_grant", "Invalid grant: authorization code has expired");
    case "wrong_redirect":
      return refused("invalid_request", "Invalid request: `redirect_uri` is invalid");
  }
}

function refreshAnswer(grants: Grants, form: URLSearchParams): Answer {
  const token = form.get("refresh_token");
  if (token === null) return refused("invalid_request", "Missing parameter: `refresh_token`");
  const answer = grants.renew(token);
  return answer ? json(200, answer) : refused("invalid_grant", "Invalid grant: refresh token is invalid");
}
