import { Budget } from "../../src/connections/budget";
import { createLogger } from "../../src/platform/logger";
import { ENTITIES, type Entity, fieldOf, listPath, setMapping } from "../support/fields";
import type { Service } from "../support/service";
import { dataOf } from "../support/stories";
import { useCrm } from "../support/world";

// Seen red with: the CRM's lists of fields read at each question of an owner, also while the company's tokens are short.

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const passMinutes = (minutes: number) => {
  aheadMs += minutes * 60_000;
};
const { world, simulator, database } = useCrm({ deals: 10, clock });
let service: Service;
beforeAll(async () => {
  // Without a worker no list is read but for who asks.
  await (await world.startService({ connected: ["acme"] })).stop();
  service = await world.startService({ roles: ["api"] });
  simulator.control.budgetHeaders("off");
}, 120_000);
beforeEach(async () => {
  world.beginAnew();
  passMinutes(90);
  await ledger({ spent_on_writes: 0, remaining: 25_000, limited_at: null });
});

const ledger = ({ spent_on_writes, remaining, limited_at }: Record<string, unknown>) =>
  database.query(
    `UPDATE crm_budget SET daily_limit = 30000, day_began_at = $1, told_at = $1, limited_at = $2, remaining = $3,
       spent_on_writes = $4, revision = revision + 1`,
    [clock(), limited_at, remaining, spent_on_writes],
  );
const LISTS = "query ($entity: CrmEntity!) { connection { fields(entity: $entity) { key options { label } } } }";
type Lists = { connection: { fields: { key: string; options: { label: string }[] }[] } };
const look = async (entity: Entity = "DEAL", role = "owner") =>
  dataOf(await service.ask<Lists>(LISTS, { entity }, { role })).connection.fields;
const asked = () => simulator.log.of("GET", /Fields$/).length;

test("an owner's lists are read once a minute, however often they are asked for, and what is new is seen in the next", async () => {
  const { field_code, options } = fieldOf(simulator, "DEAL", "enum");
  const labels = async () => (await look()).find(({ key }) => key === field_code)?.options.map(({ label }) => label);
  for (let round = 0; round < 5; round += 1) for (const entity of ENTITIES) await look(entity);
  expect(asked()).toBe(3);
  const added = [...(options ?? []), { id: 9_001, label: "New" }];
  simulator.control.describeField("deal", field_code, { options: added });
  expect(await labels()).not.toContain("New");
  passMinutes(1);
  expect(await labels()).toContain("New");
  expect(asked()).toBe(4);
});

// Seen red: each reading for the one made that for the other old.
test("owners and members who ask in turns share a reading for a minute", async () => {
  for (let round = 0; round < 5; round += 1) for (const role of ["owner", "member", "admin"]) await look("DEAL", role);
  expect(asked()).toBe(1);
});

test("a list that was read to nominate a field, or by another process, is the owner's at once", async () => {
  await look();
  const key = simulator.control.addCustomField("deal", { name: "Mood", type: "enum", options: ["good"] });
  await setMapping(service, "DEAL", key);
  expect((await look()).map((field) => field.key)).toContain(key);
  expect(simulator.log.of("GET", listPath("DEAL"))).toHaveLength(3);
});

test.each([
  ["little is left for the company's other apps", { remaining: 2_900, spent_on_writes: 0, limited_at: null }],
  ["writes and lists have cost a tenth of the day", { remaining: 20_000, spent_on_writes: 3_000, limited_at: null }],
  ["the day is used up", { remaining: 0, spent_on_writes: 0, limited_at: new Date() }],
])("where %s, an owner's lists are as everybody's: an hour old, whichever process asks", async (_, state) => {
  await look();
  await setMapping(service, "DEAL", fieldOf(simulator, "DEAL", "enum").field_code);
  await ledger({ ...state, limited_at: state.limited_at && clock() });
  simulator.log.clear();
  for (let minute = 0; minute < 20; minute += 1) {
    passMinutes(2);
    await look();
    await look("DEAL", "member");
  }
  expect(asked()).toBeLessThanOrEqual(1);
});

test("polling costs a tenth of the day's tokens at most, and then a list an hour", async () => {
  await database.query("UPDATE crm_budget SET spent_on_writes = 2900, revision = revision + 1");
  for (let minute = 0; minute < 60; minute += 1) {
    passMinutes(1);
    await look();
  }
  expect(asked()).toBeLessThanOrEqual(12);
});

// Seen red: it threw, and whoever read a briefing met an error.
test("a copy that is purged before its company's tokens are looked at has none for its lists of fields, and is no error", async () => {
  const [db, logger] = [database.opened(), createLogger("silent")];
  const budget = new Budget({ database: db, clock, logger, share: 0.25 });
  expect(await budget.mayReadFields(await database.tenantId("acme"), 1, clock())).toBe(false);
});
