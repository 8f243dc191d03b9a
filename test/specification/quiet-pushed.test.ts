import { DAY_MS } from "../../src/platform/clock";
import {
  type JudgedDeal,
  previewQuiet,
  type QuietWorld,
  rejudged,
  type Settings,
  setQuiet,
  startQuietWorld,
} from "../support/quiet-settings";

// Seen red with moves earlier and days that were set counted as well, and with the tenant's own count left aside.

const AS = { tenant: "acme" };
const CODE = "CLOSE_DATE_PUSHED";
let world: QuietWorld;
let began: string;

beforeAll(async () => {
  world = await startQuietWorld();
  await world.startWorker();
  await world.tenantWithDeals(AS.tenant);
  began = today();
});
afterAll(() => world.stop());

const dealId = () => world.simulator.company.stories.singleDeal.dealId;
async function deal(): Promise<JudgedDeal> {
  const found = (await world.seen(AS)).deals.find(({ crmId }) => crmId === String(dealId()));
  if (!found) throw new Error("the deal is not there");
  return found;
}
const pushed = async () => (await deal()).quiet.reasons.filter(({ code }) => code === CODE);
async function moved(day: string | null): Promise<JudgedDeal["quiet"]["reasons"]> {
  world.simulator.control.change("deal", dealId(), { expected_close_date: day });
  await world.sync(AS);
  return pushed();
}
/** Other settings bring another generation, whatever they say. */
const schedules = async () => {
  const phases = await world.database.query(
    `SELECT s.* FROM deal_silence s JOIN judged_copy j USING (tenant_id, copy_id)
     WHERE s.generation = j.generation ORDER BY s.deal_id, s.phase`,
  );
  return phases.map(({ generation: _, ...phase }) => phase);
};
const today = () => world.clock().toISOString().slice(0, 10);

test("a close date that syncs saw moved later twice is a reason, in words that say what was seen; it changes no verdict", async () => {
  expect(await moved("2027-03-01")).toEqual([]);
  await world.database.query("DELETE FROM deal_change");
  const before = await schedules();
  expect(await moved("2027-04-01")).toEqual([]);
  const first = today();
  for (const other of ["2027-03-10", null, "2027-06-01"]) expect(await moved(other)).toEqual([]);
  expect(await moved("2028-01-01")).toEqual([
    {
      code: CODE,
      thresholdDays: null,
      message: `The expected close date was moved later 2 times since ${first}, as seen by the syncs since ${began}.`,
    },
  ]);
  expect((await moved("2028-01-01")).length).toBe(1);
  expect(await schedules()).toEqual(before.map((row) => ({ ...row, changed_at: expect.any(Date) })));
});

test("the count is the tenant's own for all deals, a pipeline or a stage; the preview says that the board stays", async () => {
  const { stage, pipeline } = await deal();
  const all = { code: CODE, days: 3 };
  const saved = async (...thresholds: NonNullable<Settings["thresholds"]>) => {
    expect(await previewQuiet(world.service, { thresholds }, AS)).toMatchObject({ becomeQuiet: 0, stopBeingQuiet: 0 });
    const before = await schedules();
    expect((await setQuiet(world.service, { thresholds }, AS)).settings?.thresholds.length).toBe(thresholds.length);
    await rejudged(world.service, AS);
    expect(await schedules()).toEqual(before);
    return (await pushed()).length;
  };
  expect(await saved(all)).toBe(0);
  expect(await saved(all, { code: CODE, days: 2, pipelineId: pipeline.id })).toBe(1);
  expect(await saved(all, { code: CODE, days: 1, stageId: stage.id })).toBe(1);
  expect(await saved({ code: CODE, days: 1 }, { code: CODE, days: 3, stageId: stage.id })).toBe(0);
  expect(await saved()).toBe(1);
});

test("what was seen more than 400 days ago does not count, though it was not swept yet", async () => {
  const age = (days: number) =>
    world.database.query(
      `UPDATE deal_change c SET seen_at = $1 WHERE c.id = (SELECT min(id) FROM deal_change WHERE kind = 'CLOSE_DATE')`,
      [new Date(world.clock().getTime() - days * DAY_MS)],
    );
  await age(399);
  expect((await pushed()).length).toBe(1);
  await age(401);
  expect(await pushed()).toEqual([]);
});
