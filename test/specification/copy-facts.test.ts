import { readCopyFacts, readStored } from "../../src/briefing/copy-facts";
import { SAME_TIME_MS, standingAt, WINDOW_MS } from "../../src/briefing/matching/facts";
import type { CopyScope } from "../../src/database/database";
import { jsonRows } from "../../src/database/upsert";
import { DAY_MS, HOUR_MS } from "../../src/platform/clock";
import { emptyCopy } from "../support/copy";
import { useDatabase } from "../support/world";

// What is read of a copy is narrowed by statements, and by what it is narrowed stands in the rules. Planted and seen red: a deal
// left out whose times the CRM does not say, or that another meeting of the page is about; an activity of another time, or without
// its person; somebody with two addresses counted as two; the persons with a user's address.

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
      dealId: 1,
      at: one.at,
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

// Seen red: of a deal of who is gone, that its owner was in the meeting.
test("of an address that a deactivated user left to another the one who is active attends; to nobody, the one who had it", async () => {
  await database.query(
    `INSERT INTO crm_user (tenant_id, copy_id, crm_id, name, email, mailbox, active)
     SELECT $1, 1, id, '', a || '@seller.example', a || '@seller.example', active
     FROM (VALUES (1, 'olga', false), (2, 'olga', true), (3, 'olga', false), (4, 'paul', false)) x (id, a, active)`,
    [copy.tenantId],
  );
  const attendees = [{ position: 0, address: "paul@seller.example" }];
  const { users } = await readCopyFacts(copy, [{ startsAt: NOW, ownerAddress: "olga@seller.example", attendees }], []);
  expect(users.map(({ crmId }) => crmId).sort()).toEqual([2, 4]);
});

/** What is kept of a meeting that is about the deal 1 since `NOW`: writes are of so many hours after that. */
interface Stored {
  chosen?: { dealId: number; companyId: number };
  writes?: { table: "note_write" | "field_write"; state: string; companyId: number; hours: number }[];
}
const written = (table: "note_write" | "field_write", state: string, companyId = 1, hours = 0) => ({
  writes: [{ table, state, companyId, hours }],
});
const LAST = {
  dealId: 1,
  rule: "ONLY_CANDIDATE",
  reason: "The only one.",
  since: NOW.toISOString(),
  people: ["ada@acme.example"],
};
const [THERE, GONE] = [1, 999_999];
const BY_WRITE = { dealId: 1, isThere: true, written: LAST, keptFor: LAST.people };

test.each<[string, Stored, object | null]>([
  ["neither choice nor write", {}, null],
  [
    "a choice, for those who led to the deal",
    { chosen: { dealId: THERE, companyId: 1 } },
    { dealId: THERE, isThere: true, written: null, keptFor: LAST.people },
  ],
  [
    "a choice of a deal to which nobody has led yet",
    { chosen: { dealId: 2, companyId: 1 } },
    { dealId: 2, isThere: true, written: null, keptFor: [] },
  ],
  [
    "a choice in another CRM company that has a deal of this number",
    { chosen: { dealId: THERE, companyId: 2 } },
    { dealId: THERE, isThere: false, written: null, keptFor: LAST.people },
  ],
  [
    "a choice of a deal that is gone",
    { chosen: { dealId: GONE, companyId: 1 } },
    { dealId: GONE, isThere: false, written: null, keptFor: [] },
  ],
  [
    "a choice after a write",
    { chosen: { dealId: 2, companyId: 1 }, ...written("field_write", "WRITTEN") },
    { dealId: 2, isThere: true, written: null, keptFor: [] },
  ],
  ["a note of which nobody knows", written("note_write", "UNKNOWN"), BY_WRITE],
  ["a value", written("field_write", "WRITTEN"), BY_WRITE],
  ["a note that is not there", written("note_write", "FAILED"), null],
  ["a note by the match before", written("note_write", "UNKNOWN", 1, -1), null],
  ["a value in another CRM company", written("field_write", "WRITTEN", 2), null],
])("a meeting's deal is kept, or not, by %s", async (title, { chosen, writes }, kept) => {
  const { tenantId } = copy;
  const [meeting] = await database.query<{ id: string }>(
    `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
     SELECT $1, gen_random_uuid(), $2, '', $3, '', '', '', '', $3 RETURNING id`,
    [tenantId, title, NOW],
  );
  const id = meeting?.id ?? "";
  await database.query(
    `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, reason, deal_id, candidates, matched_at, fingerprint, last_deal,
       chosen_deal_id, chosen_company_id)
     SELECT $1, $2, 1, $3, 'MATCHED', '', 1, '[]', $3, 'f', $4, $5, $6`,
    [tenantId, id, NOW, LAST, chosen?.dealId, chosen?.companyId],
  );
  for (const { table, state, companyId, hours } of writes ?? [])
    await database.query(
      `INSERT INTO ${table} (tenant_id, id, idempotency_key, input_hash, meeting_id, copy_id, crm_company_id, entity, target_id, state, requested_by,
         requested_at, ${table === "note_write" ? "reference" : "position, field_key, value"})
       SELECT $1, gen_random_uuid(), $2, '', $3, 1, $4, 'DEAL', 1, $5, 'anna', $6, ${table === "note_write" ? "$2" : "0, '', '1'"}`,
      [tenantId, title, id, companyId, state, new Date(NOW.getTime() + hours * HOUR_MS)],
    );
  const stored = await readStored(copy, 1, [id]);
  expect([...stored]).toEqual([[id, { fingerprint: "f", lastDeal: LAST, dealId: 1, kept }]]);
});

test("a user is a seller, and whoever has the same address is not looked up: an import may have given it to thousands", async () => {
  const user =
    "INSERT INTO crm_user (tenant_id, copy_id, crm_id, name, email, mailbox, active) VALUES ($1, 1, 7, '', $2, $2, true)";
  await database.query(user, [copy.tenantId, "ada@acme.example"]);
  const of = async (ownerAddress: string | null, ...addresses: string[]) => {
    const attendees = addresses.map((address, position) => ({ position, address }));
    const { persons, domains, users } = await readCopyFacts(copy, [{ startsAt: NOW, ownerAddress, attendees }], []);
    return [persons.map(({ crmId }) => crmId), domains.length, users.map(({ crmId }) => crmId)];
  };
  expect(await of("ada@acme.example")).toEqual([[], 0, [7]]);
  expect(await of("ada@acme.example", "bo@acme.example")).toEqual([[2], 1, [7]]);
  expect(await of(null, "a@acme.example", "ada@acme.example")).toEqual([[1], 1, [7]]);
});
