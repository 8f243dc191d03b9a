import { generateKeyPairSync } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, SignJWT } from "jose";
import { type Simulator, startSimulator } from "../../simulator";
import { tokenFor } from "../support/actors";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { post } from "../support/http";
import { type Service, startService } from "../support/service";

let simulator: Simulator;
let database: TestDatabase;
let service: Service;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 10 }), createTestDatabase()]);
  service = await startService(simulator, database);
});
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});

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
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  let keys: Server;
  let guarded: Service;

  beforeAll(async () => {
    const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: "k", alg: "RS256", use: "sig" }] };
    keys = createServer((_request, response) =>
      response.setHeader("content-type", "application/json").end(JSON.stringify(jwks)),
    );
    await new Promise<void>((resolve) => keys.listen(0, "127.0.0.1", resolve));
    const url = new URL(`http://127.0.0.1:${(keys.address() as AddressInfo).port}/jwks`);
    guarded = await startService(simulator, database, {
      auth: { proof: { kind: "jwks", url }, issuer: "https://login.example", audience: "crm" },
    });
  });
  afterAll(async () => {
    await guarded.stop();
    keys.close();
  });

  const sign = (issuer: string, audience: string) =>
    new SignJWT({ tenant: "t2", role: "member", plan: "sales" })
      .setProtectedHeader({ alg: "RS256", kid: "k" })
      .setSubject("u2")
      .setIssuer(issuer)
      .setAudience(audience)
      .setExpirationTime("1h")
      .sign(privateKey);

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
  expect(get.status).toBe(404);
  const form = await fetch(`${service.url}/graphql`, { method: "POST", body: new URLSearchParams({ query: VIEWER }) });
  expect(form.status).toBe(415);
});
