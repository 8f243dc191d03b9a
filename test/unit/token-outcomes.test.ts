import { decideRenewal } from "../../src/connections/renewal";
import { outcomeOf, type TokenAnswer, type TokenFailure } from "../../src/crm/oauth";

// Seen red with: invalid_grant under 500 or 403 counted as revocation; an error's word read from an HTML page; a 200
// without a token taken for an outage without effect; an open attempt forgotten after a failure of another kind; a
// token that no header holds; 303 and 410 left out of the wrong addresses.

const JSON_TYPE = "application/json; charset=utf-8";
const HTML_TYPE = "text/html; charset=utf-8";
const PAGE = "<!doctype html><html><body><h1>Just a moment...</h1></body></html>";

/** The documented form of a refusal. */
const refusal = (error: string, message: string) => JSON.stringify({ success: false, message, error });
const grant = (change: object = {}) =>
  JSON.stringify({
    access_token: "v1u:new",
    token_type: "Bearer",
    refresh_token: "123:456:new",
    scope: "base,deals:full",
    expires_in: 3599,
    api_domain: "https://acme.pipedrive.com",
    ...change,
  });
const without = (member: string) => grant({ [member]: undefined });

const OUTAGE = { next: "CONNECTED", trouble: { code: "CRM_UNAVAILABLE" } };
const MISCONFIGURED = { next: "CONNECTED", trouble: { code: "SERVICE_MISCONFIGURED" } };
/** What each meaning does to the connection: where it is the first answer, and where an earlier one was never seen. */
const EFFECTS: Record<TokenFailure, { first: object; afterALostOne: object }> = {
  INVALID_GRANT: {
    first: { next: "NEEDS_REAUTHORIZATION", reason: "GRANT_REVOKED" },
    afterALostOne: { next: "NEEDS_REAUTHORIZATION", reason: "RENEWAL_UNCONFIRMED" },
  },
  MISCONFIGURED: {
    first: { ...MISCONFIGURED, settled: true },
    afterALostOne: { ...MISCONFIGURED, settled: false },
  },
  OUTAGE: { first: { ...OUTAGE, settled: true }, afterALostOne: { ...OUTAGE, settled: false } },
  UNKNOWN: { first: { ...OUTAGE, settled: false }, afterALostOne: { ...OUTAGE, settled: false } },
};

const INVALID_GRANT = refusal("invalid_grant", "Invalid grant: refresh token is invalid");

test.each<[what: string, status: number, contentType: string, body: string, means: TokenFailure]>([
  // The errors of the CRM's documentation.
  ["a refresh token that is invalid or used", 400, JSON_TYPE, INVALID_GRANT, "INVALID_GRANT"],
  [
    "an invalid code",
    400,
    JSON_TYPE,
    refusal("invalid_grant", "Invalid grant: authorization code is invalid"),
    "INVALID_GRANT",
  ],
  [
    "an expired code",
    400,
    JSON_TYPE,
    refusal("invalid_grant", "Invalid grant: authorization code has expired"),
    "INVALID_GRANT",
  ],
  ["no grant type", 400, JSON_TYPE, refusal("invalid_request", "Missing parameter: `grant_type`"), "MISCONFIGURED"],
  [
    "an unknown grant type",
    400,
    JSON_TYPE,
    refusal("unsupported_grant_type", "Unsupported grant type: `grant_type` is invalid"),
    "MISCONFIGURED",
  ],
  [
    "no client credentials",
    400,
    JSON_TYPE,
    refusal("invalid_client", "Invalid client: cannot retrieve client credentials"),
    "MISCONFIGURED",
  ],
  ["a wrong client", 400, JSON_TYPE, refusal("invalid_client", "Invalid client: client is invalid"), "MISCONFIGURED"],
  [
    "a wrong redirect address",
    400,
    JSON_TYPE,
    refusal("invalid_request", "Invalid request: `redirect_uri` is invalid"),
    "MISCONFIGURED",
  ],
  [
    "a wrong content type",
    400,
    JSON_TYPE,
    refusal("invalid_request", "Invalid request: content must be application/x-www-form-urlencoded"),
    "MISCONFIGURED",
  ],
  ["a server error", 500, JSON_TYPE, refusal("server_error", "Server error"), "UNKNOWN"],
  // The same in other clothes.
  [
    '"success" as text',
    400,
    JSON_TYPE,
    '{"success":"false","message":"Invalid grant: refresh token is invalid","error":"invalid_grant"}',
    "INVALID_GRANT",
  ],
  ["only the error's word", 400, "application/json", '{"error":"invalid_grant"}', "INVALID_GRANT"],
  ["no content type", 400, "", INVALID_GRANT, "INVALID_GRANT"],
  ["JSON called text", 400, "text/plain", INVALID_GRANT, "INVALID_GRANT"],
  ["invalid_grant under 401", 401, JSON_TYPE, INVALID_GRANT, "INVALID_GRANT"],
  ["invalid_client under 401", 401, JSON_TYPE, refusal("invalid_client", "Invalid client"), "MISCONFIGURED"],
  ["invalid_client under 403", 403, JSON_TYPE, refusal("invalid_client", "Invalid client"), "MISCONFIGURED"],
  ["unauthorized_client", 400, JSON_TYPE, refusal("unauthorized_client", "No"), "MISCONFIGURED"],
  ["invalid_scope", 400, JSON_TYPE, refusal("invalid_scope", "No"), "MISCONFIGURED"],
  // invalid_grant where it is not documented is never a revocation.
  ["invalid_grant under 403", 403, JSON_TYPE, INVALID_GRANT, "OUTAGE"],
  ["invalid_grant under 429", 429, JSON_TYPE, INVALID_GRANT, "OUTAGE"],
  ["invalid_grant under 408", 408, JSON_TYPE, INVALID_GRANT, "OUTAGE"],
  ["invalid_grant under 404", 404, JSON_TYPE, INVALID_GRANT, "MISCONFIGURED"],
  ["invalid_grant under 500", 500, JSON_TYPE, INVALID_GRANT, "UNKNOWN"],
  ["invalid_grant under 503", 503, JSON_TYPE, INVALID_GRANT, "UNKNOWN"],
  ["invalid_grant under 200", 200, JSON_TYPE, INVALID_GRANT, "UNKNOWN"],
  ["invalid_grant as HTML", 400, HTML_TYPE, INVALID_GRANT, "OUTAGE"],
  ["invalid_grant in another letter case", 400, JSON_TYPE, refusal("INVALID_GRANT", "No"), "OUTAGE"],
  ["invalid_grant in the message alone", 400, JSON_TYPE, '{"success":false,"message":"invalid_grant"}', "OUTAGE"],
  ["invalid_grant inside an object", 400, JSON_TYPE, '{"error":{"code":"invalid_grant"}}', "OUTAGE"],
  ["invalid_grant inside an array", 400, JSON_TYPE, '[{"error":"invalid_grant"}]', "OUTAGE"],
  ["invalid_grant as bare text", 400, "text/plain", "invalid_grant", "OUTAGE"],
  // Refusals that nobody can understand.
  ["an unknown error word", 400, JSON_TYPE, refusal("slow_down", "Slow down"), "OUTAGE"],
  ["an empty error word", 400, JSON_TYPE, refusal("", "?"), "OUTAGE"],
  ["an error that is a number", 400, JSON_TYPE, '{"error":42}', "OUTAGE"],
  ["an error that is null", 400, JSON_TYPE, '{"error":null}', "OUTAGE"],
  ["null under 400", 400, JSON_TYPE, "null", "OUTAGE"],
  ["an empty 400", 400, JSON_TYPE, "", "OUTAGE"],
  ["an empty 401", 401, JSON_TYPE, "", "OUTAGE"],
  ["garbage under 400", 400, JSON_TYPE, '{"error":"invalid_gra', "OUTAGE"],
  ["an unpaid account", 402, JSON_TYPE, refusal("payment_required", "Trial is over"), "OUTAGE"],
  // A page where JSON is due.
  ["HTML under 200", 200, HTML_TYPE, PAGE, "UNKNOWN"],
  ["HTML under 400", 400, HTML_TYPE, PAGE, "OUTAGE"],
  ["HTML under 403", 403, HTML_TYPE, PAGE, "OUTAGE"],
  ["HTML under 503", 503, HTML_TYPE, PAGE, "UNKNOWN"],
  // Another address than the token endpoint's.
  ["301", 301, "", "", "MISCONFIGURED"],
  ["302", 302, "", "", "MISCONFIGURED"],
  ["303", 303, "", "", "MISCONFIGURED"],
  ["307", 307, "", "", "MISCONFIGURED"],
  ["308", 308, "", "", "MISCONFIGURED"],
  ["404", 404, JSON_TYPE, '{"success":false,"error":"Not found"}', "MISCONFIGURED"],
  ["405", 405, JSON_TYPE, "", "MISCONFIGURED"],
  ["410", 410, JSON_TYPE, "", "MISCONFIGURED"],
  ["415", 415, JSON_TYPE, "", "MISCONFIGURED"],
  // Not now.
  ["408", 408, "", "", "OUTAGE"],
  ["408 with a mistake of ours", 408, JSON_TYPE, refusal("invalid_request", "No"), "OUTAGE"],
  ["425", 425, "", "", "OUTAGE"],
  ["429", 429, JSON_TYPE, '{"success":false,"error":"Rate limit exceeded"}', "OUTAGE"],
  // A proxy may say these after the CRM has done its part.
  ["501", 501, "", "", "UNKNOWN"],
  ["502", 502, HTML_TYPE, PAGE, "UNKNOWN"],
  ["504", 504, "", "", "UNKNOWN"],
  ["524", 524, HTML_TYPE, PAGE, "UNKNOWN"],
  ["599", 599, "", "", "UNKNOWN"],
  // A success whose token cannot be had.
  ["201 with a grant", 201, JSON_TYPE, grant(), "UNKNOWN"],
  ["204", 204, "", "", "UNKNOWN"],
  ["an empty 200", 200, JSON_TYPE, "", "UNKNOWN"],
  ["null", 200, JSON_TYPE, "null", "UNKNOWN"],
  ["an array", 200, JSON_TYPE, `[${grant()}]`, "UNKNOWN"],
  ["a text", 200, JSON_TYPE, '"v1u:new"', "UNKNOWN"],
  ["half a grant", 200, JSON_TYPE, grant().slice(0, -20), "UNKNOWN"],
  ["no access token", 200, JSON_TYPE, without("access_token"), "UNKNOWN"],
  ["an empty access token", 200, JSON_TYPE, grant({ access_token: "" }), "UNKNOWN"],
  ["an access token that is null", 200, JSON_TYPE, grant({ access_token: null }), "UNKNOWN"],
  ["an access token that is a number", 200, JSON_TYPE, grant({ access_token: 1 }), "UNKNOWN"],
  ["an empty refresh token", 200, JSON_TYPE, grant({ refresh_token: "" }), "UNKNOWN"],
  ["an access token beyond any header", 200, JSON_TYPE, grant({ access_token: "x".repeat(16_001) }), "UNKNOWN"],
  ["a refresh token beyond any header", 200, JSON_TYPE, grant({ refresh_token: "x".repeat(16_001) }), "UNKNOWN"],
  ["a refresh token that is a number", 200, JSON_TYPE, grant({ refresh_token: 1 }), "UNKNOWN"],
])("no token, %s (%i): the connection does as it does for its meaning", (_what, status, contentType, text, means) => {
  expect(outcomeOf({ status, contentType, body: Buffer.from(text) })).toEqual({ kind: means });
  expect(decideRenewal(means, false)).toMatchObject(EFFECTS[means].first);
  expect(decideRenewal(means, true)).toMatchObject(EFFECTS[means].afterALostOne);
});

test.each<[what: string, body: string, refreshToken: string | null]>([
  ["as documented", grant(), "123:456:new"],
  ["expires_in as text", grant({ expires_in: "3600" }), "123:456:new"],
  ["no expires_in", without("expires_in"), "123:456:new"],
  ["token_type in small letters", grant({ token_type: "bearer" }), "123:456:new"],
  ["no api_domain", without("api_domain"), "123:456:new"],
  ["no scope", without("scope"), "123:456:new"],
  ["members that nobody knows", grant({ company_id: 1, success: "true" }), "123:456:new"],
  ["no refresh token", without("refresh_token"), null],
  ["a refresh token that is null", grant({ refresh_token: null }), null],
])("a token, %s: it is taken, with the refresh token that came or none", (_what, text, refreshToken) => {
  const answer: TokenAnswer = { status: 200, contentType: JSON_TYPE, body: Buffer.from(text) };
  const outcome = outcomeOf(answer);
  if (outcome.kind !== "GRANTED") throw new Error(`no grant but ${outcome.kind}`);
  expect(outcome.grant.accessToken.reveal()).toBe("v1u:new");
  expect(outcome.grant.refreshToken?.reveal() ?? null).toBe(refreshToken);
});

test("a grant that is called text is taken: it would be lost otherwise", () => {
  expect(outcomeOf({ status: 200, contentType: "text/plain", body: Buffer.from(grant()) }).kind).toBe("GRANTED");
});

test("what an admin reads of trouble says what happened and who has to act", () => {
  for (const failure of ["MISCONFIGURED", "OUTAGE", "UNKNOWN"] as const) {
    const decision = decideRenewal(failure, false);
    expect(decision).toMatchObject({ trouble: { message: expect.stringMatching(/^The .+\. .+\.$/) } });
  }
});
