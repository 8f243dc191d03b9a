import type { ActorClaims } from "../support/actors";
import { completeConsent, connect, dataOf, START_CONNECT, startConsent, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: a scope sent to the consent page; a consent that is forgotten when it is used up; consents counted
// without a lock.

let now = new Date();

const { simulator, database, service } = useService({ deals: 10, clock: () => now });

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

/** Consents of a tenant that are stored. */
const stored = async ({ tenant }: ActorClaims) =>
  database.query("SELECT 1 FROM authorization_request WHERE tenant_id = $1", [await database.tenantId(`${tenant}`)]);

// Seen red: they went with the tenant's next consent, so those of a tenant that never began another stayed.
test("a consent that nobody completes goes once its ten minutes are over", async () => {
  const [as, other] = [newcomer(), newcomer()];
  for (const who of [as, other]) await startConsent(service, who);
  const over = new Date(now.getTime() - 600_001);
  const end = "UPDATE authorization_request SET expires_at = $1 WHERE tenant_id = $2";
  await database.query(end, [over, await database.tenantId(`${as.tenant}`)]);
  await until("a sweep takes it", async () => (await stored(as)).length === 0);
  expect(await stored(other)).toHaveLength(1);
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

test("twenty completions at once by two admins make exactly one connection", async () => {
  const tenant = newcomer();
  const actors = Array.from({ length: 20 }, (_, index) => ({ ...tenant, sub: index % 2 ? "anna" : "ben" }));
  const states = await Promise.all(actors.map((as) => startConsent(service, as)));
  const answers = await Promise.all(
    actors.map((as, index) =>
      completeConsent(service, { code: simulator.control.approve(), state: states[index] }, as),
    ),
  );
  expect(answers.filter(({ connection }) => connection)).toHaveLength(1);
  expect(answers.filter(({ code }) => code === "ANOTHER_CRM_CONNECTED")).toHaveLength(19);
  const tenantId = await database.tenantId(tenant.tenant ?? "");
  expect(await database.query("SELECT 1 FROM synced_copy WHERE tenant_id = $1", [tenantId])).toHaveLength(1);
  expect(await database.query("SELECT 1 FROM sync_run WHERE tenant_id = $1", [tenantId])).toHaveLength(1);
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

describe("consents that are begun and not ended", () => {
  const START = `mutation { startConnect { ... on ConnectStarted { authorizationUrl expiresAt }
    ... on Refusal { code message retryAt } } }`;
  type Started = { startConnect: { authorizationUrl?: string; expiresAt?: string; code?: string; retryAt?: string } };
  const start = async (as: ActorClaims) => (await service.ask<Started>(START, {}, as)).data.startConnect;
  const toldBefore = async (as: ActorClaims) =>
    dataOf(await service.ask<{ viewer: { connectRefusal: string | null } }>("{ viewer { connectRefusal } }", {}, as))
      .viewer.connectRefusal;
  const codes = (answers: Started["startConnect"][]) => answers.map(({ code }) => code ?? "STARTED");
  const events = (tenant?: string) =>
    database.query<{ action: string; code: string | null; count: number }>(
      `SELECT action, code, count(*)::int AS count FROM audit_event WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) GROUP BY 1, 2 ORDER BY count DESC`,
      [tenant],
    );

  test("of 50 begun at once a tenant has 20, the others are told when to come again, and leave one row", async () => {
    const as = newcomer();
    const answers = await Promise.all(Array.from({ length: 50 }, () => start(as)));
    expect(codes(answers).filter((code) => code === "STARTED")).toHaveLength(20);
    const refused = answers.filter(({ code }) => code);
    expect(new Set(codes(refused))).toEqual(new Set(["LIMIT_REACHED"]));
    const ends = answers.find(({ expiresAt }) => expiresAt)?.expiresAt;
    for (const answer of refused) {
      expect(answer).toMatchObject({ retryAt: ends, message: expect.stringContaining(`start again after ${ends}`) });
    }
    expect(await stored(as)).toHaveLength(20);
    expect(await events(as.tenant)).toEqual([
      { action: "CONSENT_STARTED", code: null, count: 20 },
      { action: "CONSENT_REJECTED", code: "LIMIT_REACHED", count: 1 },
    ]);
    expect(codes([await start(newcomer())])).toEqual(["STARTED"]);
  });

  test("neither a cancelled consent nor a disconnect makes room, time does", async () => {
    const as = newcomer();
    const begun = await Promise.all(Array.from({ length: 20 }, () => start(as)));
    const state = new URL(begun[0]?.authorizationUrl ?? "").searchParams.get("state") ?? "";
    expect(await completeConsent(service, { error: "user_denied", state }, as)).toMatchObject({
      code: "AUTHORIZATION_DENIED_BY_USER",
    });
    dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
    expect(codes([await start(as)])).toEqual(["LIMIT_REACHED"]);
    // Seen red: the button was offered, and refused.
    expect(await toldBefore(as)).toBe("LIMIT_REACHED");
    now = new Date(now.getTime() + 600_000);
    expect(await toldBefore(as)).toBeNull();
    expect(codes([await start(as)])).toEqual(["STARTED"]);
  });
});
