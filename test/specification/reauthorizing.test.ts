import { encodeId } from "../../src/resolvers/inputs";
import type { ActorClaims } from "../support/actors";
import { copiedIds, visibleIds } from "../support/copy";
import { dumpState, rowsOfCopy } from "../support/dump";
import {
  completeConsent,
  connect,
  dataOf,
  listRuns,
  noJobIsDue,
  recordMeeting,
  startConsent,
  syncEnds,
  until,
} from "../support/stories";
import { loseAuthorization } from "../support/tokens";
import { useService } from "../support/world";

// Seen red with: another user given the same copy; the same user given a new one; another company admitted; the earlier
// copy not retired; the open run not cancelled.

let owner: number;
let colleague: number;

const { simulator, database, service } = useService({ deals: 20 });
beforeAll(async () => {
  owner = simulator.company.stories.singleDeal.ownerId;
  colleague = [...simulator.company.users.values()].find(({ id, active_flag }) => active_flag && id !== owner)?.id ?? 0;
});
afterEach(() => {
  simulator.control.clearFaults();
  simulator.control.signIn(owner);
});

interface Present {
  state: string;
  copy_id: number;
  version: number;
  bound_email: string;
}
async function presentOf({ tenant }: ActorClaims): Promise<Present> {
  const query = `SELECT c.state, c.copy_id, x.version, c.bound_email FROM connection c JOIN credential x USING (tenant_id)
    WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`;
  const [row] = await database.query<Present>(query, [tenant]);
  if (!row) throw new Error(`${tenant} is not connected`);
  return row;
}

let tenants = 0;
/** A tenant whose first sync has ended, or is still waiting for the CRM, and whose grant the CRM then refused. */
async function refusedByCrm(inFirstRun: (as: { tenant: string }) => Promise<unknown> = (as) => syncEnds(service, as)) {
  tenants += 1;
  const as = { tenant: `tenant-${tenants}` };
  await connect(service, simulator, as);
  await inFirstRun(as);
  const before = await presentOf(as);
  await loseAuthorization(database, as.tenant);
  const { data } = await service.ask("{ connection { state reauthorizationReason } }", {}, as);
  expect(data).toEqual({ connection: { state: "NEEDS_REAUTHORIZATION", reauthorizationReason: "GRANT_REVOKED" } });
  return { as, before };
}

const emailOf = (id: number) => simulator.company.users.get(id)?.email;
const runsOf = ({ tenant }: ActorClaims) =>
  database.query<{ state: string; copy_id: number }>(
    "SELECT state, copy_id FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) ORDER BY queued_at",
    [tenant],
  );
const matchOf = async (id: string, as: ActorClaims) => {
  const query = "query ($id: ID!) { meeting(id: $id) { match { status deal { id } } } }";
  type Read = { meeting: { match: { status: string; deal: { id: string } | null } } };
  return dataOf(await service.ask<Read>(query, { id }, as)).meeting.match;
};

test("the same user again: the same copy, readable all the time, with a new credential and a new run", async () => {
  const { as, before } = await refusedByCrm();
  const { email, dealId } = simulator.company.stories.singleDeal;
  // No longer one whose records are brought up to date.
  const startsAt = new Date(Date.now() - 3_600_000).toISOString();
  const { id } = await recordMeeting(service, [email], { startsAt }, as);
  const shown = { status: "MATCHED", deal: { id: encodeId("Deal", before.copy_id, dealId) } };
  expect(await matchOf(id, as)).toEqual(shown);
  await database.query("UPDATE synced_copy SET probed_at = now()");
  simulator.log.clear();
  expect((await connect(service, simulator, as)).connection).toMatchObject({ state: "CONNECTED" });
  expect(await matchOf(id, as)).toEqual(shown);
  const after = await presentOf(as);
  expect(after).toEqual({ ...before, state: "CONNECTED", version: before.version + 1 });
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  expect(await runsOf(as)).toEqual([1, 2].map(() => ({ state: "SUCCEEDED", copy_id: before.copy_id })));
  expect(await copiedIds(database, as.tenant)).toEqual(visibleIds(simulator, owner));
  // The user may see less than before. Seen red with matched records looked at a day after the last look.
  const looks = simulator.log.of("GET", "/api/v2/deals").filter(({ query }) => "ids" in query);
  expect(looks.map(({ query }) => query.ids?.split(","))).toContainEqual(expect.arrayContaining([String(dealId)]));
});

test("another user of the company: a new copy of what that user sees, and the earlier one is purged", async () => {
  const { as, before } = await refusedByCrm();
  const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
  const earlier = await matchOf(id, as);
  simulator.control.signIn(colleague);
  expect((await connect(service, simulator, as)).connection).toMatchObject({ boundEmail: emailOf(colleague) });
  const after = await presentOf(as);
  // Seen red: the next number, by which whoever reads an id knew how many connects there had been.
  expect(Math.abs(after.copy_id - before.copy_id)).toBeGreaterThan(1_000);
  const node = await service.ask("query ($id: ID!) { node(id: $id) { id } }", { id: earlier.deal?.id }, as);
  expect(dataOf(node)).toEqual({ node: null });
  await until("the earlier copy is purged", async () => {
    return Object.keys(await rowsOfCopy(database, before.copy_id)).length === 0;
  });
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  expect(await copiedIds(database, as.tenant)).toEqual(visibleIds(simulator, colleague));
});

test("a user of another company is refused, and nothing changes but the state that was used up", async () => {
  const { as } = await refusedByCrm();
  const state = await startConsent(service, as);
  const user = {
    ...simulator.company.users.get(owner),
    company_id: 99,
    company_name: "Other",
    company_domain: "other",
  };
  simulator.control.fail({ match: "/api/v1/users/me", with: { status: 200, body: { success: true, data: user } } });
  await noJobIsDue(database);
  const kept = async () => (await dumpState(database)).filter(({ table }) => !table.endsWith("authorization_request"));
  const before = await kept();
  const code = simulator.control.approve();
  const complete = () => completeConsent(service, { code, state }, as);
  const answer = await complete();
  expect(answer).toMatchObject({ code: "DIFFERENT_CRM_COMPANY", message: expect.stringMatching(/\.$/) });
  // Seen red: told AUTHORIZATION_STATE_INVALID.
  expect(await complete()).toEqual(answer);
  expect(await kept()).toEqual(before);
});

test.each([
  ["an inactive user", { active_flag: false }, "AUTHORIZATION_REJECTED"],
  ["no readable user", { id: "x" }, "CRM_UNAVAILABLE"],
])("%s does not re-authorize: the state, the copy and the old credential stay", async (_who, change, code) => {
  const { as, before } = await refusedByCrm();
  const data = { ...simulator.company.users.get(owner), company_id: simulator.company.id, ...change };
  const body = { success: true, data: { company_name: "Northwind", company_domain: "northwind", ...data } };
  simulator.control.fail({ match: "/api/v1/users/me", with: { status: 200, body } });
  expect((await connect(service, simulator, as)).code).toBe(code);
  expect(await presentOf(as)).toEqual({ ...before, state: "NEEDS_REAUTHORIZATION" });
});

test.each([
  ["the same user", () => owner, true],
  ["another user", () => colleague, false],
])(
  "while a run is open %s can re-authorize: that run is cancelled and a new one reads all",
  async (_who, who, same) => {
    const release = simulator.control.fail({ match: "/api/v2/deals", times: 1, with: { kind: "hang" } });
    const { as, before } = await refusedByCrm(({ tenant }) => listRuns(database, tenant, "DEALS"));
    simulator.control.signIn(who());
    expect((await connect(service, simulator, as)).connection).toMatchObject({ boundEmail: emailOf(who()) });
    const { copy_id: copyId } = await presentOf(as);
    expect(copyId === before.copy_id).toBe(same);
    release();
    expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
    expect(await runsOf(as)).toEqual([
      { state: "CANCELLED", copy_id: before.copy_id },
      { state: "SUCCEEDED", copy_id: copyId },
    ]);
    expect(await copiedIds(database, as.tenant)).toEqual(visibleIds(simulator, who()));
  },
);

test("re-authorizing needs the plan that connecting needs", async () => {
  const { as, before } = await refusedByCrm();
  const { data } = await service.ask<{ startConnect: { code: string } }>(
    "mutation { startConnect { ... on Refusal { code } } }",
    {},
    { ...as, plan: "small" },
  );
  expect(data.startConnect).toEqual({ code: "NOT_ALLOWED_ON_PLAN" });
  expect(await presentOf(as)).toEqual({ ...before, state: "NEEDS_REAUTHORIZATION" });
});
