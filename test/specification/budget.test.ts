import { pino } from "pino";
import type { Fault, Simulator } from "../../simulator";
import { Budget } from "../../src/connections/budget";
import type { Purpose } from "../../src/connections/budget-rules";
import { CrmError } from "../../src/crm/errors";
import { isCustomFieldKey } from "../../src/crm/parsing/fields";
import { HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import type { Config } from "../../src/platform/config";
import { RunLostError } from "../../src/sync/failures";
import { readUntilLow, refusalOf, type Spender, startSpender } from "../support/budgets";
import type { TestDatabase } from "../support/database";
import { collectGarbage } from "../support/garbage";
import { startProgram } from "../support/processes";
import type { SpenderReport } from "../support/programs/budget-spender";
import { environmentFor, type Service } from "../support/service";
import { connect, dataOf } from "../support/stories";
import { copyOf } from "../support/tokens";
import { World } from "../support/world";

// Seen red with each of: a batch for each of the callers; companies told apart by tenants; a row stored whatever others
// did; what was not sent counted as spent; tokens in hand forgotten with a row that others changed; a look each time; a refused call that renews its token first; a 429 not heard.

/** A quarter of it is 2,000 tokens, of which 48 are kept for looks. */
const DAILY = 8_000;
const PAGE = 10;
/** Pages that each of the programs' reservations pays at once. */
const LANES = 4;

let now: Date;
let world: World;
let simulator: Simulator;
let database: TestDatabase;
let service: Service;
let config: Config;
let copies: { tenantId: number; copyId: number }[];
let spenders: Spender[];

const later = (ms: number) => {
  now = new Date(now.getTime() + ms);
};
const ours = () => simulator.control.ledger().ours;
const row = async () => (await database.query("SELECT * FROM crm_budget"))[0] as Record<string, unknown>;

beforeEach(async () => {
  now = new Date();
  // An assumed day of the CRM ends at midnight, and no test is to begin so late in it that it goes on in the next.
  if (now.getUTCHours() >= 18) later(-6 * HOUR_MS);
  const clock = () => now;
  world = await World.start({ deals: 10, dailyTokens: DAILY, clock });
  ({ simulator, database, config } = world);
  service = await world.startService({ roles: ["api"] });
  copies = [];
  for (const tenant of ["acme", "globex"]) {
    await connect(service, simulator, { tenant });
    copies.push({ tenantId: await database.tenantId(tenant), copyId: await copyOf(database, tenant) });
  }
  spenders = await Promise.all(copies.map((copy) => startSpender(config, copy, clock)));
  world.cleanup(() => Promise.all(spenders.map((spender) => spender.stop())));
});
afterEach(() => world.stop());

/** Calls of the first or the second tenant's process. */
const calls = (which: number, purpose: Purpose = "LISTS", mayBegin?: () => void) =>
  (spenders[which] as Spender).api(purpose, mayBegin);

test("two tenants of one company have one allowance together, and what was set aside and not spent goes back", async () => {
  const before = ours();
  const [acme, globex] = [calls(0), calls(1)];
  expect(await readUntilLow(acme.api, 4, 50)).toBeLessThan(54);
  expect((await row()).spent_on_syncs).toBe(600);
  await acme.reservation.release();
  const spent = ours() - before;
  expect((await row()).spent_on_syncs).toBe(spent);
  await readUntilLow(globex.api, 4);
  expect(ours() - before).toBe(1_950);
  const refusal = await refusalOf(acme.api.persons({ cursor: null }));
  const retryAt = new Date(now.getTime() + HOUR_MS);
  expect(refusal).toMatchObject({ code: "BUDGET_LOW", detail: { neverSent: true }, retryAt });
  expect(ours() - before).toBe(1_950);
});

test("calls that are announced are paid for together, as far as the allowance goes, and what they do not cost goes back", async () => {
  const { api, reservation } = calls(0);
  const before = ours();
  const read = async (pages: number) => {
    for (let page = 0; page < pages; page += 1) await api.persons({ cursor: null });
    return (await row()).spent_on_syncs;
  };
  reservation.expect?.(25 * PAGE);
  expect(await read(1)).toBe(250);
  expect(await read(24)).toBe(250);
  expect(await read(1)).toBe(350);
  reservation.expect?.(500 * PAGE);
  expect(await read(9)).toBe(350);
  expect(await read(1)).toBe(600);
  expect(await read(150)).toBe(1_952);
  await reservation.release();
  expect((await row()).spent_on_syncs).toBe(ours() - before);
});

test("below a tenth of the limit, whoever spent it, one look an hour is taken by all processes together; writes and meetings go on", async () => {
  const [acme, globex] = [calls(0), calls(1)];
  await acme.api.persons({ cursor: null });
  simulator.control.otherAppsSpend(7_200);
  // This one tells.
  await acme.api.persons({ cursor: null });
  expect(simulator.control.balance()).toBeLessThan(800);
  simulator.log.clear();
  for (let minutes = 0; minutes < 180; minutes += 10) {
    for (const { api } of [acme, globex]) expect(await refusalOf(api.persons({ cursor: null }))).not.toBeNull();
    for (const spender of spenders) await refusalOf(spender.look());
    later(10 * MINUTE_MS);
  }
  expect(
    simulator.log
      .all()
      .filter(({ path }) => path.startsWith("/api"))
      .map(({ path }) => path),
  ).toEqual(["/api/v1/users/me", "/api/v1/users/me", "/api/v1/users/me"]);
  await calls(0, "MEETINGS").api.deals({ cursor: null, ids: [1] });
  await calls(1, "WRITES").api.fields("DEAL");
  expect(await row()).toMatchObject({ spent_on_meetings: 100, spent_on_writes: PAGE });
});

test("the day's end is seen by the balance that jumps up, and syncs go on; a purchase is none", async () => {
  const { api, reservation } = calls(0);
  await readUntilLow(api, 1);
  await reservation.release();
  expect(await row()).toMatchObject({ daily_limit: DAILY, spent_on_syncs: 1_950 });
  simulator.control.buyTokens(4_000);
  later(HOUR_MS);
  await api.currentUser();
  await reservation.release();
  expect(await row()).toMatchObject({ daily_limit: 12_000, reset_seen: false, spent_on_syncs: 1_952 });
  await readUntilLow(api, 1);
  await reservation.release();
  expect((await row()).spent_on_syncs).toBe(2_952);
  simulator.control.endDay();
  later(HOUR_MS);
  await api.currentUser();
  await reservation.release();
  expect(await row()).toMatchObject({ reset_seen: true, day_began_at: now, spent_on_syncs: 2 });
  await api.persons({ cursor: null });
});

// Seen red: the row is of the present day alone, so that nobody could say what a day of last week had been spent on.
test("what a day was spent on is said in the log as the next one begins, by one of the processes", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const parts = { database: database.opened(), clock: () => now, logger, share: 0.25 };
  const budgets = [new Budget(parts), new Budget(parts)];
  const spend = async () => {
    for (const [at, budget] of budgets.entries()) {
      const { tenantId, copyId } = copies[at] ?? { tenantId: 0, copyId: 0 };
      for (const purpose of ["LISTS", "WRITES"] as const) {
        const reservation = budget.reservation(tenantId, copyId, purpose);
        await reservation.spend(PAGE);
        await reservation.release();
      }
    }
  };
  await spend();
  expect(lines).toEqual([]);
  const { spent_on_syncs: spentOnSyncs, spent_on_writes: spentOnWrites } = await row();
  later(25 * HOUR_MS);
  await spend();
  expect(lines).toMatchObject([
    {
      ...{ level: 30, msg: "a company's day of tokens is over", companyId: simulator.company.id },
      ...{ spentOnSyncs, spentOnMeetings: 0, spentOnWrites },
    },
  ]);
  expect(spentOnWrites).toBe(2 * PAGE);
});

test("where the CRM tells nothing, the smallest plan and days of our own are assumed", async () => {
  simulator.control.budgetHeaders("off");
  simulator.control.buyTokens(50_000);
  const { api, reservation } = calls(0);
  const before = ours();
  await readUntilLow(api, 4);
  await reservation.release();
  expect(ours() - before).toBe(7_450);
  expect(await row()).toMatchObject({ daily_limit: null, remaining: null, spent_on_syncs: 7_450 });
  later(23 * HOUR_MS);
  expect(await refusalOf(api.persons({ cursor: null }))).not.toBeNull();
  later(HOUR_MS);
  await api.persons({ cursor: null });
  expect((await row()).spent_on_syncs).toBe(100);
});

test("after a 429 of the day nothing but writes is sent until a look is answered", async () => {
  const { api } = calls(0);
  await api.persons({ cursor: null });
  simulator.control.otherAppsSpend(DAILY);
  await expect(api.persons({ cursor: null })).rejects.toMatchObject({ code: "RATE_LIMITED" });
  const before = simulator.log.all().length;
  expect(await refusalOf(api.persons({ cursor: null }))).not.toBeNull();
  expect(await refusalOf(api.currentUser())).not.toBeNull();
  expect(await refusalOf(calls(1, "MEETINGS").api.deals({ cursor: null, ids: [1] }))).not.toBeNull();
  expect(simulator.log.all()).toHaveLength(before);
  await expect(calls(1, "WRITES").api.fields("DEAL")).rejects.toMatchObject({ code: "RATE_LIMITED" });
  simulator.control.endDay();
  later(HOUR_MS);
  await api.currentUser();
  await api.persons({ cursor: null });
});

const LINE = { status: 429, body: "error code: 1015", contentType: "text/plain; charset=UTF-8" };
const IN_JSON = { success: false, error: "Request over limit" };

// Seen red: nothing but writes was sent until a look was answered.
test.each<[string, Fault]>([
  ["a page", { kind: "html", status: 429 }],
  ["a line of text", LINE],
  ["nothing", { ...LINE, body: "" }],
])("a 429 with %s is a proxy's, and none of the company's day", async (_, fault) => {
  const [acme, globex] = [calls(0).api, calls(1, "MEETINGS").api];
  simulator.control.fail({ match: "/api/v2/persons", times: 1, with: fault });
  await expect(acme.persons({ cursor: null })).rejects.toMatchObject({ code: "RATE_LIMITED" });
  await acme.persons({ cursor: null });
  await globex.deals({ cursor: null, ids: [1] });
  expect(await row()).toMatchObject({ limited_at: null });
});

test.each<[string, Fault]>([
  ["JSON", { status: 429, body: IN_JSON }],
  ["JSON as text", { ...LINE, body: JSON.stringify(IN_JSON) }],
  ["text and the window's headers", { ...LINE, headers: { "x-ratelimit-remaining": "37" } }],
  ["text and the day's headers", { ...LINE, headers: { "x-daily-ratelimit-token-remaining": "0" } }],
])("a 429 with %s is the CRM's, of the day", async (_, fault) => {
  const { api } = calls(0);
  simulator.control.fail({ match: "/api/v2/persons", times: 1, with: fault });
  await expect(api.persons({ cursor: null })).rejects.toMatchObject({ code: "RATE_LIMITED" });
  expect(await refusalOf(api.persons({ cursor: null }))).not.toBeNull();
});

// Planted and seen red: a note, or the list of users, paid with a tenth of what it costs.
test("each call is paid with what the CRM takes for it", async () => {
  const { api, reservation } = calls(0);
  const before = ours();
  const on = { entity: "DEAL", id: simulator.company.stories.singleDeal.dealId } as const;
  const page = { cursor: null };
  await api.currentUser();
  await api.users();
  const lists = ["pipelines", "stages", "organizations", "persons", "deals", "activities", "notes"] as const;
  for (const list of lists) await api[list](page);
  await api.participantIds(on.id, null);
  await api.createNote(on, "<p>Ours</p>");
  await api.fields(on.entity);
  const key = simulator.control.addCustomField("deal", { name: "Summary", type: "text" });
  if (!isCustomFieldKey(key)) throw new Error(`${key} is no key`);
  await api.setCustomFields(on.entity, on.id, [{ key, value: "ours" }]);
  await api.customFieldsOf(on.entity, on.id);
  await reservation.release();
  expect((await row()).spent_on_syncs).toBe(ours() - before);
});

// Planted and seen red: one whose answer was lost went back, and the company's tokens were spent beyond the share.
test("a request that was not sent costs nothing, one whose answer is lost its price, and a repeat after 401 its price again", async () => {
  const { api, reservation } = calls(0);
  const fails = (fault: Fault) => simulator.control.fail({ match: "/api/v2/persons", times: 1, with: fault });
  fails({ status: 401 });
  await api.persons({ cursor: null });
  fails({ kind: "reset" });
  await expect(api.persons({ cursor: null })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  await reservation.release();
  const { spent_on_syncs } = await row();
  expect(spent_on_syncs).toBe(3 * PAGE);
  const unreached = new CrmError("UNAVAILABLE", "no connection came about", { neverSent: true });
  for (const purpose of ["LISTS", "WRITES"] as const)
    for (const error of [new RunLostError("the run is another's"), unreached]) {
      const stopped = calls(1, purpose, () => {
        throw error;
      });
      await expect(stopped.api.persons({ cursor: null })).rejects.toBe(error);
      await stopped.reservation.release();
    }
  expect(await row()).toMatchObject({ spent_on_syncs: 3 * PAGE, spent_on_writes: 0 });
});

test("while a row that another process has changed is read anew, tokens in hand stay in hand", async () => {
  const [held, other] = [calls(0).reservation, calls(0).reservation];
  const isHeld = async () => (await held.spend(PAGE)).unsent();
  await isHeld();
  later(1);
  for (let round = 0; round < 20; round += 1) {
    await database.query("UPDATE crm_budget SET revision = revision + 1");
    let isReading = true;
    const asked = other.release().then(() => other.spend(PAGE));
    const ended = asked.then((payment) => {
      payment.unsent();
      isReading = false;
    });
    // In every turn of the event loop, that of the reading among them.
    while (isReading) {
      await isHeld();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await ended;
  }
  expect(await row()).toMatchObject({ spent_on_syncs: 2 * 100 });
  await Promise.all([held.release(), other.release()]);
  expect(await row()).toMatchObject({ spent_on_syncs: 0 });
});

test("four processes of two tenants each spend at once, one is killed: never above the allowance, and at most its batches are lost", async () => {
  const ofPrograms = { DATABASE_URL: database.url.reveal(), COPIES: JSON.stringify(copies) };
  const environment = { ...environmentFor(simulator), ...ofPrograms };
  const programs = Array.from({ length: 4 }, () =>
    startProgram("test/support/programs/budget-spender.js", environment),
  );
  await Promise.all(programs.map((program) => program.says(/ready/)));
  const before = ours();
  for (const { child } of programs) child.kill("SIGUSR2");
  const [victim, ...others] = programs;
  while (ours() - before < 600) await new Promise((resolve) => setTimeout(resolve, 5));
  victim?.child.kill("SIGKILL");
  const reports = await Promise.all(
    others.map(async (program): Promise<SpenderReport> => JSON.parse((await program.says(/^\{.*\}$/m))[0])),
  );
  const spent = ours() - before;
  expect(spent).toBeLessThanOrEqual(1_952);
  expect(reports.reduce((sum, { pages }) => sum + pages * PAGE, 0)).toBeLessThanOrEqual(spent);
  const counted = Number((await row()).spent_on_syncs);
  expect(counted).toBeLessThanOrEqual(1_952);
  // Of the killed one two reservations are lost: of each a batch that was set aside at that moment, and what its callers had
  // taken of the one before and not sent yet. What the others had in hand was given back: each of their callers had ended.
  expect(counted - spent).toBeGreaterThanOrEqual(0);
  expect(counted - spent).toBeLessThanOrEqual(2 * (100 + LANES * PAGE));
  expect(await Promise.all(others.map(({ ended }) => ended))).toEqual([0, 0, 0]);
});

test("the connection shows what is known, and nothing before anything is", async () => {
  const ask = async () =>
    dataOf(
      await service.ask<{ connection: { budget: object | null } }>(
        "{ connection { budget { limit remaining spentToday allowance resetsAt } } }",
        {},
        { tenant: "acme" },
      ),
    ).connection.budget;
  expect(await ask()).toBeNull();
  const { api, reservation } = calls(1);
  const left = simulator.control.balance();
  await api.persons({ cursor: null });
  await reservation.release();
  const shown = { limit: DAILY, remaining: left - PAGE, spentToday: PAGE, allowance: 2_000, resetsAt: null };
  expect(await ask()).toEqual(shown);
  simulator.control.otherAppsSpend(3_000);
  await api.persons({ cursor: null });
  later(MINUTE_MS);
  simulator.control.endDay();
  await api.persons({ cursor: null });
  await reservation.release();
  const resetsAt = new Date(now.getTime() + 24 * HOUR_MS).toISOString();
  expect(await ask()).toEqual({ ...shown, remaining: DAILY - PAGE, resetsAt });
});

// Seen red with the answer told as it came.
test("an answer that is counted and not stored yet keeps none of its records", async () => {
  const { reservation } = calls(0);
  const counted = async () => {
    const told = { status: 200, limit: { remaining: null, reset: null }, day: { limit: DAILY, remaining: DAILY } };
    const answer = { ...told, body: Buffer.from("records") };
    (await reservation.spend(PAGE)).answered(answer);
    return new WeakRef(answer);
  };
  const counts = [await counted(), await counted()];
  await new Promise((resolve) => setTimeout(resolve, 0));
  collectGarbage();
  expect(counts.map((answer) => answer.deref())).toEqual([undefined, undefined]);
});
