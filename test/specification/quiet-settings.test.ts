import type { Simulator } from "../../simulator";
import { DAY_MS } from "../../src/platform/clock";
import type { TestDatabase } from "../support/database";
import {
  type JudgedDeal,
  previewQuiet,
  type QuietWorld,
  quietSettings,
  rejudged,
  type Settings,
  setQuiet,
  startQuietWorld,
} from "../support/quiet-settings";
import type { Service } from "../support/service";
import { type Subscription, subscribe } from "../support/sockets";
import { dataOf, noJobIsDue, recordMeeting, until } from "../support/stories";

let world: QuietWorld;
let simulator: Simulator;
let database: TestDatabase;
let service: Service;
const MEMBER = { role: "member", sub: "mia" };

beforeAll(async () => {
  world = await startQuietWorld();
  ({ simulator, database, service } = world);
});
beforeEach(() => world.startWorker());
afterEach(() => world.stopWorker());
afterAll(() => world.stop());

const { tenantWithDeals, sync, seen, startWorker, stopWorker, clock } = {
  tenantWithDeals: (tenant: string) => world.tenantWithDeals(tenant),
  sync: (as: { tenant: string }) => world.sync(as),
  seen: (as: { tenant: string }) => world.seen(as),
  startWorker: () => world.startWorker(),
  stopWorker: () => world.stopWorker(),
  clock: () => world.clock(),
};

const daysOf = ({ quiet }: JudgedDeal, code = "NO_RECENT_ACTIVITY") =>
  quiet.reasons.find((reason) => reason.code === code)?.thresholdDays ?? null;

const audited = (tenant: string) =>
  database.query<{ user_id: string; was: string | null; became: string }>(
    `SELECT user_id, was, became FROM audit_event WHERE action = 'QUIET_SETTINGS_SET' AND tenant_id = (SELECT id FROM tenant WHERE external_id = $1) ORDER BY id`,
    [tenant],
  );

/** Deals that have schedules by what is coming. */
const comingDeals = async () =>
  (
    await database.query(
      `SELECT DISTINCT s.deal_id FROM deal_silence s JOIN judged_copy j USING (tenant_id, copy_id) WHERE s.generation > j.generation`,
    )
  ).length;

const watch = (as: { tenant: string }) =>
  subscribe<{ connectionStatusChanged: { state: string } }>(
    service.url,
    "subscription { connectionStatusChanged { state } }",
    { as: { ...as, role: "member" } },
  );
const isWatching = (watching: Subscription<unknown>) =>
  until("the present state has come", async () => watching.results.length > 0);

test("days for all deals, a pipeline and a stage: the most specific of the tenant's own, then the stage's, then the standard", async () => {
  const as = await tenantWithDeals("specific");
  const { stageId, dealId } = simulator.company.stories.singleDeal;
  const before = await seen(as);
  const deal = before.deals.find(({ crmId }) => crmId === String(dealId));
  if (!deal) throw new Error("the deal is not there");
  const standard = new Map(before.deals.map((one) => [one.crmId, daysOf(one)]));
  // That stage rots after ten days.
  expect(standard.get(deal.crmId)).toBe(10);
  simulator.control.change("stage", stageId, { is_deal_rot_enabled: true, days_to_rotten: 30 });
  await sync(as);
  const inStage = async () => {
    const { deals } = await seen(as);
    return { in: deals.filter((one) => one.stage.id === deal.stage.id).map((one) => daysOf(one)), deals };
  };
  expect((await inStage()).in).toContain(30);
  const code = "NO_RECENT_ACTIVITY";
  const steps: [Settings["thresholds"], number][] = [
    [[{ code, days: 20 }], 20],
    [
      [
        { code, days: 20 },
        { code, days: 21, pipelineId: deal.pipeline.id },
      ],
      21,
    ],
    [
      [
        { code, days: 20 },
        { code, days: 21, pipelineId: deal.pipeline.id },
        { code, days: 22, stageId: deal.stage.id },
      ],
      22,
    ],
    [[{ code: "GHOSTED", days: 39 }], 30],
  ];
  for (const [thresholds, days] of steps) {
    expect(await setQuiet(service, { thresholds }, as)).toHaveProperty("settings");
    await rejudged(service, as);
    const { in: found, deals } = await inStage();
    expect(new Set(found.filter((one) => one !== null))).toEqual(new Set([days]));
    const elsewhere = deals.filter((one) => one.stage.id !== deal.stage.id && one.pipeline.id !== deal.pipeline.id);
    const own = thresholds?.[0]?.code === code ? 20 : null;
    for (const one of elsewhere) expect([null, own ?? standard.get(one.crmId)]).toContain(daysOf(one));
  }
  expect((await quietSettings(service, as)).thresholds).toEqual([
    { scope: "ALL", pipeline: null, stage: null, code: "GHOSTED", days: 39 },
  ]);
  simulator.control.change("stage", stageId, { is_deal_rot_enabled: false, days_to_rotten: null });
});

// A cache that knows them by it is right at once; without it the settings of before were shown until they were read anew.
test("settings have one id, before they are set and after", async () => {
  const as = await tenantWithDeals("cached");
  const input = { thresholds: [], businessDays: true, twoWayActivityTypes: [] };
  const query = `mutation ($input: QuietSettingsInput!) { answer: setQuietSettings(input: $input) {
    ... on QuietSettingsSuccess { settings { __typename id businessDays } } } }`;
  const before = dataOf(
    await service.ask<{ quietSettings: { id: string } }>("{ quietSettings { __typename id businessDays } }", {}, as),
  ).quietSettings;
  const settings = { ...before, businessDays: true };
  expect(dataOf(await service.ask(query, { input }, as))).toEqual({ answer: { settings } });
  await rejudged(service, as);
  const refetch = "query ($id: ID!) { node(id: $id) { __typename id ... on QuietSettings { businessDays } } }";
  expect(dataOf(await service.ask(refetch, { id: before.id }, as))).toEqual({ node: settings });
});

// Seen red: it was judged by the stage's days of before, told as QUIET, and never told back.
test("a deal that moves into a stage whose days have come with the same sync is judged by them", async () => {
  const as = await tenantWithDeals("moves");
  const { stageId, dealId } = simulator.company.stories.singleDeal;
  const other = [...simulator.company.stages.keys()].find((id) => id !== stageId);
  const inStage = (id: number | undefined, days: number | null) =>
    simulator.control.change("stage", Number(id), { is_deal_rot_enabled: days !== null, days_to_rotten: days });
  inStage(stageId, 60);
  inStage(other, null);
  await sync(as);
  const verdict = async () => (await seen(as)).deals.find(({ crmId }) => crmId === String(dealId))?.quiet.verdict;
  const told = () =>
    database.query(
      `SELECT was, became FROM deal_change WHERE kind = 'VERDICT' AND deal_id = $1 AND seen_at >= $2
         AND tenant_id = (SELECT id FROM tenant WHERE external_id = $3)`,
      [dealId, since, as.tenant],
    );
  const before = await verdict();
  const since = clock();
  await database.query(`CREATE FUNCTION cannot() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''not now''; END'`);
  await database.query(
    "CREATE TRIGGER cannot BEFORE UPDATE ON judged_copy FOR EACH ROW WHEN (NEW.walked_to > 0) EXECUTE FUNCTION cannot()",
  );
  inStage(other, 60);
  simulator.control.change("deal", dealId, { stage_id: other });
  await sync(as);
  await database.query("DROP TRIGGER cannot ON judged_copy");
  expect([before, await verdict(), await told()]).toEqual(["COOLING", "COOLING", []]);
  simulator.control.change("deal", dealId, { stage_id: stageId });
  for (const id of [stageId, other]) inStage(id, null);
});

test("until all deals are judged every answer counts by the settings before; the end is told once, and of no deal", async () => {
  const as = await tenantWithDeals("meanwhile");
  const before = await seen(as);
  expect(before.quiet.length).toBeGreaterThan(0);
  await stopWorker();
  const never = {
    thresholds: ["NO_RECENT_ACTIVITY", "GHOSTED", "NEVER_REPLIED"].map((code) => ({ code, days: 3650 })),
  };
  simulator.log.clear();
  const preview = await previewQuiet(service, never, as);
  expect(preview).toEqual({
    becomeQuiet: 0,
    stopBeingQuiet: before.quiet.length,
    deals: expect.arrayContaining(before.quiet.map((crmId) => ({ crmId }))),
  });
  const watching = await watch(as);
  await isWatching(watching);
  const { settings } = await setQuiet(service, never, as);
  expect(settings?.rejudging).toEqual({ done: 0, total: before.deals.length });
  expect(await seen(as)).toEqual(before);
  expect(watching.results.length).toBe(1);
  await startWorker();
  await rejudged(service, as);
  const after = await seen(as);
  expect(after.quiet).toEqual([]);
  expect(after.deals.length).toBe(before.deals.length);
  await until("the end is told", async () => watching.results.length > 1);
  await noJobIsDue(database);
  expect(watching.results.length).toBe(2);
  await watching.end();
  // The CRM has nothing to do with it.
  expect(simulator.log.all()).toEqual([]);
  // And back: a second save before the first is done takes its place.
  await stopWorker();
  await setQuiet(service, { thresholds: [{ code: "NO_RECENT_ACTIVITY", days: 1 }] }, as);
  await setQuiet(service, {}, as);
  await startWorker();
  await rejudged(service, as);
  expect((await seen(as)).quiet).toEqual(before.quiet);
  // One that is taken back before it has begun: nothing is judged.
  await stopWorker();
  await setQuiet(service, { businessDays: true }, as);
  expect((await setQuiet(service, {}, as)).settings?.rejudging).toBeNull();
  expect(await comingDeals()).toBe(0);
});

test("a change of facts while deals are judged anew counts at once, and by the new settings after", async () => {
  const as = await tenantWithDeals("facts");
  const { singleDeal } = simulator.company.stories;
  const email = singleDeal.email;
  const crmId = String(singleDeal.dealId);
  const verdictOf = async () => (await seen(as)).deals.find((deal) => deal.crmId === crmId)?.quiet.verdict;
  await stopWorker();
  // Half way: the schedules that are coming stand, and have not taken their place.
  await setQuiet(
    service,
    {
      thresholds: [
        { code: "NO_RECENT_ACTIVITY", days: 2 },
        { code: "NO_NEXT_STEP", days: 9 },
      ],
    },
    as,
  );
  const startsAt = new Date(clock().getTime() - 3 * DAY_MS).toISOString();
  const { id } = await recordMeeting(service, [email], { startsAt, externalId: "meanwhile" }, as);
  expect(["ACTIVE", "COOLING"]).toContain(await verdictOf());
  expect(await comingDeals()).toBeGreaterThan(0);
  await startWorker();
  await rejudged(service, as);
  expect(await verdictOf()).toBe("QUIET");
  await stopWorker();
  // What is not matched any more while it is judged anew leaves nothing behind, and by other standards nothing was told of it.
  await setQuiet(service, {}, as);
  dataOf(await service.ask("mutation ($id: ID!) { deleteMeeting(meetingId: $id) { __typename } }", { id }, as));
  await startWorker();
  await noJobIsDue(database);
  const orphans = await database.query(
    `SELECT s.deal_id FROM deal_silence s WHERE NOT EXISTS (SELECT 1 FROM matched_record m
       WHERE (m.tenant_id, m.copy_id, m.entity, m.crm_id) = (s.tenant_id, s.copy_id, 'DEAL', s.deal_id))`,
  );
  expect(orphans).toEqual([]);
});

test("kinds of activities of the tenant's own, business days and another zone are what deals are judged by", async () => {
  const as = await tenantWithDeals("kinds");
  const { dealId, personId } = simulator.company.stories.ghosted;
  simulator.control.add("activity", {
    deal_id: dealId,
    type: "demo",
    done: true,
    person_id: personId,
    subject: "Demo",
    participants: [{ person_id: personId, primary: true }],
    marked_as_done_time: new Date(clock().getTime() - 2 * DAY_MS).toISOString(),
    due_date: new Date(clock().getTime() - 2 * DAY_MS).toISOString().slice(0, 10),
  });
  await sync(as);
  const ghosted = async () => (await seen(as)).deals.find(({ crmId }) => crmId === String(dealId));
  expect((await ghosted())?.quiet.reasons.map(({ code }) => code)).not.toContain("NO_RECENT_ACTIVITY");
  const input = { twoWayActivityTypes: [" demo ", "demo", "site_visit"], businessDays: true, timeZone: " utc " };
  const { settings } = await setQuiet(service, { ...input, thresholds: [{ code: "NO_NEXT_STEP", days: 1 }] }, as);
  expect(settings).toMatchObject({
    twoWayActivityTypes: ["demo", "site_visit"],
    businessDays: true,
    timeZone: "UTC",
    timeZoneIsSet: true,
  });
  await rejudged(service, as);
  const reasons = (await seen(as)).deals.flatMap(({ quiet }) => quiet.reasons);
  expect(reasons.some(({ message }) => message.includes("business day"))).toBe(true);
  const [judged] = await database.query<{ standards: object }>(
    `SELECT j.standards FROM judged_copy j JOIN connection c USING (tenant_id, copy_id)
     WHERE j.tenant_id = (SELECT id FROM tenant WHERE external_id = 'kinds')`,
  );
  expect(judged?.standards).toMatchObject({ timeZone: "UTC", businessDays: true, twoWayTypes: ["demo", "site_visit"] });
  // The buyer took part in the demo: no deal of that person is GHOSTED by the mail before it.
  expect((await ghosted())?.quiet.verdict).not.toBe("GHOSTED");
});

test("the kinds of the newest activities of a tenant's own copy can be chosen from, the commonest first", async () => {
  const as = await tenantWithDeals("chooses");
  simulator.control.add("activity", { type: "tasting" });
  await sync(as);
  const kindsOf = async (of: { tenant: string }) => {
    const asked = "{ connection { activityTypes { key count } } }";
    type Kinds = { connection: { activityTypes: { key: string; count: number }[] } };
    return dataOf(await service.ask<Kinds>(asked, {}, of)).connection.activityTypes;
  };
  const kinds = await kindsOf(as);
  expect(kinds).toContainEqual({ key: "tasting", count: 1 });
  expect(kinds.map(({ count }) => count)).toEqual(kinds.map(({ count }) => count).sort((a, b) => b - a));
  expect(await kindsOf({ tenant: "has-none" })).toEqual([]);
  await database.query(
    `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, participant_ids, due_has_time, done)
     SELECT c.tenant_id, c.copy_id, 1000000000000 + n, '', CASE WHEN n = 1 THEN '' ELSE 'survey' END, '{}', false, false
     FROM connection c, generate_series(1, 10000) n WHERE c.tenant_id = $1`,
    [await database.tenantId("chooses")],
  );
  expect(await kindsOf(as)).toEqual([{ key: "survey", count: 9_999 }]);
});

test("owners and admins save, on any plan; a member is refused and noted; saving the same again changes nothing", async () => {
  const as = await tenantWithDeals("roles");
  const input = {
    thresholds: [
      { code: "GHOSTED", days: 5 },
      { code: "CLOSE_DATE_PASSED", days: 0 },
    ],
  };
  for (const refused of [
    await setQuiet(service, input, { ...as, ...MEMBER }),
    await previewQuiet(service, input, { ...as, ...MEMBER }),
  ])
    expect(refused).toMatchObject({
      code: "NOT_ALLOWED_FOR_ROLE",
      message: expect.stringContaining("Ask one of them"),
    });
  expect(await audited("roles")).toEqual([]);
  const saved = await setQuiet(service, input, { ...as, role: "owner", plan: "free", sub: "olga" });
  expect(saved.settings?.thresholds.map(({ code }) => code)).toEqual(["CLOSE_DATE_PASSED", "GHOSTED"]);
  expect(saved.settings?.timeZoneIsSet).toBe(false);
  await rejudged(service, as);
  const again = { thresholds: [...input.thresholds].reverse() };
  expect((await setQuiet(service, again, { ...as, role: "admin" })).settings?.rejudging).toBeNull();
  expect(await audited("roles")).toMatchObject([{ user_id: "olga" }]);
  // A member may see them.
  expect((await quietSettings(service, { ...as, ...MEMBER })).thresholds.length).toBe(2);
});

test("of saves at the same moment one holds as a whole", async () => {
  const as = await tenantWithDeals("together");
  const days = [5, 6, 7, 8, 9, 10];
  const code = ["GHOSTED", "NO_RECENT_ACTIVITY"];
  const inputs = days.map((count) => ({
    thresholds: code.map((one) => ({ code: one, days: count })),
    businessDays: count % 2 === 0,
  }));
  const answers = await Promise.all(inputs.map((input) => setQuiet(service, input, as)));
  expect(answers.filter(({ settings }) => !settings)).toEqual([]);
  const shown = await rejudged(service, as);
  const [first] = shown.thresholds;
  expect(shown.thresholds.map((one) => one.days)).toEqual([first?.days, first?.days]);
  expect(shown.businessDays).toBe((first?.days ?? 0) % 2 === 0);
  // Seen red: that they were changed was told, and not from what to what, so that no verdict of before could be explained.
  const told = (await audited("together")).map(({ was, became }) => [was, became].map((one) => one && JSON.parse(one)));
  expect(told.map(([was]) => was)).toEqual([null, ...told.map(([, became]) => became).slice(0, -1)]);
  expect([told.length, told.at(-1)?.[1].thresholds[0].days]).toEqual([days.length, first?.days]);
  for (const deal of (await seen(as)).deals) expect([null, first?.days]).toContain(daysOf(deal));
});

const ghosted = (days: number) => ({ thresholds: [{ code: "GHOSTED", days }] });

test("a save that is based on settings which are no longer stored is refused, and one that says nothing of it is not", async () => {
  const as = await tenantWithDeals("based");
  const { version } = await quietSettings(service, as);
  const first = await setQuiet(service, { ...ghosted(5), version }, as);
  expect(first.settings?.version).not.toBe(version);
  expect(await setQuiet(service, { ...ghosted(6), version }, { ...as, sub: "olga" })).toEqual({
    code: "CHANGED_MEANWHILE",
    message: expect.stringContaining("Read the settings again"),
    field: "version",
  });
  expect(await quietSettings(service, as)).toMatchObject({ version: first.settings?.version, ...ghosted(5) });
  // As after an answer that was lost: what is wished is there already.
  expect((await setQuiet(service, { ...ghosted(5), version }, as)).settings).toMatchObject(ghosted(5));
  expect(await previewQuiet(service, { ...ghosted(6), version }, as)).toHaveProperty("becomeQuiet");
  for (const given of [undefined, null, first.settings?.version])
    expect((await setQuiet(service, { ...ghosted(7), version: given }, as)).settings).toMatchObject(ghosted(7));
  expect((await setQuiet(service, { version: "of nothing" }, as)).code).toBe("CHANGED_MEANWHILE");
  // The same settings again have the same version, and so have the standard ones, whether or not they were saved.
  expect((await setQuiet(service, ghosted(5), as)).settings?.version).toBe(first.settings?.version);
  expect((await setQuiet(service, {}, as)).settings?.version).toBe(version);
  expect((await audited("based")).length).toBe(4);
});

test("of two that save at the same moment from one version exactly one is saved", async () => {
  const as = await tenantWithDeals("race");
  const tenantId = await database.tenantId("race");
  for (const days of [5, 15, 25]) {
    const { version } = await quietSettings(service, as);
    const saves = await database.dataSource.transaction(async (holder) => {
      await holder.query("SELECT 1 FROM connection WHERE tenant_id = $1 FOR UPDATE", [tenantId]);
      const begun = [days, days + 1].map((count) => setQuiet(service, { ...ghosted(count), version }, as));
      await until("both wait for the lock", async () => (await database.lockWaits()).length >= 2);
      return begun;
    });
    const answers = await Promise.all(saves);
    expect(answers.map(({ code }) => code ?? "SAVED").sort()).toEqual(["CHANGED_MEANWHILE", "SAVED"]);
    const saved = answers.find(({ settings }) => settings)?.settings;
    expect((await quietSettings(service, as)).thresholds).toEqual(saved?.thresholds);
  }
  expect((await audited("race")).length).toBe(3);
});
