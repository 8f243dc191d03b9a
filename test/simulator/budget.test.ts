import type { Fault, Simulator } from "../../simulator";
import { operations } from "../../simulator/api/operations";
import { optionsFrom } from "../../simulator/arguments";
import { settingsFrom } from "../../simulator/model/options";
import { Tallies } from "../../simulator/model/tallies";
import { Texts } from "../../simulator/model/texts";
import { Views } from "../../simulator/model/views";
import { seedCompany } from "../../simulator/seed/seed-company";
import { type Client, connect, refresh, START, start, stopAll, TestClock } from "./client";

afterEach(stopAll);

const over = { status: 429, body: { success: false, error: "Request over limit" } };
const LIMIT = "x-daily-ratelimit-token-limit";
const REMAINING = "x-daily-ratelimit-token-remaining";

async function begin(options: Parameters<typeof start>[0]): Promise<{ simulator: Simulator; client: Client }> {
  const simulator = await start(options);
  return { simulator, client: await connect(simulator) };
}

/** As the CRM's reference gives them, operation by operation. */
const prices = {
  "GET /api/v1/users/me": 2,
  "GET /api/v1/users": 20,
  "GET /api/v1/users/:id": 2,
  "GET /api/v1/notes": 20,
  "GET /api/v1/notes/:id": 2,
  "POST /api/v1/notes": 10,
  "GET /api/v1/deals/:id/participants": 10,
  "GET /api/v2/deals": 10,
  "GET /api/v2/deals/archived": 20,
  "GET /api/v2/deals/:id": 1,
  "PATCH /api/v2/deals/:id": 5,
  "GET /api/v2/persons": 10,
  "GET /api/v2/persons/:id": 1,
  "PATCH /api/v2/persons/:id": 5,
  "GET /api/v2/organizations": 10,
  "GET /api/v2/organizations/:id": 1,
  "PATCH /api/v2/organizations/:id": 5,
  "GET /api/v2/activities": 10,
  "GET /api/v2/activities/:id": 1,
  "GET /api/v2/pipelines": 5,
  "GET /api/v2/pipelines/:id": 1,
  "GET /api/v2/stages": 5,
  "GET /api/v2/stages/:id": 1,
  "GET /api/v2/dealFields": 10,
  "GET /api/v2/dealFields/:code": 1,
  "GET /api/v2/personFields": 10,
  "GET /api/v2/personFields/:code": 1,
  "GET /api/v2/organizationFields": 10,
  "GET /api/v2/organizationFields/:code": 1,
};

test("every operation has the price of the CRM's reference", () => {
  const rules = settingsFrom({ deals: 10, now: () => START });
  const company = seedCompany({ ...rules, now: START });
  const texts = new Texts(company, new Tallies(company));
  const world = { company, views: new Views(company), texts, now: rules.now, rules, changed: () => {} };
  const costs = operations(world).map(({ method = "GET", path, cost }) => [`${method} ${path}`, cost]);
  expect(Object.fromEntries(costs)).toEqual(prices);
});

test("what the wire takes is in the ledger by operation, and the log tells each call's price and the balance before it", async () => {
  const { simulator, client } = await begin({ dailyTokens: 1_000 });
  const { dealId } = simulator.company.stories.singleDeal;
  const mark = simulator.control.ledger();
  for (const id of [dealId, dealId + 1, dealId + 2]) await client.get(`/v1/deals/${id}/participants`);
  await client.get("/api/v2/deals?limit=500");
  await client.get("/api/v2/deals?sort_by=nothing");
  await client.get("/api/v2/persons/999999");
  await refresh(simulator, client.refreshToken);
  expect(simulator.control.ledger(mark)).toEqual({
    ours: 51,
    others: 0,
    refused: 0,
    operations: {
      "GET /api/v1/deals/:id/participants": { requests: 3, tokens: 30 },
      "GET /api/v2/deals": { requests: 2, tokens: 20 },
      "GET /api/v2/persons/:id": { requests: 1, tokens: 1 },
      "POST /oauth/token": { requests: 1, tokens: 0 },
    },
  });
  expect(simulator.log.of("GET", "/api/v2").map(({ tokens, balance }) => [tokens, balance])).toEqual([
    [10, 970],
    [10, 960],
    [1, 950],
  ]);
  expect(simulator.control.balance()).toBe(949);
});

// Seen red: what a fault refused in the CRM's place was free, and so were days of asking in vain.
test("a refusal and a failure that a fault gives cost the operation's price, and a page of a proxy, a limit or a token's refusal nothing", async () => {
  const { simulator, client } = await begin({ dailyTokens: 1_000 });
  const costOf = async (fault: Fault) => {
    const mark = simulator.control.ledger();
    const end = simulator.control.fail({ match: "/api/v1/notes", with: fault });
    await client.get("/api/v1/notes");
    end();
    return simulator.control.ledger(mark).ours;
  };
  const paid: Fault[] = [...[400, 403, 404, 500, 503].map((status) => ({ status })), { kind: "forbidden" }];
  const free: Fault[] = [...[401, 402, 429].map((status) => ({ status })), { kind: "html" }, { kind: "throttle" }];
  for (const fault of paid) expect([fault, await costOf(fault)]).toEqual([fault, 20]);
  for (const fault of free) expect([fault, await costOf(fault)]).toEqual([fault, 0]);
  expect(simulator.control.balance()).toBe(1_000 - 20 * paid.length);
});

test("an unknown token, a limit and an unknown address cost nothing, and are counted where they were asked", async () => {
  const { simulator, client } = await begin({ dailyTokens: 100 });
  const mark = simulator.control.ledger();
  simulator.control.fail({ match: "/api/v2/stages", times: 1, with: { kind: "throttle" } });
  expect((await client.get("/api/v2/stages")).status).toBe(429);
  expect((await client.get("/api/v2/products")).status).toBe(404);
  simulator.control.revoke(simulator.company.stories.singleDeal.ownerId);
  expect((await client.get("/api/v2/stages")).status).toBe(401);
  expect(simulator.control.ledger(mark)).toMatchObject({
    ours: 0,
    operations: { "GET /api/v2/stages": { requests: 2, tokens: 0 } },
  });
  expect(simulator.control.balance()).toBe(100);
});

test("other apps spend what is left; a write that cannot be paid is refused without effect until the day ends on command", async () => {
  const { simulator, client } = await begin({ dailyTokens: 30_000 });
  const { dealId } = simulator.company.stories.singleDeal;
  const note = () => client.send("POST", "/api/v1/notes", { content: "of today", deal_id: dealId });
  expect(simulator.control.otherAppsSpend(29_991)).toBe(29_991);
  expect(await note()).toMatchObject(over);
  // A day that is over is over for cheaper calls as well.
  expect(await client.get("/api/v1/users/me")).toMatchObject(over);
  expect(simulator.control.notesOf("deal", dealId).filter(({ content }) => content === "of today")).toEqual([]);
  expect(simulator.control.ledger()).toMatchObject({ ours: 0, others: 29_991, refused: 2 });
  expect(simulator.control.otherAppsSpend(5)).toBe(0);
  simulator.control.endDay();
  expect((await note()).status).toBe(201);
  expect(simulator.control.balance()).toBe(29_990);
});

test("the day ends by itself at the second of the day that it was given, or never", async () => {
  const clock = new TestClock();
  const at = async (dayEndsAt: number | null) => {
    const simulator = await start({ now: clock.now, dailyTokens: 1_000, dayEndsAt });
    simulator.control.otherAppsSpend(1_000);
    return simulator.control;
  };
  // The clock stands at ten in the morning.
  const [midnight, eleven, never] = [await at(0), await at(11 * 3_600), await at(null)];
  const balances = () => [midnight, eleven, never].map((control) => control.balance());
  expect(balances()).toEqual([0, 0, 0]);
  clock.advance(3_600);
  expect(balances()).toEqual([0, 1_000, 0]);
  clock.advance(13 * 3_600);
  expect(balances()).toEqual([1_000, 1_000, 0]);
  never.advance(90 * 86_400);
  expect(never.balance()).toBe(0);
});

test("what a day cost is told when it is over, without what the next day asked already", async () => {
  const clock = new TestClock();
  const simulator = await start({ now: clock.now, dailyTokens: 1_000, dayEndsAt: 0 });
  const stages = "GET /api/v2/stages";
  const costs = async (requests: number) => {
    const client = await connect(simulator);
    for (let request = 0; request < requests; request += 1) await client.get("/api/v2/stages");
    const { ours, operations } = simulator.control.ledgerOfDayBefore();
    return [ours, operations[stages]?.requests ?? 0];
  };
  expect(await costs(2)).toEqual([0, 0]);
  clock.advance(86_400);
  expect(await costs(3)).toEqual([10, 2]);
  clock.advance(86_400);
  expect(await costs(0)).toEqual([15, 3]);
  clock.advance(2 * 86_400);
  expect(await costs(1)).toEqual([0, 0]);
});

test("headers of the budget can be switched off; the limit stands all the same", async () => {
  const { simulator, client } = await begin({ dailyTokens: 15 });
  const told = async () => {
    const { headers } = await client.get("/api/v2/stages");
    return [headers.get(LIMIT), headers.get(REMAINING), headers.has("x-ratelimit-remaining")];
  };
  expect(await told()).toEqual(["15", "15", true]);
  simulator.control.budgetHeaders("off");
  expect(await told()).toEqual([null, null, true]);
  simulator.control.budgetHeaders("on");
  expect(await told()).toEqual(["15", "5", true]);
  simulator.control.budgetHeaders("off");
  expect(await client.get("/api/v2/stages")).toMatchObject(over);
});

test("without an option the budget never runs out, and the headers are there", async () => {
  const { simulator, client } = await begin({});
  expect(simulator.control.otherAppsSpend(10_000_000)).toBe(10_000_000);
  const { status, headers } = await client.get("/api/v2/stages");
  expect([status, headers.get(LIMIT)]).toEqual([200, "2100000"]);
  expect(Number(headers.get(REMAINING))).toBeGreaterThan(1_000_000);
});

test("the clock moved on ages tokens and shows in the Date header", async () => {
  const { simulator, client } = await begin({});
  simulator.control.advance(86_400);
  expect((await client.get("/api/v1/users/me")).status).toBe(401);
  const later = await connect(simulator);
  const { headers } = await later.get("/api/v1/users/me");
  expect(headers.get("date")).toBe(new Date(START.getTime() + 86_400_000).toUTCString());
});

test("the program takes the day's tokens as an argument", () => {
  expect(optionsFrom(["--daily-tokens", "30000"]).dailyTokens).toBe(30_000);
  expect(optionsFrom([]).dailyTokens).toBeUndefined();
  expect(() => optionsFrom(["--daily-tokens", "many"])).toThrow("--daily-tokens");
});
