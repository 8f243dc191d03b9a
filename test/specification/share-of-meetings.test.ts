import { Budget } from "../../src/connections/budget";
import { DAY_MS, MINUTE_MS } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { Schedule } from "../../src/sync/schedule";
import { recordMeeting, until } from "../support/stories";
import { SyncWorld } from "../support/sync-world";

// Seen red: near a meeting each pass was paid from the meetings' share, and a run whose payer had no more failed; in each turn
// of a run its meetings were looked at again.

const SHARE = 3_000;
/** Three kinds of records and what is planned, four deals' participants at most, a page of activities and one of notes. */
const MOST_OF_A_MEETING = 40 + 40 + 30;

let world: SyncWorld;
const as = { tenant: "acme" };
beforeAll(async () => {
  world = await SyncWorld.start({ deals: 20, dailyTokens: 30_000 });
  world.fill("ACTIVITIES", 3_000);
  await world.connect(as);
  world.passMinutes(30);
  // An assumed day of the CRM ends at midnight, and what a test has spent is not to be forgotten within it.
  const now = world.time.ours();
  if (now.getUTCHours() >= 18) world.passMinutes(24 * 60 - now.getUTCHours() * 60 - now.getUTCMinutes());
});
afterAll(() => world.stop());

const spent = async () => {
  const [row] = await world.database.query<{ lists: number; meetings: number }>(
    "SELECT spent_on_syncs AS lists, spent_on_meetings AS meetings FROM crm_budget",
  );
  if (!row) throw new Error("no company is known");
  return row;
};

async function meetIn(minutes: number, input: object = {}): Promise<void> {
  const startsAt = new Date(Date.now() + world.time.aheadMs + minutes * MINUTE_MS).toISOString();
  await recordMeeting(world.api, [world.simulator.company.stories.singleDeal.email], { startsAt, ...input }, as);
}
async function meet(...minutes: number[]): Promise<void> {
  for (const ahead of minutes) await meetIn(ahead);
}

const unrefreshed = () => world.database.query("SELECT 1 FROM meeting WHERE refreshed_at IS NULL");
const looksByIds = () =>
  world.simulator.log.of("GET", /\/api\/v2\/(deals|persons|organizations)$/).filter(({ query }) => query.ids).length;

test("in a run of many turns what meetings are about is asked for once, and the long way is paid by the lists", async () => {
  await meet(4.6, 4.7, 4.8);
  const before = await spent();
  world.simulator.log.clear();
  const turnEnds = { kind: "meanwhile" as const, act: () => world.passMinutes(0.26) };
  const end = world.simulator.control.fail({ match: /activities$/, with: turnEnds });
  expect(await world.sync(as, "RECONCILE")).toMatchObject({ state: "SUCCEEDED" });
  end();
  const turns = world.simulator.log.of("GET", /users\/me$/).length;
  expect(turns).toBeGreaterThan(5);
  // Those of the round through all matched records are among them.
  expect(looksByIds()).toBeLessThanOrEqual(3 * 3 + 3);
  expect((await spent()).meetings - before.meetings).toBeLessThanOrEqual(3 * MOST_OF_A_MEETING);
  expect(await unrefreshed()).toEqual([]);
});

test.each([
  ["nothing", SHARE],
  ["a page and no more", SHARE - 40],
])("where %s is left of the meetings' share, the lists are read from their own", async (_left, meetings) => {
  world.passMinutes(30);
  await meet(4.8);
  const before = await spent();
  await world.database.query("UPDATE crm_budget SET spent_on_meetings = $1, revision = revision + 1", [meetings]);
  world.simulator.log.clear();
  expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED", error: null });
  expect(world.asked("ACTIVITIES").filter(({ query }) => !query.ids)).toHaveLength(1);
  const after = await spent();
  expect(after.meetings).toBeLessThanOrEqual(SHARE);
  expect(after.lists).toBeGreaterThan(before.lists);
});

// Seen red: the refresh of its activities and notes ended the trouble, though deals and persons grew older by hours.
test("while the lists wait for the company's tokens, a meeting that is brought up to date does not say that this is over", async () => {
  const { database, simulator, time } = world;
  const [db, clock, logger] = [database.opened(), time.ours, createLogger("silent")];
  const budget = new Budget({ database: db, clock, logger, share: 0.25 });
  const intervals = { intervalMs: 15 * MINUTE_MS, reconcileIntervalMs: 30 * DAY_MS };
  const schedule = new Schedule({ database: db, budget, clock, logger, ...intervals });
  const runEnds = async () => {
    simulator.log.clear();
    await schedule.due(await database.tenantId(as.tenant));
    return world.runEnds(as);
  };
  const trouble = async () => (await database.query("SELECT trouble_code AS code FROM connection"))[0];
  world.passMinutes(70);
  await database.query("UPDATE crm_budget SET spent_on_meetings = 0, revision = revision + 1");
  const others = () => simulator.control.otherAppsSpend(simulator.control.balance() - 2_000);
  simulator.control.fail({ match: /organizations$/, times: 1, with: { kind: "meanwhile", act: others } });
  expect(await world.sync(as)).toMatchObject({ state: "FAILED", error: { code: "BUDGET_LOW" } });
  // The look at the balance, one an hour.
  expect(await runEnds()).toMatchObject({ state: "FAILED" });
  world.passMinutes(10);
  await meet(4.8);
  expect(await runEnds()).toMatchObject({ state: "SUCCEEDED" });
  expect([world.asked("NOTES").length, world.asked("USERS").length]).toEqual([1, 0]);
  expect(await trouble()).toEqual({ code: "BUDGET_LOW" });
  simulator.control.endDay();
  world.passMinutes(61);
  expect(await runEnds()).toMatchObject({ state: "SUCCEEDED" });
  expect(world.asked("DEALS")).not.toEqual([]);
  expect(await trouble()).toEqual({ code: null });
});

// Seen red: the whole pass that went on had them read again after it.
test("beside a whole pass that goes on from an earlier run, what changed is read once", async () => {
  world.passMinutes(30);
  await world.database.query("UPDATE crm_budget SET spent_on_meetings = 0, revision = revision + 1");
  const where = (query: Record<string, unknown>) => !query.updated_since && query.cursor !== undefined;
  world.simulator.control.fail({ match: /activities$/, where, after: 1, with: { status: 500, body: {} } });
  expect(await world.sync(as, "RECONCILE")).toMatchObject({ state: "FAILED" });
  world.simulator.control.clearFaults();
  world.passMinutes(10);
  await meet(4.8);
  world.simulator.log.clear();
  expect(await world.sync(as)).toMatchObject({ state: "SUCCEEDED" });
  const changes = world.asked("ACTIVITIES").filter(({ query }) => query.updated_since);
  expect(changes).toHaveLength(1);
});

// Planted and seen red: it counted as brought up to date, and was not any more.
test("a meeting that is moved while it is brought up to date is still to be so before its new start", async () => {
  world.passMinutes(30);
  await world.database.query("UPDATE crm_budget SET spent_on_meetings = 0, revision = revision + 1");
  const moved = { externalId: "moved" };
  await meetIn(4.8, moved);
  world.simulator.log.clear();
  const release = world.simulator.control.fail({ match: "/api/v1/notes", times: 1, with: { kind: "hang" } });
  await world.request(as);
  await until("its notes are asked for", async () => world.asked("NOTES").length > 0);
  await meetIn(24 * 60, moved);
  release();
  await world.runEnds(as);
  const refreshed = "SELECT refreshed_at AS at FROM meeting WHERE external_id = 'moved'";
  expect(await world.database.query(refreshed)).toEqual([{ at: null }]);
});

// Planted and seen red: it came by when the company's day was over.
test("where the lists have spent their share of the day the schedule comes by hourly, for meetings recorded meanwhile", async () => {
  world.passMinutes(20);
  const at = world.time.ours();
  await world.database.query(
    `UPDATE crm_budget SET spent_on_syncs = 7500, reset_seen = true, day_began_at = $1, looked_at = $1, told_at = $1,
       daily_limit = 30000, remaining = 20000, revision = revision + 1`,
    [at],
  );
  await world.due(as, 15);
  const [next] = await world.database.query<{ at: Date }>("SELECT next_sync_at AS at FROM connection");
  expect(((next?.at.getTime() ?? 0) - at.getTime()) / MINUTE_MS).toBeCloseTo(60, 0);
});

/** Of a day that begins now. */
const isSpent = (lists: number, meetings: number, left = 20_000) =>
  world.database.query(
    `UPDATE crm_budget SET spent_on_syncs = $2, spent_on_meetings = $3, looked_at = $1, told_at = $1, day_began_at = $1,
       reset_seen = true, remaining = $4, revision = revision + 1`,
    [world.time.ours(), lists, meetings, left],
  );

// Planted and seen red: nobody was asked while the lists waited; and lists that could be read waited for who takes part in the deals.
test("where the lists have spent their share, who takes part in deals of meetings is asked all the same, and else with the lists", async () => {
  const { database, simulator } = world;
  const participants = () => simulator.log.of("GET", /participants$/).length;
  const { dealId } = simulator.company.stories.singleDeal;
  await meetIn(7 * 24 * 60);
  const dueWith = async (lists: number, meetings: number, isDue = true) => {
    world.passMinutes(20);
    await isSpent(lists, meetings);
    await database.query("UPDATE deal SET participants_due = $2 WHERE crm_id = $1", [dealId, isDue]);
    simulator.log.clear();
    await world.due(as, 15);
    return [participants() > 0, world.asked("DEALS").length > 0, simulator.log.all().length > 0];
  };
  expect(await dueWith(7_500, 0)).toEqual([true, false, true]);
  expect(await dueWith(7_500, 0, false)).toEqual([false, false, false]);
  expect(await dueWith(7_500, SHARE)).toEqual([false, false, false]);
  expect(await dueWith(0, 0)).toEqual([true, true, true]);
});

// Planted and seen red: it was paid like all others, and a new customer had nothing until the next day.
test("where the lists have spent their share, a first sync is paid from half of what is left", async () => {
  world.passMinutes(20);
  await isSpent(7_500, 0, world.simulator.control.balance());
  expect(await world.connect({ tenant: "globex" })).toMatchObject({ state: "SUCCEEDED", error: null });
});
