import type { Simulator } from "../../simulator";
import { type Client, connect, idsOf, type Participant, refresh, start, stopAll, TestClock, tokensOf } from "./client";

let simulator: Simulator;
let client: Client;
let userId: number;
const clock = new TestClock();

beforeEach(async () => {
  simulator = await start({ deals: 40, now: clock.now });
  userId = simulator.company.stories.singleDeal.ownerId;
  client = await connect(simulator);
});
afterEach(stopAll);

const me = () => client.get("/api/v1/users/me");

test("a deactivated user's tokens are dead, and stay so after reactivation", async () => {
  simulator.control.deactivate(userId);
  expect((await me()).status).toBe(401);
  expect(await refresh(simulator, client.refreshToken)).toMatchObject({ body: { error: "invalid_grant" } });
  const [admin] = simulator.company.users.keys();
  const other = await connect(simulator, admin);
  const users = await other.list("/api/v1/users");
  expect(users.find((user) => user.id === userId)).toMatchObject({ active_flag: false });
  simulator.control.reactivate(userId);
  expect((await me()).status).toBe(401);
  client = await connect(simulator, userId);
  expect(await me()).toMatchObject({ body: { data: { id: userId, active_flag: true } } });
});

test("revoke ends the whole grant, killAccessTokens only the access tokens", async () => {
  simulator.control.killAccessTokens(userId);
  expect((await me()).status).toBe(401);
  const renewed = await refresh(simulator, client.refreshToken);
  expect(renewed.status).toBe(200);
  simulator.control.revoke(userId);
  expect(await refresh(simulator, tokensOf(renewed).refresh_token)).toMatchObject({ body: { error: "invalid_grant" } });
});

test("tokens can turn out to be another user's, or another company's, at once or from the next renewal on", async () => {
  const other = [...simulator.company.users.values()].find(({ id, active_flag }) => active_flag && id !== userId);
  const company = { id: 99, name: "Other", domain: "other" };
  simulator.control.mistake(userId, { userId, company });
  expect(await me()).toMatchObject({ body: { data: { id: userId, company_id: simulator.company.id } } });
  simulator.control.mistake(userId, { userId: other?.id ?? 0 }, "living");
  expect(await me()).toMatchObject({ body: { data: { id: other?.id, company_id: simulator.company.id } } });
  simulator.control.mistake(userId, { userId, company });
  const renewed = tokensOf(await refresh(simulator, client.refreshToken));
  const answer = await fetch(`${simulator.url}/api/v1/users/me`, {
    headers: { authorization: `Bearer ${renewed.access_token}` },
  });
  expect(await answer.json()).toMatchObject({ data: { id: userId, company_id: 99, company_domain: "other" } });
  expect(simulator.log.all().at(-1)).toMatchObject({ userId, companyId: 99 });
});

test("change shows on every path and moves the update time", async () => {
  const { dealId, noteId, stageId } = simulator.company.stories.singleDeal;
  await client.get("/api/v2/deals?limit=500");
  await client.get("/api/v1/notes?limit=500");
  clock.advance(60);
  const now = `${clock.now().toISOString().slice(0, 19)}Z`;
  simulator.control.change("deal", dealId, { title: "Renamed", stage_id: stageId + 1 });
  expect((await client.list("/api/v2/deals?limit=1"))[0]).toMatchObject({
    title: "Renamed",
    update_time: now,
    stage_change_time: now,
  });
  expect((await client.one(`/api/v1/notes/${noteId}`)).deal).toEqual({ title: "Renamed" });
  simulator.control.change("deal", dealId, { status: "won" });
  expect(await client.one(`/api/v2/deals/${dealId}`)).toMatchObject({
    status: "won",
    won_time: now,
    close_time: now,
  });
});

test("a list that was read before shows what was added, hidden and changed since", async () => {
  const list = async () =>
    idsOf(await client.walk("/api/v2/persons?limit=500&sort_by=update_time&sort_direction=desc"));
  const before = await list();
  clock.advance(60);
  const { sharedAddress, freeMail } = simulator.company.stories;
  simulator.control.change("person", freeMail.personId, { job_title: "CEO" });
  simulator.control.hide("person", sharedAddress.personIds[0]);
  const rest = before.filter((id) => id !== freeMail.personId && id !== sharedAddress.personIds[0]);
  expect(await list()).toEqual([freeMail.personId, ...rest]);
  clock.advance(60);
  const added = simulator.control.add("person", { name: "Late Comer" });
  expect(await list()).toEqual([added, freeMail.personId, ...rest]);
});

test("add gives the next id, and the record is there", async () => {
  const orgId = simulator.control.add("organization", { name: "Fresh AG" });
  const personId = simulator.control.add("person", { name: "Ada Example", org_id: orgId });
  const dealId = simulator.control.add("deal", { title: "Fresh", person_id: personId, org_id: orgId });
  const activityId = simulator.control.add("activity", { deal_id: dealId });
  const noteId = simulator.control.add("note", { deal_id: dealId, content: "<p>x</p>" });
  const pipelineId = simulator.control.add("pipeline", { name: "More" });
  const stageId = simulator.control.add("stage", { pipeline_id: pipelineId });
  const added = simulator.control.add("user", { name: "New One" });
  expect((await client.one(`/api/v2/organizations/${orgId}`)).name).toBe("Fresh AG");
  expect(await client.one(`/api/v2/persons/${personId}`)).toMatchObject({
    name: "Ada Example",
    org_id: orgId,
  });
  expect(idsOf(await client.walk("/api/v2/deals?limit=500")).at(-1)).toBe(dealId);
  expect((await client.one(`/api/v2/activities/${activityId}`)).deal_id).toBe(dealId);
  expect((await client.one(`/api/v1/notes/${noteId}`)).deal).toEqual({ title: "Fresh" });
  expect(idsOf(await client.list(`/api/v2/stages?pipeline_id=${pipelineId}`))).toEqual([stageId]);
  expect(idsOf(await client.list("/api/v1/users"))).toContain(added);
  expect(() => simulator.control.remove("deal", 999_999)).toThrow("there is no deal 999999");
});

test("setParticipants sets the people, keeps known links, and leaves the deal's update time alone", async () => {
  const { singleDeal, freeMail } = simulator.company.stories;
  const participants = () => client.list<Participant>(`/api/v1/deals/${singleDeal.dealId}/participants`);
  const before = idsOf(await participants());
  const time = simulator.company.deals.get(singleDeal.dealId)?.update_time;
  simulator.control.setParticipants(singleDeal.dealId, [freeMail.personId, singleDeal.personId]);
  const after = await participants();
  expect(after.map((item) => item.person_id.value)).toEqual([freeMail.personId, singleDeal.personId]);
  const [added, kept] = idsOf(after);
  expect(kept).toBe(before[0]);
  expect(added).toBeGreaterThan(Math.max(...before));
  expect(simulator.company.deals.get(singleDeal.dealId)?.update_time).toBe(time);
});

test("visibleTo is what a client reads", async () => {
  const snapshot = simulator.control.visibleTo(userId);
  const mail = "last_incoming_mail_time,last_outgoing_mail_time";
  expect(await client.walk(`/api/v2/deals?limit=500&include_fields=${mail},participants_count`)).toEqual(
    snapshot.deals,
  );
  expect(await client.walk(`/api/v2/persons?limit=500&include_fields=${mail}`)).toEqual(snapshot.persons);
  expect(await client.walk("/api/v2/organizations?limit=500")).toEqual(snapshot.organizations);
  expect(await client.walk("/api/v2/activities?limit=500")).toEqual(snapshot.activities);
  expect(await client.walk("/api/v2/pipelines")).toEqual(snapshot.pipelines);
  expect(await client.walk("/api/v2/stages")).toEqual(snapshot.stages);
  expect(await client.list("/api/v1/notes?limit=500")).toEqual(snapshot.notes);
  expect(await client.list("/api/v1/users")).toEqual(snapshot.users);
  expect([...snapshot.participants.keys()]).toEqual(idsOf(snapshot.deals));
});

test("the log finds by method, prefix and expression, and can be cleared", async () => {
  simulator.log.clear();
  await client.get("/api/v2/deals?limit=3&status=open");
  await client.get("/api/v1/deals/1/participants");
  expect(simulator.log.of("GET", "/api/v2/deals")).toEqual([
    {
      at: clock.now(),
      method: "GET",
      path: "/api/v2/deals",
      query: { limit: "3", status: "open" },
      status: 200,
      userId,
      tokens: 10,
      balance: expect.any(Number),
      durationMs: expect.any(Number),
    },
  ]);
  expect(simulator.log.of("GET", /participants$/)).toHaveLength(1);
  expect(simulator.log.of("POST", "/")).toEqual([]);
  simulator.log.clear();
  expect(simulator.log.all()).toEqual([]);
});
