import { dealOrder, readDeals } from "../../src/briefing/lists/deal-list";
import { type DealFacts, isThresholdCode, LEAST_DAYS } from "../../src/briefing/quiet/facts";
import { judge } from "../../src/briefing/quiet/judge";
import { QuietSettings, type WishedSettings } from "../../src/briefing/quiet/quiet-settings";
import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { judgeByPresentRules, Rejudging } from "../../src/briefing/quiet/rejudging";
import { judgeDeals } from "../../src/briefing/quiet/stored-silence";
import type { Database } from "../../src/database/database";
import { DAY_MS } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { createTestDatabase, type TestDatabase } from "../support/database";
import fc from "../support/properties";
import { dealFacts, NOW } from "../support/quiet-facts";
import { COPY } from "../support/quiet-lines";
import { QuietRows } from "../support/quiet-rows";

const SETTINGS = process.env.DEEP ? 200 : 12;
const DEALS = 60;
const ALL = Array.from({ length: DEALS }, (_, index) => 1_000 + index);
const COPY_ID = 1;
const PIPELINES = 3;
const now = new Date(NOW);
const logger = createLogger("silent");
let database: TestDatabase;
let db: Database;
let tenantId: number;

beforeAll(async () => {
  database = await createTestDatabase();
  db = database.opened();
  tenantId = await database.tenantId("acme");
  const rows = new QuietRows(tenantId, COPY_ID, { ...COPY, readAt: NOW, asOf: NOW });
  const drawn = fc.sample(dealFacts, { numRuns: DEALS, seed: 15 });
  for (const [index, facts] of drawn.entries()) rows.deal(stored(facts, index), { notes: [], fields: [] });
  await rows.insert(database);
  await database.query("INSERT INTO connection (tenant_id, state, copy_id) VALUES ($1, 'CONNECTED', $2)", [
    tenantId,
    COPY_ID,
  ]);
  await database.query(
    "INSERT INTO pipeline (tenant_id, copy_id, crm_id, name, position) SELECT $1, $2, id, '', id FROM generate_series(1, $3::int) id",
    [tenantId, COPY_ID, PIPELINES],
  );
  await database.query(
    `UPDATE deal SET pipeline_id = crm_id % $1 + 1, value = crm_id % 7,
       currency = CASE crm_id % 4 WHEN 0 THEN NULL WHEN 1 THEN 'USD' ELSE 'EUR' END`,
    [PIPELINES],
  );
  await judgeByPresentRules(copy(), now);
});
afterAll(() => database.drop());

const stored = (facts: DealFacts, index: number): DealFacts => ({
  ...facts,
  dealId: 1_000 + index,
  hasMail: facts.contacts.some(({ kind }) => kind.endsWith("MAIL")),
  inStageSince: facts.inStageSince ?? facts.addedAt,
});
const copy = () => ({ ...db.tenant(tenantId), copyId: COPY_ID });
const olga = () => ({
  ...({ tenantId, tenant: "acme", userId: "olga", role: "owner", plan: "sales" } as const),
  email: null,
  name: null,
  expiresAt: new Date(NOW),
});
const stageIds = async () =>
  (await database.query<{ id: number }>("SELECT stage_id AS id FROM deal ORDER BY crm_id")).map(({ id }) => id);

const CODES = Object.keys(LEAST_DAYS).filter(isThresholdCode);
const threshold = (stages: readonly number[]) =>
  fc
    .record({
      scope: fc.constantFrom("ALL" as const, "PIPELINE" as const, "STAGE" as const),
      pipeline: fc.integer({ min: 1, max: PIPELINES }),
      stage: fc.constantFrom(...stages),
      code: fc.constantFrom(...CODES),
      days: fc.oneof(fc.integer({ min: 1, max: 45 }), fc.constantFrom(1, 3_650)),
    })
    .map(({ scope, pipeline, stage, code, days }) => {
      const crmId = { ALL: 0, PIPELINE: pipeline, STAGE: stage }[scope];
      return { scope, crmId, code, days };
    });
const settings = (stages: readonly number[]): fc.Arbitrary<WishedSettings> =>
  fc.record({
    thresholds: fc.uniqueArray(threshold(stages), {
      maxLength: 12,
      selector: ({ scope, crmId, code }) => `${scope} ${crmId} ${code}`,
    }),
    businessDays: fc.boolean(),
    twoWayTypes: fc.subarray(["demo", "email"]),
    timeZone: fc.option(fc.constantFrom("Europe/Tallinn", "America/Santiago", "Pacific/Auckland")),
  });

/** Snoozes every second deal a while ago; where the buyer has been heard of since, that has ended. */
async function snoozeSome(): Promise<void> {
  const snoozed = "snoozed_at = $1, snoozed_until = $2, snooze_ends_at = $2, snooze_reason = '', snoozed_by = ''";
  const times = [new Date(NOW - 5 * DAY_MS), new Date(NOW + 20 * DAY_MS)];
  await database.query(`UPDATE deal SET ${snoozed} WHERE crm_id % 2 = 0`, times);
  await db.tenant(tenantId).transaction((scope) => judgeDeals({ ...scope, copyId: COPY_ID }, ALL, now));
}

/** The board's deals by value, of lists, and of deals one by one. */
async function board(): Promise<number[]> {
  const filter = { verdict: ["QUIET", "GHOSTED"] as const, snoozed: false };
  const order = dealOrder("VALUE_DESC", filter);
  const { rows } = await readDeals(copy(), filter, { first: 100, after: null, order }, now);
  const listed = rows.map(({ crmId }) => crmId);
  const found = await readQuietFacts(copy(), ALL, now);
  if (!found) throw new Error("no deal is there");
  const awake = found.deals.filter(({ snooze }) => snooze === null);
  const quiet = awake.filter((facts) => ["QUIET", "GHOSTED"].includes(judge(facts, found.copy, now).verdict));
  expect(quiet.map(({ dealId }) => dealId).sort()).toEqual([...listed].sort());
  return listed;
}

test("what the preview says is what the board shows after saving, whatever the settings; the most valuable come first", async () => {
  const quiet = new QuietSettings(db, () => now, logger);
  const rejudging = new Rejudging(db, () => now, logger);
  const changes = { become: 0, stop: 0 };
  const draw = settings(await stageIds());
  await fc.assert(
    fc.asyncProperty(draw, async (input) => {
      await snoozeSome();
      const before = await board();
      const preview = await quiet.preview(olga(), copy(), input);
      if (!preview.ok) throw new Error(preview.message);
      expect(await quiet.set(olga(), { copyId: COPY_ID, version: null }, input)).toMatchObject({ ok: true });
      expect(await board()).toEqual(before);
      await rejudging.run({ tenantId, copyId: COPY_ID }, new AbortController().signal);
      const after = await board();
      const become = after.filter((id) => !before.includes(id));
      const stop = before.filter((id) => !after.includes(id));
      const { becomeQuiet, stopBeingQuiet, dealIds } = preview.value;
      expect({ becomeQuiet, stopBeingQuiet }).toEqual({ becomeQuiet: become.length, stopBeingQuiet: stop.length });
      const everyDeal = await readDeals(
        copy(),
        {},
        { first: 100, after: null, order: dealOrder("VALUE_DESC", {}) },
        now,
      );
      const changed = everyDeal.rows.map(({ crmId }) => crmId).filter((id) => become.includes(id) || stop.includes(id));
      expect(dealIds).toEqual(changed.slice(0, 50));
      changes.become += become.length;
      changes.stop += stop.length;
    }),
    { numRuns: SETTINGS, endOnFailure: true },
  );
  expect(Math.min(changes.become, changes.stop)).toBeGreaterThan(SETTINGS / 2);
});

test("on a copy that is too old to judge by, no settings change the board", async () => {
  const quiet = new QuietSettings(db, () => new Date(NOW + 90_000_000), logger);
  const input = { timeZone: null, businessDays: false, twoWayTypes: [], thresholds: [] };
  const thresholds = [{ scope: "ALL" as const, crmId: 0, code: "NO_RECENT_ACTIVITY" as const, days: 1 }];
  expect(await quiet.preview(olga(), copy(), { ...input, thresholds })).toMatchObject({
    value: { becomeQuiet: 0, stopBeingQuiet: 0, dealIds: [] },
  });
});
