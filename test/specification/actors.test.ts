import { SignJWT } from "jose";
import { request } from "undici";
import { tokenFor } from "../support/actors";
import { post } from "../support/http";
import { type KeyServer, makeKey, type SigningKey, startKeyServer, withBody, withKeys } from "../support/key-server";
import { type Service, startService } from "../support/service";
import { subscribe } from "../support/sockets";
import { until } from "../support/stories";
import { useService } from "../support/world";

const { simulator, database, service } = useService({ deals: 10 });

const VIEWER = "{ viewer { userId tenantId role plan } }";
const foreign = (claims: object, secret = "another secret, also of at least 32 bytes") =>
  new SignJWT({ tenant: "acme", role: "admin", plan: "sales", sub: "eve", ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(secret));
const unsigned = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"sub":"eve","tenant":"acme","role":"owner","plan":"sales","exp":9999999999}').toString("base64url")}.`;

test("the viewer is whom the token proves", async () => {
  const { data } = await service.ask(VIEWER, {}, { sub: "u1", tenant: "t1", role: "owner", plan: "medium" });
  expect(data).toEqual({ viewer: { userId: "u1", tenantId: "t1", role: "OWNER", plan: "medium" } });
});

test.each([
  ["is signed with another secret", () => foreign({})],
  ["has ended", () => tokenFor({}, Math.floor(Date.now() / 1000) - 60)],
  ["is not signed", async () => unsigned],
  ["is no token", async () => "garbage"],
  ["has a role that does not exist", () => tokenFor({ role: "emperor" })],
  ["has no tenant", () => tokenFor({ tenant: "" })],
  ["has a tenant that the database could not tell from others", () => tokenFor({ tenant: "acme\ud800" })],
  ["has a tenant that the database could not store", () => tokenFor({ tenant: "acme\0" })],
  ["has a user that no index could hold", () => tokenFor({ sub: "u".repeat(256) })],
])("a token that %s is refused with 401 and its reason", async (_case, make) => {
  const { status, data, errors } = await service.ask(VIEWER, {}, { token: await make() });
  expect(status).toBe(401);
  expect(data).toBeUndefined();
  expect(errors?.[0]).toMatchObject({
    extensions: { code: "UNAUTHENTICATED" },
    message: expect.stringMatching(/token/),
  });
});

test.each([undefined, "", "Basic YTpi", "Bearer"])(
  "the authorization header %j is refused with 401 and what to send",
  async (authorization) => {
    const answer = await post(
      `${service.url}/graphql`,
      { query: VIEWER },
      authorization === undefined ? {} : { authorization },
    );
    expect(answer).toMatchObject({
      status: 401,
      body: { errors: [{ message: expect.stringContaining("bearer token") }] },
    });
  },
);

describe("with a JWKS address", () => {
  let keys: KeyServer;
  let key: SigningKey;
  let guarded: Service;
  const guard = () =>
    startService(simulator, database, {
      auth: { proof: { kind: "jwks", url: keys.url }, issuer: "https://login.example", audience: "crm" },
    });

  beforeAll(async () => {
    [keys, key] = await Promise.all([startKeyServer(), makeKey("k", () => new Date())]);
    keys.answer = withKeys(key.jwk);
    guarded = await guard();
  });
  afterAll(async () => {
    await guarded.stop();
    await keys.stop();
  });

  const sign = (iss: string, aud: string) => key.sign({ sub: "u2", tenant: "t2", role: "member", iss, aud });

  // Seen red without the look at its start: the last known keys counted from the last caller.
  test("the keys are fetched before anybody calls", async () => {
    const before = keys.requests;
    const service = await guard();
    await until("they are fetched", async () => keys.requests > before);
    await service.stop();
  });

  test("a token of the identity provider proves its actor", async () => {
    const { data } = await guarded.ask(VIEWER, {}, { token: await sign("https://login.example", "crm") });
    expect(data).toMatchObject({ viewer: { userId: "u2", role: "MEMBER" } });
  });

  test.each([
    ["another issuer", () => sign("https://elsewhere.example", "crm")],
    ["another audience", () => sign("https://login.example", "mail")],
    ["a shared secret", () => tokenFor()],
  ])("a token of %s is refused", async (_case, make) => {
    expect((await guarded.ask(VIEWER, {}, { token: await make() })).status).toBe(401);
  });

  test("while its keys cannot be fetched nobody is signed out: 503 with Retry-After, on a socket 1013", async () => {
    keys.answer = withBody(500, "");
    const service = await guard();
    const token = await sign("https://login.example", "crm");
    const answer = await request(`${service.url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ query: VIEWER }),
    });
    expect(answer.statusCode).toBe(503);
    expect(Number(answer.headers["retry-after"])).toBeGreaterThan(50);
    expect(await answer.body.json()).toMatchObject({
      errors: [{ extensions: { code: "KEYS_UNAVAILABLE" }, message: expect.stringContaining("Keep the token") }],
    });
    const watching = await subscribe(service.url, "subscription { connectionStatusChanged { state } }", { token });
    await expect(watching.closed).resolves.toMatchObject({ code: 1013, reason: expect.stringContaining("try again") });
    await watching.end();
    const foreign = await subscribe(service.url, "subscription { connectionStatusChanged { state } }");
    await expect(foreign.closed).resolves.toMatchObject({ code: 4403 });
    await foreign.end();
    expect((await service.ask(VIEWER, {}, { token: await tokenFor() })).status).toBe(401);
    await service.stop();
  });
});

test.each([
  ["a document that does not parse", "{ viewer {", "GRAPHQL_PARSE_FAILED"],
  ["an unknown field", "{ viewer { password } }", "GRAPHQL_VALIDATION_FAILED"],
  ["a page that is too large", "{ syncRuns(first: 101) { nodes { id } } }", "BAD_USER_INPUT"],
  ["no id at all", "{ meeting { id } }", "BAD_USER_INPUT"],
])("%s is a clear error with a code and no stack", async (_case, query, code) => {
  const { errors } = await service.ask(query);
  expect(errors?.[0]?.extensions).toEqual({ code });
});

test("GraphQL is answered to POST with JSON only", async () => {
  const get = await fetch(`${service.url}/graphql?query={viewer{userId}}`, {
    headers: { authorization: `Bearer ${await tokenFor()}` },
  });
  expect(get.status).toBe(405);
  const form = await fetch(`${service.url}/graphql`, { method: "POST", body: new URLSearchParams({ query: VIEWER }) });
  expect(form.status).toBe(415);
});
