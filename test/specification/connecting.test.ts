import { type Simulator, startSimulator } from "../../simulator";
import type { ActorClaims } from "../support/actors";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Service, startService } from "../support/service";
import { completeConsent, connect, START_CONNECT, startConsent, syncEnds } from "../support/stories";

let simulator: Simulator;
let database: TestDatabase;
let service: Service;
let now = new Date();

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 10, now: () => now }), createTestDatabase()]);
  service = await startService(simulator, database, { clock: () => now });
});
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});

let tenants = 0;
/** A tenant that no other test has touched. */
const newcomer = (claims: ActorClaims = {}): ActorClaims => {
  tenants += 1;
  return { tenant: `tenant-${tenants}`, ...claims };
};
const tokenRequests = () => simulator.log.of("POST", "/oauth/token").length;
const storedFor = (tenant?: string) =>
  database.query(
    "SELECT tenant_id FROM credential WHERE tenant_id = $1 UNION ALL SELECT tenant_id FROM synced_copy WHERE tenant_id = $1",
    [tenant],
  );

/** Completes a consent that must be refused, and shows that the CRM was not asked and nothing was stored. */
async function refusedWithoutAsking(input: object, as: ActorClaims): Promise<string | undefined> {
  const before = tokenRequests();
  const answer = await completeConsent(service, input, as);
  expect(tokenRequests()).toBe(before);
  expect(await storedFor(as.tenant)).toEqual([]);
  return answer.code;
}

test("the consent page is asked for with client, redirect address and state, and no scope", async () => {
  const { data } = await service.ask<{ startConnect: { authorizationUrl: string; expiresAt: string } }>(
    START_CONNECT,
    {},
    newcomer(),
  );
  const url = new URL(data.startConnect.authorizationUrl);
  expect(url.pathname).toBe("/oauth/authorize");
  expect([...url.searchParams.keys()]).toEqual(["client_id", "redirect_uri", "state"]);
  expect(url.searchParams.get("state")?.length).toBeGreaterThanOrEqual(43);
  expect(new Date(data.startConnect.expiresAt).getTime() - now.getTime()).toBe(600_000);
});

test("connecting shows the bound e-mail and stores credentials sealed", async () => {
  const as = newcomer();
  const answer = await connect(service, simulator, as);
  const bound = simulator.company.users.get(simulator.company.stories.singleDeal.ownerId);
  expect(answer).toMatchObject({
    connection: { state: "CONNECTED", boundEmail: bound?.email, companyName: simulator.company.name },
  });
  const [credential] = await database.query<{ access_token: Buffer; refresh_token: Buffer }>(
    "SELECT access_token, refresh_token FROM credential WHERE tenant_id = $1",
    [as.tenant],
  );
  expect(credential?.access_token.includes("v1u:")).toBe(false);
  expect(credential?.refresh_token.includes(`${simulator.company.id}:`)).toBe(false);
  expect((await syncEnds(service, as)).state).toBe("SUCCEEDED");
});

test.each([
  ["a member", { role: "member" }, "NOT_ALLOWED_FOR_ROLE"],
  ["an admin on the small plan", { plan: "small" }, "NOT_ALLOWED_ON_PLAN"],
  ["an owner on the medium plan", { role: "owner", plan: "medium" }, null],
  ["an admin on the sales plan", { role: "admin", plan: "sales" }, null],
])("%s: startConnect, viewer and connect agree on %j", async (_who, claims, code) => {
  const as = newcomer(claims);
  const started = await service.ask<{ startConnect: { code?: string } }>(START_CONNECT, {}, as);
  expect(started.data.startConnect.code ?? null).toBe(code);
  const viewer = await service.ask<{ viewer: object }>(
    "{ viewer { role plan canManageConnection connectRefusal } }",
    {},
    as,
  );
  expect(viewer.data.viewer).toMatchObject({ canManageConnection: code === null, connectRefusal: code });
  if (code) expect(await refusedWithoutAsking({ code: "1.2.x", state: "anything" }, as)).toBe(code);
});

test.each([
  ["unknown", async () => "never-issued"],
  ["empty", async () => ""],
  ["another user's", (as: ActorClaims) => startConsent(service, { ...as, sub: "somebody-else" })],
  ["another tenant's", () => startConsent(service, newcomer())],
])("a state that is %s is refused before the CRM is asked", async (_case, make) => {
  const as = newcomer();
  const state = await make(as);
  expect(await refusedWithoutAsking({ code: simulator.control.approve(), state }, as)).toBe(
    "AUTHORIZATION_STATE_INVALID",
  );
});

test("a state lives ten minutes", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  const before = now;
  now = new Date(now.getTime() + 600_001);
  try {
    expect(await refusedWithoutAsking({ code: simulator.control.approve(), state }, as)).toBe(
      "AUTHORIZATION_STATE_INVALID",
    );
  } finally {
    now = before;
  }
});

test("a state works once, even when two use it at the same time", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  const answers = await Promise.all(
    [1, 2, 3].map(() => completeConsent(service, { code: simulator.control.approve(), state }, as)),
  );
  expect(answers.filter(({ connection }) => connection)).toHaveLength(1);
  expect(answers.filter(({ code }) => code === "AUTHORIZATION_STATE_INVALID")).toHaveLength(2);
});

test("a role that was lost since the start is refused", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  expect(await refusedWithoutAsking({ code: simulator.control.approve(), state }, { ...as, role: "member" })).toBe(
    "NOT_ALLOWED_FOR_ROLE",
  );
});

test("a user who cancels in the CRM is told so, and nothing is stored", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  expect(await refusedWithoutAsking({ error: "user_denied", state }, as)).toBe("AUTHORIZATION_DENIED_BY_USER");
});

test("an answer with neither code nor error is refused and leaves the state usable", async () => {
  const as = newcomer();
  const state = await startConsent(service, as);
  expect(await refusedWithoutAsking({ state }, as)).toBe("INVALID_INPUT");
  expect((await completeConsent(service, { code: simulator.control.approve(), state }, as)).connection).toBeDefined();
});

test("a connected CRM is kept: neither startConnect nor a consent begun earlier replaces it", async () => {
  const as = newcomer();
  const earlier = await startConsent(service, as);
  await connect(service, simulator, as);
  const started = await service.ask<{ startConnect: { code: string } }>(START_CONNECT, {}, as);
  expect(started.data.startConnect.code).toBe("ANOTHER_CRM_CONNECTED");
  const before = await database.query("SELECT * FROM credential WHERE tenant_id = $1", [as.tenant]);
  const answer = await completeConsent(service, { code: simulator.control.approve(), state: earlier }, as);
  expect(answer.code).toBe("ANOTHER_CRM_CONNECTED");
  expect(await database.query("SELECT * FROM credential WHERE tenant_id = $1", [as.tenant])).toEqual(before);
});

test("fifty completions at once by two admins make exactly one connection", async () => {
  const tenant = newcomer();
  const actors = Array.from({ length: 50 }, (_, index) => ({ ...tenant, sub: index % 2 ? "anna" : "ben" }));
  const states = await Promise.all(actors.map((as) => startConsent(service, as)));
  const answers = await Promise.all(
    actors.map((as, index) =>
      completeConsent(service, { code: simulator.control.approve(), state: states[index] }, as),
    ),
  );
  expect(answers.filter(({ connection }) => connection)).toHaveLength(1);
  expect(answers.filter(({ code }) => code === "ANOTHER_CRM_CONNECTED")).toHaveLength(49);
  expect(await database.query("SELECT 1 FROM synced_copy WHERE tenant_id = $1", [tenant.tenant])).toHaveLength(1);
  expect(await database.query("SELECT 1 FROM sync_run WHERE tenant_id = $1", [tenant.tenant])).toHaveLength(1);
});

test("before anyone connected there is a connection to show, in state NOT_CONNECTED", async () => {
  const { data } = await service.ask(
    "{ connection { state stateChangedAt crm boundEmail sync { current { id } last { id } gaps { code } } } }",
    {},
    newcomer(),
  );
  expect(data).toEqual({
    connection: {
      state: "NOT_CONNECTED",
      stateChangedAt: null,
      crm: null,
      boundEmail: null,
      sync: { current: null, last: null, gaps: [] },
    },
  });
});
