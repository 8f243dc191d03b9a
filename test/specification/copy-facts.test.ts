import { readCopyFacts } from "../../src/briefing/copy-facts";
import { SAME_TIME_MS, standingAt, WINDOW_MS } from "../../src/briefing/matching/facts";
import type { CopyScope } from "../../src/database/database";
import { jsonRows } from "../../src/database/upsert";
import { DAY_MS } from "../../src/platform/clock";
import { emptyCopy } from "../support/copy";
import { useDatabase } from "../support/world";

// What is read of a copy is narrowed by statements, and by what it is narrowed stands in the rules. Planted and seen red: a deal
// left out whose times the CRM does not say, or that another meeting of the page is about; an activity of another time, or without
// its person; somebody with two addresses counted as two.

const NOW = new Date("2026-11-20T10:00:00Z");
const MEETINGS = [-60, 0, -90].map((days) => new Date(NOW.getTime() + days * DAY_MS));
/** Around each meeting by so much: just within, and just without. */
const around = (byMs: number): Date[] =>
  MEETINGS.flatMap((start) =>
    [-byMs - 1, -byMs, byMs, byMs + 1].map((distance) => new Date(start.getTime() + distance)),
  );

const ADDED = [null, ...around(WINDOW_MS)];
const ENDS = [null, ...around(WINDOW_MS)].flatMap((time) => [
  { wonTime: time, lostTime: null, closeTime: null },
  { wonTime: null, lostTime: time, closeTime: null },
  { wonTime: null, lostTime: null, closeTime: time },
  { wonTime: new Date(NOW.getTime() - 200 * DAY_MS), lostTime: time, closeTime: null },
]);
const DEALS = ADDED.flatMap((addTime) =>
  ENDS.flatMap((times) => [true, false].map((isOpen) => ({ isOpen, addTime, ...times }))),
).map((deal, index) => ({ crmId: index + 1, ...deal }));

const ACTIVITIES = around(SAME_TIME_MS).flatMap((at) => [
  { at, hasTime: true, done: true, personId: 1, participantIds: [2] },
  { at, hasTime: true, done: false, personId: null, participantIds: [1] },
  { at, hasTime: false, done: true, personId: 1, participantIds: [] },
]);

const database = useDatabase();
let copy: CopyScope;
beforeAll(async () => {
  copy = await emptyCopy(database, NOW);
  const fill = (sql: string, ...parameters: unknown[]) => database.query(sql, [copy.tenantId, ...parameters]);
  await fill(`INSERT INTO person (tenant_id, copy_id, crm_id, name, organization_id, emails, phones, custom_fields)
    SELECT $1, 1, g, '', 1, '[]', '[]', '{}' FROM generate_series(1, 2) g`);
  await fill(`INSERT INTO person_address (tenant_id, copy_id, address, person_id, mailbox, domain)
    SELECT $1, 1, a, p, a, 'acme.example' FROM (VALUES ('ada@acme.example', 1), ('a@acme.example', 1), ('bo@acme.example', 2)) x (a, p)`);
  await fill(
    `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, organization_id, participants_due, participants_known,
       custom_fields, add_time, won_time, lost_time, close_time)
     SELECT $1, 1, r."crmId", '', CASE WHEN r."isOpen" THEN 'open' ELSE 'lost' END, 1, false, true, '{}', r."addTime", r."wonTime", r."lostTime", r."closeTime"
     FROM jsonb_to_recordset($2::jsonb) r ("crmId" bigint, "isOpen" boolean, "addTime" timestamptz, "wonTime" timestamptz, "lostTime" timestamptz, "closeTime" timestamptz)`,
    jsonRows(DEALS),
  );
  await fill(
    `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, person_id, participant_ids, due_at, due_has_time, done, happened_at)
     SELECT $1, 1, row_number() OVER (), '', 'meeting', 1, r."personId", r."participantIds", r.at, r."hasTime", r.done, CASE WHEN r.done THEN r.at END
     FROM jsonb_to_recordset($2::jsonb) r ("personId" bigint, "participantIds" bigint[], at timestamptz, "hasTime" boolean, done boolean)`,
    jsonRows(ACTIVITIES),
  );
});

const read = (starts: readonly Date[]) => {
  const attendees = [{ position: 0, address: "stranger@acme.example" }];
  return readCopyFacts(
    copy,
    starts.map((startsAt) => ({ startsAt, ownerAddress: null, attendees })),
    [],
  );
};
const idsOf = (deals: readonly { crmId: number }[]) => deals.map(({ crmId }) => crmId).sort((a, b) => a - b);

test("of an organization's deals those are read that the rules could take for a meeting, also where several are looked at", async () => {
  const couldBe = (start: Date) => idsOf(DEALS.filter((deal) => standingAt(deal, start) !== null));
  for (const start of MEETINGS) expect(idsOf((await read([start])).deals)).toEqual(couldBe(start));
  const together = new Set(idsOf((await read(MEETINGS)).deals));
  expect(MEETINGS.flatMap(couldBe).filter((id) => !together.has(id))).toEqual([]);
});

test("activities are read that have a time of day and begin with one of the meetings, in whatever order these are, with all who take part", async () => {
  const isOf = (starts: readonly Date[], at: Date) =>
    starts.some((start) => Math.abs(start.getTime() - at.getTime()) <= SAME_TIME_MS);
  for (const starts of [MEETINGS, MEETINGS.slice(0, 1)]) {
    const expected = ACTIVITIES.filter(({ at, hasTime }) => hasTime && isOf(starts, at)).map((one) => ({
      ...{ dealId: 1, at: one.at },
      personIds: [...one.participantIds, ...(one.personId ? [one.personId] : [])],
    }));
    const found = (await read(starts)).activities;
    expect(found).toHaveLength(expected.length);
    expect(found).toEqual(expect.arrayContaining(expected));
  }
});

test("a person with several addresses at a domain is one of its organization's there", async () => {
  const { domains } = await read(MEETINGS);
  expect(domains).toEqual([{ domain: "acme.example", organizationId: 1, persons: 2, isWebsite: false }]);
});
