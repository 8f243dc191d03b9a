import { type Simulator, startSimulator } from "../../simulator";
import type { ActorClaims } from "../support/actors";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Service, startService } from "../support/service";
import { completeConsent, connect, dataOf, START_CONNECT, startConsent, syncEnds } from "../support/stories";

let simulator: Simulator;
let database: TestDatabase;
let service: Service;
const now = new Date();

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
    "SELECT access_token, refresh_token FROM credential WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
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
  if (!code) return;
  expect(await completeConsent(service, { code: "1.2.x", state: "anything" }, as)).toMatchObject({ code });
});

test("a connected CRM is kept: startConnect does not begin another", async () => {
  const as = newcomer();
  await connect(service, simulator, as);
  const started = await service.ask<{ startConnect: { code: string } }>(START_CONNECT, {}, as);
  expect(started.data.startConnect.code).toBe("ANOTHER_CRM_CONNECTED");
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
  expect(
    await database.query("SELECT 1 FROM synced_copy WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)", [
      tenant.tenant,
    ]),
  ).toHaveLength(1);
  expect(
    await database.query("SELECT 1 FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)", [
      tenant.tenant,
    ]),
  ).toHaveLength(1);
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

test.each([{ name: "a\u0000b" }, { email: "a\u0000@b.example" }, { company_name: "\u0000" }])(
  "a NUL character in users/me (%j) is stored as the replacement character",
  async (change) => {
    const as = newcomer();
    const { users, stories, id, domain } = simulator.company;
    const company = { company_id: id, company_name: "N", company_domain: domain };
    const data = { ...users.get(stories.singleDeal.ownerId), ...company, ...change };
    const end = simulator.control.fail({
      match: "/api/v1/users/me",
      with: { status: 200, body: { success: true, data } },
    });
    const { connection } = await connect(service, simulator, as);
    end();
    expect(JSON.stringify(connection)).toMatch(Object.keys(change)[0] === "name" ? /CONNECTED/ : /\ufffd/);
  },
);

test("what is refused or in vain before anyone connected is no change of the state", async () => {
  const as = newcomer();
  const state = async () =>
    dataOf(
      await service.ask<{ connection: { stateChangedAt: string | null } }>(
        "{ connection { state stateChangedAt } }",
        {},
        as,
      ),
    );
  for (const mutation of ["requestSync", "disconnect"]) {
    dataOf(await service.ask(`mutation { ${mutation} { __typename } }`, {}, as));
    expect(await state()).toEqual({ connection: { state: "NOT_CONNECTED", stateChangedAt: null } });
  }
  await connect(service, simulator, as);
  expect((await state()).connection.stateChangedAt).not.toBeNull();
});
