import { type DealFacts, standardRules } from "../../src/briefing/quiet/facts";
import { type QuietFacts, readKeptFacts, readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { judgeByPresentRules, Rejudging } from "../../src/briefing/quiet/rejudging";
import { situationsOf } from "../../src/briefing/quiet/situation";
import { judgeChanged, judgeDeals, judgeMatched } from "../../src/briefing/quiet/stored-silence";
import { eraseTexts } from "../../src/connections/copies";
import { type CopyScope } from "../../src/database/database";
import type { SyncResource } from "../../src/entities/sync-run";
import { DAY_MS } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { writeNotes } from "../../src/sync/writers";
import { markRead } from "../support/copy";
import { earlier, isAround } from "../support/database";
import { NOW } from "../support/quiet-facts";
import { QuietRows } from "../support/quiet-rows";
import { useDatabase } from "../support/world";

const now = new Date(NOW);
const DEALS = 100;
const rules = standardRules("UTC");
const watchedSince = NOW - 90 * DAY_MS;
const THREE_DAYS_AGO = NOW - 3 * DAY_MS;
let scope: CopyScope;
let acme: number;

const mailOf = (kind: "INCOMING_MAIL" | "OUTGOING_MAIL", at: number) => ({
  kind,
  at,
  crmId: 0,
  activityType: null,
  withPerson: true,
});
/** A deal that was added at ten, and mails that we were to write on days around without a time. */
const OF_DAYS = 101;
const MIDNIGHT = Math.floor(NOW / DAY_MS) * DAY_MS - 20 * DAY_MS;
const ADDED = MIDNIGHT + (10 * DAY_MS) / 24;
const wroteOn = (days: number) => {
  const day = MIDNIGHT + days * DAY_MS;
  return { ...mailOf("OUTGOING_MAIL", day + DAY_MS), kind: "ACTIVITY" as const, activityType: "email", day };
};
const factsOf = (dealId: number): DealFacts => ({
  dealId,
  isOpen: true,
  addedAt: NOW - DAY_MS,
  inStageSince: null,
  stageId: null,
  daysToRotten: null,
  updatedAt: null,
  closeDay: null,
  pushes: Array.from({ length: dealId === 1 ? 103 : 1 }, (_, day) => NOW - day * DAY_MS),
  hasMail: true,
  hasFirstMail: false,
  inactiveOwnerId: null,
  isIncomplete: false,
  incompleteSince: null,
  contacts: [mailOf("INCOMING_MAIL", NOW - dealId * 1_000)],
  meetings: [{ meetingId: "", startsAt: NOW + DAY_MS, endsAt: NOW + DAY_MS, withBuyer: true }],
  planned: Array.from({ length: 30 }, (_, day) => ({ crmId: 0, dueAt: NOW + (day - 3) * DAY_MS, wholeDay: false })),
});

const database = useDatabase();
beforeAll(async () => {
  acme = await database.tenantId("acme");
  const rows = new QuietRows(acme, 1, { readAt: THREE_DAYS_AGO, asOf: THREE_DAYS_AGO, watchedSince, rules });
  for (let id = 1; id <= DEALS; id += 1) rows.deal(factsOf(id), { notes: [], fields: [] });
  rows.deal({ ...factsOf(OF_DAYS), addedAt: ADDED, contacts: [0, 1, 5].map(wroteOn) }, { notes: [], fields: [] });
  await rows.insert(database);
  scope = { ...database.scope(acme), copyId: 1 };
});

// Seen red: one earliest of all days, which had begun before the deal was added in some zones and in others had not.
test.each([
  ["UTC", 1, 0],
  ["America/Phoenix", 1, 7],
  ["Pacific/Pago_Pago", 0, 11],
  ["Pacific/Kiritimati", 1, -14],
])("days without a time are found whatever is the zone: %s", async (zone, day, hours) => {
  const [facts] = (await readQuietFacts(scope, [OF_DAYS], now))?.deals ?? [];
  const first = facts && situationsOf(facts, standardRules(zone))(NOW).firstOutbound;
  expect(first?.at).toBe(MIDNIGHT + day * DAY_MS + (hours * DAY_MS) / 24);
});

const ids = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test.each([1, DEALS])(
  "the facts of %i deals are read in one statement, and what they hold is bounded",
  async (count) => {
    let statements = 0;
    const counted = database.opened({
      observe: (text, run) => {
        if (!isAround(text)) statements += 1;
        return run();
      },
    });
    const deals = (await readQuietFacts({ ...counted.tenant(acme), copyId: 1 }, ids(count), now))?.deals ?? [];
    expect([deals.length, statements]).toEqual([count, 1]);
    for (const { dealId, planned, meetings, contacts, pushes } of deals) {
      const most = dealId === 1 ? 100 : 1;
      expect([planned.length, meetings.length, contacts.length, pushes.length]).toEqual([7, 1, 1, most]);
      expect(Math.min(...pushes)).toBe(NOW - (most - 1) * DAY_MS);
    }
  },
);

test("of judged deals one statement gives what was kept; what nobody kept, or other rules did, is looked up", async () => {
  let statements = 0;
  const observe = <T>(text: string, run: () => Promise<T>) => {
    if (!isAround(text)) statements += 1;
    return run();
  };
  const counted: CopyScope = { ...database.opened({ observe }).tenant(acme), copyId: 1 };
  // Whoever judges keeps our first mail as well.
  const inOrderOf = (found: QuietFacts | null) =>
    (found?.deals ?? [])
      .map((deal) => ({ ...deal, hasFirstMail: true, ofOthers: { ...deal.ofOthers, hasFirstMail: true } }))
      .sort((a, b) => a.dealId - b.dealId);
  const read = async () => {
    statements = 0;
    const deals = inOrderOf(await readKeptFacts(counted, ids(DEALS), now));
    return { statements, deals };
  };
  const inOrder = async () => inOrderOf(await readQuietFacts(scope, ids(DEALS), now));
  expect(await read()).toEqual({ statements: 2, deals: await inOrder() });
  await database.query(
    `INSERT INTO matched_record SELECT $1, 1, 'DEAL', g, (SELECT min(id::text)::uuid FROM meeting) FROM generate_series(1, $2::int) g`,
    [acme, DEALS],
  );
  await database.scope(acme).transaction((writing) => judgeDeals({ ...writing, copyId: 1 }, ids(DEALS), now));
  expect(await read()).toEqual({ statements: 1, deals: await inOrder() });
  await database.query("UPDATE deal_silence SET of_others = NULL WHERE deal_id = 7");
  expect(await read()).toEqual({ statements: 2, deals: await inOrder() });

  // A page of the release before may be judged after all deals were by these rules.
  await database.query(
    "UPDATE deal_silence SET of_others = '{}', judged_as = '0' || substr(judged_as, 2) WHERE deal_id = 7",
  );
  expect(await read()).toEqual({ statements: 2, deals: await inOrder() });
  for (const table of ["deal_silence", "matched_record"]) await database.query(`DELETE FROM ${table}`);
});

test.each([
  ["stage", "stage_id = 7", 0],
  ["time in its stage", "stage_change_time = now()", 0],
  ["person", "person_id = (SELECT person_id FROM deal d WHERE d.tenant_id = deal.tenant_id AND d.crm_id = 2)", 1],
  ["number of participants", "participants_count = 3", 1],
  ["time of adding", earlier("add_time", "2 days"), 1],
])("a deal that has another %s is judged by what was found of the people that it has", async (_name, change, times) => {
  await database.query(
    `INSERT INTO matched_record SELECT $1, 1, 'DEAL', 1, (SELECT min(id::text)::uuid FROM meeting)`,
    [acme],
  );
  let lookedUp = 0;
  const observe = <T>(text: string, run: () => Promise<T>) => {
    lookedUp += Number(text.includes("'contacts'"));
    return run();
  };
  await database
    .opened({ observe })
    .tenant(acme)
    .transaction(async (writing) => {
      const copy = { ...writing, copyId: 1 };
      await judgeDeals(copy, [1], now);
      await writing.rows(`UPDATE deal SET ${change} WHERE tenant_id = $1 AND crm_id = 1`, [acme]);
      lookedUp = 0;
      await judgeChanged(copy, "DEALS", [1], [], now);
      expect(lookedUp).toBe(times);
      const stored = "SELECT of_others AS kept FROM deal_silence WHERE tenant_id = $1 AND deal_id = 1 AND phase = 0";
      const [row] = await writing.rows<{ kept: object }>(stored, [acme], { kept: "json" });
      const found = await readQuietFacts(copy, [1], now);
      expect(row?.kept).toEqual({ ...found?.deals[0]?.ofOthers, hasFirstMail: true });
    });
  for (const table of ["deal_silence", "matched_record"]) await database.query(`DELETE FROM ${table}`);
});

// Seen red: after the hundredth meeting the deal was quiet, whatever changed in it, though it had a meeting a day.
test("a deal with more meetings ahead than are looked at is judged by those that have come up with time", async () => {
  const globex = await database.tenantId("globex");
  const rows = new QuietRows(globex, 2, { readAt: NOW, asOf: NOW, watchedSince, rules });
  const daily = (day: number) => ({ startsAt: NOW + day * DAY_MS, endsAt: NOW + day * DAY_MS });
  const meetings = Array.from({ length: 130 }, (_, day) => ({ meetingId: "", withBuyer: true, ...daily(day + 1) }));
  rows.deal({ ...factsOf(1), meetings, planned: [] }, { notes: [], fields: [] });
  await rows.insert(database);
  const later = new Date(NOW + 118 * DAY_MS + 1);
  await database.scope(globex).transaction(async (writing) => {
    const copy = { ...writing, copyId: 2 };
    await judgeDeals(copy, [1], now);
    await writing.rows("UPDATE deal SET stage_id = 7 WHERE tenant_id = $1", [globex]);
    await judgeChanged(copy, "DEALS", [1], [], later);
    const [kept] = (await readKeptFacts(copy, [1], later))?.deals ?? [];
    const [found] = (await readQuietFacts(copy, [1], later))?.deals ?? [];
    expect(kept?.meetings).toHaveLength(13);
    expect(kept?.meetings).toEqual(found?.meetings);
  });
});

// Seen red: the mail that was looked up for what was coming counted as kept, and went with the next one.
test("our first mail that is known by what was coming alone is kept by who judges next", async () => {
  const hooli = await database.tenantId("hooli");
  const mailed = mailOf("OUTGOING_MAIL", NOW - 20 * DAY_MS);
  const rows = new QuietRows(hooli, 3, { readAt: NOW, asOf: NOW, watchedSince, rules });
  rows.deal({ ...factsOf(1), addedAt: NOW - 40 * DAY_MS, contacts: [mailed] }, { notes: [], fields: [] });
  await rows.insert(database);
  const earlier = { version: 0, timeZone: "UTC", businessDays: false, twoWayTypes: [], thresholds: [] };
  await database.query("INSERT INTO judged_copy (tenant_id, copy_id, standards) VALUES ($1, 3, $2)", [hooli, earlier]);
  const db = database.opened();
  const inCopy = (work: (copy: CopyScope) => Promise<void>) =>
    db.tenant(hooli).transaction((writing) => work({ ...writing, copyId: 3 }));
  await inCopy((copy) => judgeByPresentRules(copy, now));
  await new Rejudging(db, () => now, createLogger("silent")).run(
    { tenantId: hooli, copyId: 3 },
    new AbortController().signal,
  );
  await inCopy(async (copy) => {
    await copy.rows("UPDATE deal SET stage_id = 7 WHERE tenant_id = $1", [hooli]);
    await judgeChanged(copy, "DEALS", [1], [], now);
  });
  const first = await database.query("SELECT first_mail_at AS at FROM deal WHERE tenant_id = $1", [hooli]);
  expect(first).toEqual([{ at: new Date(mailed.at) }]);
});

// Seen red: 10,080 deals were judged in the page that brought their stage's days, and of 130,000 it never ended.
test.each([
  [250, "in that transaction"],
  [251, "by a job, and until then by what holds"],
])("other days of a stage: its %i matched deals are judged %s", async (count, how) => {
  const tenantId = await database.tenantId(`stage of ${count}`);
  const copyId = count;
  const rows = new QuietRows(tenantId, copyId, { readAt: NOW, asOf: NOW, watchedSince, rules });
  const quiet = { addedAt: NOW - 40 * DAY_MS, pushes: [], meetings: [], planned: [] };
  const mailed = mailOf("INCOMING_MAIL", NOW - 20 * DAY_MS);
  for (let id = 1; id <= count; id += 1)
    rows.deal({ ...factsOf(id), ...quiet, contacts: [mailed] }, { notes: [], fields: [] });
  await rows.insert(database);
  await database.query("UPDATE deal SET stage_id = 7 WHERE tenant_id = $1", [tenantId]);
  const db = database.opened();
  const present = () => db.tenant(tenantId).transaction((writing) => judgeByPresentRules({ ...writing, copyId }, now));
  const verdicts = async () =>
    (
      await database.query<{ verdict: string }>(
        "SELECT DISTINCT verdict FROM deal_silence WHERE tenant_id = $1 AND is_listed",
        [tenantId],
      )
    ).map(({ verdict }) => verdict);
  await present();
  expect(await verdicts()).toEqual(["QUIET"]);
  await database.query(
    "INSERT INTO stage (tenant_id, copy_id, crm_id, name, position, days_to_rotten) VALUES ($1, $2, 7, '', 1, 60)",
    [tenantId, copyId],
  );
  await present();
  expect(await verdicts()).toEqual([how === "in that transaction" ? "COOLING" : "QUIET"]);
  await new Rejudging(db, () => now, createLogger("silent")).run({ tenantId, copyId }, new AbortController().signal);
  expect(await verdicts()).toEqual(["COOLING"]);
});

// Seen red: it counted as a contact by then, and nobody was told.
test("a note that another tenant of ours wrote is no contact, also where its text went with a person", async () => {
  const umbrella = await database.tenantId("umbrella");
  const rows = new QuietRows(umbrella, 4, { readAt: NOW, asOf: NOW, watchedSince, rules });
  rows.deal({ ...factsOf(1), contacts: [] }, { notes: [], fields: [] });
  await rows.insert(database);
  const copy = { ...database.scope(umbrella), copyId: 4 };
  const write = (id: number, text: string) =>
    database.query(
      "INSERT INTO note (tenant_id, copy_id, crm_id, deal_id, person_id, content, add_time) VALUES ($1, 4, $2, 1, 9, $3, $4)",
      [umbrella, id, text, now],
    );
  await write(1, "<p>Ottilie called.</p>\n<p>Ref. CRM-0123456789</p>");
  const contacts = async () => (await readQuietFacts(copy, [1], now))?.deals[0]?.contacts;
  expect(await contacts()).toEqual([]);
  expect([await eraseTexts(copy, 4, 9), await eraseTexts(copy, 4, 9)]).toEqual([1, 0]);
  expect(await database.query("SELECT content FROM note")).toEqual([{ content: "[erased] Ref. CRM-0123456789" }]);
  expect(await contacts()).toEqual([]);
  await write(2, "<p>Ottilie called.</p>");
  expect(await eraseTexts(copy, 4, 9)).toBe(1);
  expect(await contacts()).toMatchObject([{ kind: "NOTE", crmId: 2 }]);
});

// Seen red: with a note of the deal went what was told of it last, and nobody heard of the flip.
test("what changes while a deal is not matched is told when it is again, also where its notes changed meanwhile", async () => {
  const initech = await database.tenantId("initech");
  const rows = new QuietRows(initech, 5, { readAt: NOW, asOf: NOW, watchedSince, rules });
  rows.deal(
    { ...factsOf(1), addedAt: NOW - 40 * DAY_MS, pushes: [], meetings: [], planned: [] },
    { notes: [], fields: [] },
  );
  await rows.insert(database);
  const inCopy = (work: (copy: CopyScope) => Promise<void>) =>
    database.scope(initech).transaction((writing) => work({ ...writing, copyId: 5 }));
  const note = { id: 1, userId: null, dealId: 1, personId: null, organizationId: null, truncated: false, ending: "" };
  const write = (content: string) =>
    inCopy(async (copy) => {
      const page = writeNotes([{ ...note, content, addTime: now.toISOString(), updateTime: null, deleted: false }], 0);
      const { touched, left } = await page({ ...copy, hasMatchedDeals: true }, now);
      await judgeChanged(copy, "NOTES", touched, left, now);
    });
  await write("They called.");
  await inCopy((copy) => judgeDeals(copy, [1], now));
  await database.query("DELETE FROM matched_record WHERE tenant_id = $1", [initech]);
  await inCopy((copy) => judgeMatched(copy, { left: [1], changed: [] }, now, "EACH"));
  await write("They called again.");
  await database.query("DELETE FROM note WHERE tenant_id = $1", [initech]);
  await database.query("UPDATE person SET last_incoming_mail_time = NULL WHERE tenant_id = $1", [initech]);
  await database.query(
    "INSERT INTO matched_record SELECT $1, 5, 'DEAL', 1, min(id::text)::uuid FROM meeting WHERE tenant_id = $1",
    [initech],
  );
  await inCopy((copy) => judgeMatched(copy, { left: [], changed: [1] }, now, "EACH"));
  const told = await database.query("SELECT was, became FROM deal_change WHERE tenant_id = $1 AND kind = 'VERDICT'", [
    initech,
  ]);
  expect(told).toEqual([{ was: "COOLING", became: "QUIET" }]);
});

test("what was read is as new as the older of persons and activities, and complete as of the oldest that is judged by", async () => {
  const read = async () => (await readQuietFacts(scope, [1], now))?.copy;
  expect(await read()).toEqual({ readAt: THREE_DAYS_AGO, asOf: THREE_DAYS_AGO, watchedSince, rules });
  const mark = (at: number, ...lists: SyncResource[]) => markRead(database, acme, 1, new Date(at), lists);
  await mark(NOW - 2_000, "PERSONS");
  expect((await read())?.readAt).toBe(THREE_DAYS_AGO);
  await mark(NOW - 1_000, "ACTIVITIES", "DEALS");
  expect(await read()).toEqual({ readAt: NOW - 2_000, asOf: THREE_DAYS_AGO, watchedSince, rules });
  await mark(NOW - 3_000, "NOTES");
  // Names of stages and companies are no part of a judgement.
  await mark(THREE_DAYS_AGO, "STAGES", "ORGANIZATIONS");
  expect(await read()).toEqual({ readAt: NOW - 2_000, asOf: NOW - 3_000, watchedSince, rules });
  await database.query("UPDATE sync_list SET watermark = NULL WHERE resource = 'NOTES'");
  expect(await read()).toEqual({ readAt: NOW - 2_000, asOf: null, watchedSince, rules });
  await database.query("UPDATE sync_list SET watermark = NULL WHERE resource = 'ACTIVITIES'");
  expect((await read())?.readAt).toBeNull();
});

test("an activity that cannot be read is missing from the deal that it names", async () => {
  const reject = (resource: string, dealId: number | null) =>
    database.query("INSERT INTO rejected_record VALUES ($1, 1, $2, $3, 'X', '{}', $4, $5, $5)", [
      acme,
      resource,
      `${resource} ${dealId}`,
      dealId,
      now,
    ]);
  await Promise.all([reject("ACTIVITIES", 2), reject("ACTIVITIES", null), reject("NOTES", 1)]);
  const deals = (await readQuietFacts(scope, [1, 2], now))?.deals ?? [];
  expect(deals.map(({ dealId, isIncomplete }) => [dealId, isIncomplete]).sort()).toEqual([
    [1, false],
    [2, true],
  ]);
  await database.query("DELETE FROM rejected_record");
});

test.each<[string, string, number, boolean]>([
  ["the participants of this deal", "DEAL_PARTICIPANTS", 1, true],
  ["the participants of another deal", "DEAL_PARTICIPANTS", 2, false],
  ["all activities", "ACTIVITIES", 0, true],
  ["the pipelines", "PIPELINES", 0, false],
])("a gap of %s", async (_gap, resource, crmId, touches) => {
  await database.query("DELETE FROM data_gap");
  await database.query("INSERT INTO data_gap VALUES ($4, 1, $1, $2, 'X', '', $3)", [resource, crmId, now, acme]);
  const [deal] = (await readQuietFacts(scope, [1], now))?.deals ?? [];
  expect([deal?.isIncomplete, deal?.incompleteSince]).toEqual([touches, touches ? NOW : null]);
});

test("gaps of others are looked through once, however many deals are read", async () => {
  await database.query("DELETE FROM data_gap");
  await database.query(
    "INSERT INTO data_gap SELECT $1, 2, 'DEAL_PARTICIPANTS', g, 'X', '', $2 FROM generate_series(1, 300) g",
    [acme, now],
  );
  await database.query("ANALYZE data_gap");
  await database.scope(acme).transaction(async (reading) => {
    await readQuietFacts({ ...reading, copyId: 1 }, ids(DEALS), now);
    const [read] = await reading.rows<{ n: number }>(
      "SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0)) AS n FROM pg_stat_xact_user_tables WHERE relname = $1",
      ["data_gap"],
      { n: "number" },
    );
    expect(read?.n ?? 0).toBeLessThanOrEqual(300);
  });
});
