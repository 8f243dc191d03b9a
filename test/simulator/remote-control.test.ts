import type { FastifyInstance } from "fastify";
import { optionsFrom } from "../../simulator/arguments";
import { startRemoteControl } from "../../simulator/remote/remote-control";
import { type Reply, refresh, request, useClient } from "./client";

let remote: FastifyInstance;
let address: string;

const { simulator, client, authorize } = useClient({ deals: 10 });
beforeEach(async () => {
  remote = await startRemoteControl(simulator, 0);
  address = remote.listeningOrigin;
});
afterEach(() => remote.close());

const story = () => simulator.company.stories.singleDeal;
const command = (name: string, body: object = {}): Promise<Reply<Record<string, unknown>>> =>
  request(`${address}/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const statusOf = async (path: string) => (await client.get(path)).status;

test("grants end, users go and come back", async () => {
  const { ownerId: userId } = story();
  expect(await command("kill-access-tokens", { userId })).toMatchObject({
    status: 200,
    body: { done: "kill-access-tokens" },
  });
  expect(await statusOf("/api/v1/users/me")).toBe(401);
  expect((await refresh(simulator, client.refreshToken)).status).toBe(200);
  await command("deactivate", { userId });
  expect(simulator.company.users.get(userId)?.active_flag).toBe(false);
  await command("reactivate", { userId });
  expect(simulator.company.users.get(userId)?.active_flag).toBe(true);
  await authorize(userId);
  await command("revoke", { userId });
  expect(await refresh(simulator, client.refreshToken)).toMatchObject({ body: { error: "invalid_grant" } });
  const [admin] = simulator.company.users.keys();
  await command("sign-in", { userId: admin });
  await authorize();
  expect(await client.one("/api/v1/users/me")).toMatchObject({ id: admin });
});

test("records are hidden, shown, changed, archived and removed", async () => {
  const { dealId: id, personId } = story();
  const path = `/api/v2/deals/${id}`;
  await command("hide", { entity: "deal", id });
  expect(await statusOf(path)).toBe(404);
  await command("show", { entity: "deal", id });
  await command("change", { entity: "deal", id, patch: { title: "From outside" } });
  await command("archive", { dealId: id });
  expect(await client.one(path)).toMatchObject({ title: "From outside", is_archived: true });
  await command("remove", { entity: "person", id: personId });
  expect(await client.one(`/api/v2/persons/${personId}`)).toMatchObject({ is_deleted: true });
  const code = simulator.control.addCustomField("deal", { name: "x", type: "varchar" });
  await command("remove-field", { entity: "deal", code });
  expect(await statusOf(`/api/v2/dealFields/${code}`)).toBe(404);
});

test("an outage, a throttle and lost replies last as long as they are told", async () => {
  await command("outage", { times: 1 });
  expect(await statusOf("/api/v2/stages")).toBe(503);
  expect(await statusOf("/api/v2/stages")).toBe(200);
  await command("throttle");
  expect(await statusOf("/api/v2/stages")).toBe(429);
  expect(await statusOf("/v1/users/me")).toBe(429);
  expect((await refresh(simulator, client.refreshToken)).status).toBe(200);
  await command("clear-faults");
  await command("lose-replies", { method: "POST", times: 1 });
  expect(await statusOf("/api/v2/stages")).toBe(200);
  const note = { content: "lost", deal_id: story().dealId };
  await expect(client.send("POST", "/api/v1/notes", note)).rejects.toThrow("fetch failed");
  const { body } = await request(`${address}/notes/deal/${story().dealId}`);
  expect(body).toEqual(expect.arrayContaining([expect.objectContaining({ content: "lost" })]));
});

test("any fault rule, by prefix or by expression, and what it held back", async () => {
  await command("fail", { match: "/api/v2/stages", method: "GET", after: 1, times: 1, with: { status: 500 } });
  expect([await statusOf("/api/v2/stages"), await statusOf("/api/v2/stages")]).toEqual([200, 500]);
  await command("fail", { pattern: "^/api/v2/deals/[0-9]+$", method: "PATCH", with: { kind: "late", status: 504 } });
  const code = simulator.control.addCustomField("deal", { name: "x", type: "varchar" });
  const path = `/api/v2/deals/${story().dealId}`;
  expect((await client.send("PATCH", path, { custom_fields: { [code]: "late" } })).status).toBe(504);
  expect((await command("release-late-effects")).body).toMatchObject({ released: 1 });
  const { body } = await request(`${address}/fields/deal/${story().dealId}`);
  expect(body).toMatchObject({ [code]: "late" });
});

test("the company's day is spent by others, ended, and its headers switched off", async () => {
  expect((await command("other-apps-spend", { tokens: 700 })).body).toMatchObject({ taken: 700 });
  await client.get("/api/v2/stages");
  expect((await request(`${address}/ledger`)).body).toMatchObject({
    ours: 5,
    others: 700,
    refused: 0,
    operations: { "GET /api/v2/stages": { requests: 1, tokens: 5 } },
  });
  await command("end-day");
  await command("budget-headers", { shown: "off" });
  expect((await client.get("/api/v2/stages")).headers.has("x-daily-ratelimit-token-limit")).toBe(false);
  await command("advance", { seconds: 3_600 });
  expect(await statusOf("/api/v2/stages")).toBe(401);
});

test("participants are set, records merged, a user's view narrowed, users/me forbidden", async () => {
  const { dealId, ownerId: userId, participantIds } = story();
  const [first, second] = participantIds;
  const before = simulator.company.deals.get(dealId)?.update_time;
  await command("set-participants", { dealId, personIds: [first] });
  expect(simulator.company.deals.get(dealId)?.update_time).toBe(before);
  await command("set-participants", { dealId, personIds: [first, second], updateTime: "moves" });
  expect(simulator.company.deals.get(dealId)?.update_time).not.toBe(before);
  await command("merge", { entity: "person", loserId: first, winnerId: second });
  expect(simulator.company.participants.get(dealId)?.map(({ personId }) => personId)).toEqual([second]);
  await command("narrow", { userId, sight: "nothing" });
  expect(await client.walk("/api/v2/deals")).toEqual([]);
  await command("forbid", { times: 1 });
  expect(await client.get("/v1/users/me")).toMatchObject({ status: 403, body: { success: false } });
  expect(await statusOf("/api/v1/users/me")).toBe(200);
});

test("the log is read and forgotten", async () => {
  await client.get("/api/v2/stages");
  expect((await request<object[]>(`${address}/log`)).body.at(-1)).toMatchObject({
    path: "/api/v2/stages",
    status: 200,
  });
  await request(`${address}/log`, { method: "DELETE" });
  expect((await request(`${address}/log`)).body).toEqual([]);
});

test("it tells its commands, the users and the stories", async () => {
  const { body } = await request<Record<string, string>>(`${address}/`);
  expect(body["POST /revoke"]).toBe("{userId}: ends the user's grant: a refresh answers invalid_grant");
  expect((await request(`${address}/company`)).body).toMatchObject({
    users: expect.arrayContaining([expect.objectContaining({ id: story().ownerId, is_admin: 0 })]),
    stories: { singleDeal: { dealId: story().dealId } },
  });
});

test.each<[string, object, string]>([
  ["revoke", { user: 5 }, "this command takes userId, no user"],
  ["revoke", {}, "userId must be a whole number"],
  ["revoke", { userId: "5" }, "userId must be a whole number"],
  ["deactivate", { userId: 5 }, "there is no user 5"],
  ["remove", { entity: "lead", id: 5 }, "entity must be one of deal,"],
  ["change", { entity: "deal", id: 1, patch: "x" }, "patch must be an object"],
  ["fail", { with: { status: 500 } }, "match must be a text"],
  ["fail", { match: "/", with: {} }, "with needs a status, or a kind of reset,"],
  ["fail", { match: "/", with: { kind: "meanwhile" } }, "with needs a status, or a kind of reset,"],
  ["fail", { match: "/", with: { kind: "delay" } }, "delay needs ms"],
  ["fail", { match: "/", with: { kind: "failAfter" } }, "failAfter needs a status"],
  ["fail", { match: "/", with: { status: "500" } }, "status, ms and share must be numbers"],
  ["fail", { match: "/", with: { kind: "part" } }, "part needs a share"],
  ["fail", { match: "/", with: { kind: "headers" } }, "headers needs headers"],
  ["narrow", { userId: 1, sight: "half" }, "sight must be one of everything, own, nothing"],
  ["set-participants", { dealId: 1, personIds: ["x"] }, "personIds must be a list of whole numbers"],
  ["other-apps-spend", { tokens: "all" }, "tokens must be a whole number"],
  ["fail", { pattern: "(", with: { status: 500 } }, "Invalid regular expression"],
])("%s %j is refused and changes nothing", async (name, body, message) => {
  const { status, body: answer } = await command(name, body);
  expect(status).toBe(400);
  expect(answer.error).toContain(message);
  expect(await statusOf("/api/v2/stages")).toBe(200);
});

test("a body that is not JSON, or says not so, is refused", async () => {
  const send = (type: string, body: string) =>
    request(`${address}/outage`, { method: "POST", headers: { "content-type": type }, body });
  expect((await send("text/plain", "x")).status).toBe(415);
  expect((await send("application/json", "{")).status).toBe(400);
  expect(await statusOf("/api/v2/stages")).toBe(200);
});

test("an unknown command answers with those there are", async () => {
  expect(await command("explode")).toMatchObject({
    status: 404,
    body: { error: "no such command", "POST /outage": expect.any(String) },
  });
});

test("the program takes the port of the commands as an argument", () => {
  expect(optionsFrom(["--control-port", "4710"]).controlPort).toBe(4_710);
  expect(optionsFrom([]).controlPort).toBeUndefined();
  expect(() => optionsFrom(["--control-port", "x"])).toThrow("--control-port");
});
