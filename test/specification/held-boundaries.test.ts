import { Client } from "pg";
import { Boundaries, tellBegun } from "../../src/briefing/quiet/boundaries";
import { judgeByPresentRules, Rejudging } from "../../src/briefing/quiet/rejudging";
import { tellFresh } from "../../src/connections/journal";
import { DAY_MS } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { COPY, days, HEALTHY, inMail, NOW } from "../support/quiet-lines";
import { QuietRows } from "../support/quiet-rows";
import { until } from "../support/stories";
import { useDatabase } from "../support/world";

/** More than are taken at once. */
const MANY = 600;

const database = useDatabase();

async function haveBegun(tenant: string, deals: number, since: string): Promise<number> {
  const tenantId = await database.tenantId(tenant);
  await database.query(
    `INSERT INTO deal_silence (tenant_id, copy_id, deal_id, generation, phase, holds_from, holds_until, verdict, is_told, is_listed, judged_as, status, changed_at, currency, value_rank, negative_value)
     SELECT $1, $1, g, 0, phase, now() - $3::interval, 'infinity', CASE phase WHEN 0 THEN 'ACTIVE' ELSE 'QUIET' END, phase = 0, false, '', 'open', now(), '~', 0, 0
     FROM generate_series(1, $2::int) g, generate_series(0, 1) phase`,
    [tenantId, deals, since],
  );
  return tenantId;
}

const untold = (tenantId: number) =>
  database.query("SELECT 1 FROM deal_silence WHERE tenant_id = $1 AND NOT is_told", [tenantId]);

// Seen red: the oldest were looked at again and again, and where all of them were held nobody else's was told.
test("what of one tenant's silences cannot be taken just now holds up nobody else's", async () => {
  const held = await haveBegun("held", MANY, "2 hours");
  const other = await haveBegun("other", 1, "1 hour");
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  await holder.query("BEGIN");
  await holder.query("SELECT 1 FROM deal_silence WHERE tenant_id = $1 FOR UPDATE", [held]);
  const boundaries = new Boundaries(database.opened(), () => new Date(), createLogger("silent"));
  await boundaries.pass();
  expect([(await untold(held)).length, (await untold(other)).length]).toEqual([MANY, 0]);
  await holder.query("ROLLBACK");
  await holder.end();
  await boundaries.pass();
  expect(await untold(held)).toEqual([]);
});

test("what has begun is claimed by its keys, however little is known of the tables", async () => {
  await database.query("ALTER TABLE deal_silence SET (autovacuum_enabled = off)");
  const copyId = await haveBegun("unknown", 3_000, "1 minute");
  const db = database.opened();
  const read =
    "SELECT (seq_tup_read + idx_tup_fetch) AS rows FROM pg_stat_xact_user_tables WHERE relname = 'deal_silence'";
  await db.tenant(copyId).transaction(async (scope) => {
    expect(await tellBegun({ ...scope, copyId }, new Date())).toBe(true);
    const [found] = await scope.rows<{ rows: number }>(read, [], { rows: "number" });
    // All phases a few times, as PostgreSQL's plan has it, and not for each that has begun: that were 375,000.
    expect(found?.rows).toBeLessThan(40_000);
    await scope.rows("DELETE FROM deal_silence WHERE tenant_id = $1", [copyId]);
  });
});

test("what time has changed under the settings of before is told of each deal when others take their place, and by those nothing", async () => {
  const tenantId = await database.tenantId("settings");
  const db = database.opened();
  const copyId = 7;
  const [now, later] = [new Date(NOW), new Date(NOW + 10 * DAY_MS)];
  const rows = new QuietRows(tenantId, copyId, { ...COPY, readAt: later.getTime() });
  for (let dealId = 1; dealId <= MANY; dealId += 1)
    rows.deal({ ...HEALTHY, dealId, planned: [], contacts: [inMail(days(5))] }, { notes: [], fields: [] });
  await rows.insert(database);
  const judge = () => db.tenant(tenantId).transaction((scope) => judgeByPresentRules({ ...scope, copyId }, now));
  const goOn = (clock: Date, signal: AbortSignal) =>
    new Rejudging(db, () => clock, createLogger("silent")).run({ tenantId, copyId }, signal);
  const told = () =>
    database.query(
      `SELECT was, became, seen_at, count(DISTINCT deal_id)::int AS deals, count(*)::int AS times FROM deal_change
       WHERE tenant_id = $1 AND kind = 'VERDICT' GROUP BY was, became, seen_at`,
      [tenantId],
    );
  await judge();
  await database.query(
    `INSERT INTO quiet_settings (tenant_id, crm_company_id, business_days, two_way_types, thresholds, set_by, set_at)
     VALUES ($1, 77, false, '{}', '[{"scope":"ALL","crmId":0,"code":"NO_RECENT_ACTIVITY","days":8}]', '', now())`,
    [tenantId],
  );
  await judge();
  await goOn(now, AbortSignal.abort());
  const boundaries = new Boundaries(db, () => new Date(NOW + 4 * DAY_MS), createLogger("silent"));
  // By what is coming some are quiet since yesterday, by what holds five days from now.
  expect(await boundaries.pass()).toEqual(new Date(NOW + 9 * DAY_MS));
  expect(await told()).toEqual([]);
  await goOn(later, new AbortController().signal);
  const flip = { was: "COOLING", became: "QUIET", seen_at: new Date(NOW + 9 * DAY_MS) };
  expect(await told()).toEqual([{ ...flip, deals: MANY, times: MANY }]);
  const held =
    "SELECT generation, is_told, count(*)::int AS phases FROM deal_silence WHERE tenant_id = $1 GROUP BY 1, 2";
  expect(await database.query(held, [tenantId])).toEqual([{ generation: 1, is_told: true, phases: MANY + 250 }]);
  expect(await new Boundaries(db, () => later, createLogger("silent")).pass()).toBeNull();
});

/** A deal of which the mail was five days ago, judged by the standard, and settings by which it is quiet as soon. */
async function otherSettings(tenant: string, copyId: number, readAt: number, thresholds: object[]) {
  const tenantId = await database.tenantId(tenant);
  const copy = { ...database.scope(tenantId), copyId };
  const rows = new QuietRows(tenantId, copyId, { ...COPY, readAt });
  rows.deal({ ...HEALTHY, planned: [], contacts: [inMail(days(5))] }, { notes: [], fields: [] });
  await rows.insert(database);
  await judgeByPresentRules(copy, new Date(NOW));
  await database.query(
    `INSERT INTO quiet_settings (tenant_id, crm_company_id, business_days, two_way_types, thresholds, set_by, set_at)
     VALUES ($1, 77, false, '{}', $2, '', now())`,
    [tenantId, JSON.stringify(thresholds)],
  );
  await judgeByPresentRules(copy, new Date(NOW));
  const told = () =>
    database.query("SELECT was, became, seen_at FROM deal_change WHERE tenant_id = $1 AND kind = 'VERDICT'", [
      tenantId,
    ]);
  return { copy, told, ref: { tenantId, copyId } };
}

// Seen red: it was told by the settings of before while others took their place, and by those once more.
test("what begins at the moment at which other settings take their place is told once", async () => {
  const { told, ref } = await otherSettings("moment", 8, NOW + 30 * DAY_MS, [
    { scope: "ALL", crmId: 0, code: "STALLED_IN_STAGE", days: 60 },
  ]);
  const beginsAt = NOW + 9 * DAY_MS;
  let at = beginsAt - 1;
  const [db, clock, logger] = [database.opened(), () => new Date(at), createLogger("silent")];
  const [rejudging, boundaries] = [new Rejudging(db, clock, logger), new Boundaries(db, clock, logger)];
  await rejudging.run(ref, AbortSignal.abort());
  const snoozed = "UPDATE deal SET snoozed_at = $2, snoozed_until = $3, snooze_ends_at = $3 WHERE tenant_id = $1";
  await database.query(snoozed, [ref.tenantId, new Date(NOW), new Date(NOW + 20 * DAY_MS)]);
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  await holder.query("BEGIN");
  await holder.query("SELECT 1 FROM deal WHERE tenant_id = $1 FOR UPDATE", [ref.tenantId]);
  const takingOver = rejudging.run(ref, AbortSignal.abort());
  await until("it waits for the deal's snooze", async () => (await database.lockWaits()).length > 0);
  at = beginsAt;
  await boundaries.pass();
  await holder.query("ROLLBACK");
  await holder.end();
  await takingOver;
  await boundaries.pass();
  expect(await told()).toEqual([{ was: "COOLING", became: "QUIET", seen_at: new Date(beginsAt) }]);
});

// Seen red: each batch kept the copy to itself, and on a loaded machine a flip was told after a second and a half.
test("what begins while a batch is judged by other settings does not wait for it", async () => {
  const { told, ref } = await otherSettings("batch", 8, NOW + 30 * DAY_MS, [
    { scope: "ALL", crmId: 0, code: "STALLED_IN_STAGE", days: 60 },
  ]);
  const [db, begins, logger] = [database.opened(), NOW + 9 * DAY_MS, createLogger("silent")];
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  await holder.query("BEGIN");
  const coming = `INSERT INTO deal_silence SELECT (jsonb_populate_record(s, '{"generation": 1}')).* FROM deal_silence s
    WHERE s.tenant_id = $1 AND s.generation = 0 AND s.phase = 0`;
  expect((await holder.query(coming, [ref.tenantId])).rowCount).toBe(1);
  const judging = new Rejudging(db, () => new Date(begins - 1), logger).run(ref, AbortSignal.abort());
  await until("it waits for what is stored beside", async () => (await database.lockWaits()).length > 0);
  await new Boundaries(db, () => new Date(begins), logger).pass();
  expect(await told()).toMatchObject([{ was: "COOLING", became: "QUIET" }]);
  await holder.query("ROLLBACK");
  await holder.end();
  await judging;
});

// Seen red: once the copy was fresh again the journal had the verdict of settings that nobody is judged by any more.
test("what nobody saw while the copy was stale, and is so no more by other settings, is no entry", async () => {
  for (const { isFreshBefore, noted } of [
    { isFreshBefore: false, noted: [] },
    { isFreshBefore: true, noted: [{ was: "COOLING", became: "QUIET", seen_at: new Date(NOW + 10 * DAY_MS) }] },
  ]) {
    const { copy, told, ref } = await otherSettings(`stale ${isFreshBefore}`, isFreshBefore ? 9 : 10, NOW, [
      { scope: "ALL", crmId: 0, code: "NO_RECENT_ACTIVITY", days: 60 },
    ]);
    const later = new Date(NOW + 10 * DAY_MS);
    const [db, logger] = [database.opened(), createLogger("silent")];
    await new Boundaries(db, () => later, logger).pass();
    expect(await told()).toMatchObject([{ was: "COOLING", became: "QUIET" }]);
    const read = () =>
      database.query("UPDATE sync_list SET watermark = $2 WHERE tenant_id = $1", [ref.tenantId, later]);
    if (isFreshBefore) await read();
    await new Rejudging(db, () => later, logger).run(ref, new AbortController().signal);
    await read();
    await tellFresh(copy, new Date(later.getTime() + 1));
    expect(await told()).toEqual(noted);
  }
});
