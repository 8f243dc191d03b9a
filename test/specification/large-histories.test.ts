import { findOutdated } from "../../src/briefing/match-meeting";
import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { readMatchedIds, readRecentActivities } from "../../src/briefing/records";
import { readContacts, timelineOf } from "../../src/briefing/timeline";
import { noteWaiting } from "../../src/connections/journal";
import { type CopyScope } from "../../src/database/database";
import { inWindow, isWithin, windowsOf } from "../../src/database/keyset";
import { textsOf } from "../../src/entities/index";
import { mentions } from "../../src/operator/person";
import { mentionsOf } from "../../src/platform/mentions";
import { extendLease } from "../../src/sync/runs";
import { soonAt, TENANTS_WITH_MEETINGS_SOON } from "../../src/sync/schedule-rows";
import { FEW_BLOCKS, fillTenants, MEETING_ID, onOneServer, reading } from "../support/blocks";
import { useDatabase } from "../support/world";

/** PostgreSQL's statistics are those of all tenants, and most are small. */
const SMALL = { tenants: 200, of: 20 };
const LARGE = 6_000;

const each = "generate_series(1, $2::int) g";
const ago = "now() - g * interval '1 hour'";
/** A third of what was done is with person 1, and so is the first meeting; half of what is planned is of the last deals. */
const FILL = [
  "INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) SELECT $1, 1, 1, 1, 'LIVE', now() WHERE $2 > 0",
  "INSERT INTO connection (tenant_id, state, state_changed_at, copy_id) SELECT $1, 'CONNECTED', now(), 1 WHERE $2 > 0",
  `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
   SELECT $1, ${MEETING_ID}, g, '', CASE g WHEN 1 THEN now() + interval '1 minute' ELSE ${ago} END, '', '', '', '', now() FROM ${each}`,
  `INSERT INTO meeting_attendee (tenant_id, meeting_id, position, email, side, match_status, match_reason, person_id, candidate_ids, organization_status)
   SELECT $1, ${MEETING_ID}, 0, 'p@buyer.example', 'BUYER', 'MATCHED', '', g, '{}', 'NONE' FROM ${each}`,
  `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, reason, deal_id, candidates, matched_at, fingerprint)
   SELECT $1, ${MEETING_ID}, 1, ${ago}, 'MATCHED', '', g, '[]', now(), '' FROM ${each}`,
  `INSERT INTO matched_record SELECT $1, 1, entity, g, ${MEETING_ID} FROM ${each}, unnest(ARRAY['DEAL', 'PERSON']) entity`,
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, organization_id, participants_due, participants_known, custom_fields)
   SELECT $1, 1, g, '', 'open', g, false, true, '{}' FROM ${each}`,
  "INSERT INTO person_address SELECT $1, 1, 'p' || g || '@buyer.example', g, 'p' || g || '@buyer.example' FROM generate_series(1, $2::int) g",
  `INSERT INTO person (tenant_id, copy_id, crm_id, name, emails, phones, custom_fields) SELECT $1, 1, g, '', '[]', '[]', '{}' FROM ${each}`,
  `INSERT INTO deal_participant SELECT $1, 1, g, g + p FROM ${each}, generate_series(0, 9) p`,
  `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, person_id, participant_ids, due_at, due_has_time, done, done_at, happened_at)
   SELECT $1, 1, g, 'A call', 'call', g, CASE g % 3 WHEN 0 THEN 1 ELSE g END, '{}', ${ago}, g % 2 = 0, g % 4 > 0, ${ago}, CASE WHEN g % 4 > 0 THEN ${ago} END FROM ${each}`,
  `INSERT INTO deal_change (tenant_id, copy_id, deal_id, seen_at, kind, was, became) SELECT $1, 1, g, ${ago}, 'STAGE', '1', '2' FROM ${each}`,
  `INSERT INTO note SELECT $1, 1, g, 'A note', 1, g, g, NULL, ${ago} FROM ${each}`,
  `INSERT INTO note_write (tenant_id, id, idempotency_key, input_hash, meeting_id, copy_id, crm_company_id, entity, target_id, state, crm_note_id, requested_by, requested_at, reference)
   SELECT $1, ${MEETING_ID}, 'key-' || g, '', ${MEETING_ID}, 1, 1, 'DEAL', 1, 'WRITTEN', 1000000 + g, 'u', ${ago}, g FROM ${each}`,
  `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at, finished_at)
   SELECT $1, ${MEETING_ID}, 1, 'INCREMENTAL', 'SUCCEEDED', ${ago}, ${ago} FROM ${each}`,
];

const database = useDatabase();
let tenantId: number;
let meetingId: string;

beforeAll(async () => {
  ({ tenantId, meetingId } = await fillTenants(database, FILL, { small: SMALL, large: LARGE }));
}, 300_000);

// Seen red, all of them by plans that are kept for tenants of every size: all of the person's activities were opened; all that is
// planned by the tenant was gone through for each deal, and all that any meeting made readable.
onOneServer.each<[string, string[], (copy: CopyScope) => Promise<unknown[]>]>([
  ["a timeline: activities", ["activity"], (copy) => readContacts(copy, [meetingId], 5, new Date())],
  ["a timeline: matches", ["matched_record"], (copy) => readContacts(copy, [meetingId], 5, new Date())],
  [
    "what is planned of deals",
    ["activity"],
    (copy) => readQuietFacts(copy, [7, 8, 9], new Date()).then((found) => found?.deals ?? []),
  ],
  ["what waits in the journal", ["deal_change"], (copy) => noteWaiting(copy, new Date()).then(() => [])],
  ["recent activities", ["activity"], (copy) => readRecentActivities(copy, "PERSON", [1], 5)],
  ["what a meeting made readable", ["matched_record"], (copy) => readMatchedIds(copy, [meetingId])],
])("%s are found without the tenant's others", async (_what, tables, read) => {
  const { blocks } = await reading(database, tables, tenantId, read);
  expect(blocks).toBeGreaterThan(0);
  expect(blocks).toBeLessThan(FEW_BLOCKS);
});

// Seen red with all looked at that were due since it took place.
onOneServer("what was ticked off years before it is due opens no history among recent activities", async () => {
  await database.query(
    `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, person_id, participant_ids, due_at, due_has_time, done, done_at, happened_at)
     VALUES ($1, 1, 99999999, 'Renewal', 'call', NULL, 1, '{}', '2030-01-01Z', true, true, '2000-01-01Z', '2030-01-01Z')`,
    [tenantId],
  );
  const recent = await reading(database, ["activity"], tenantId, (copy) =>
    readRecentActivities(copy, "PERSON", [1], 5),
  );
  expect(recent.blocks).toBeLessThan(FEW_BLOCKS);
});

// Seen red: for each page of a sync the rows of the tenants before were gone through, and for each fifty meetings that are looked
// at after it all matches of the tenant, all its deals, and everybody who takes part in one.
onOneServer("what a page of a sync, and a look at a meeting after it, need is found without the rest", async () => {
  const run = {
    tenantId,
    runId: meetingId,
    leaseId: meetingId,
    copyId: 1,
    kind: "INCREMENTAL",
    leaseUntil: new Date(),
    startedAt: new Date(),
    toldAt: 0,
  } as const;
  const page = await reading(database, ["matched_record"], tenantId, async (copy) => {
    await copy.rows("SET LOCAL plan_cache_mode = auto");
    await copy.rows("UPDATE sync_run SET state = 'RUNNING', lease_id = id WHERE tenant_id = $1 AND id = $2", [
      tenantId,
      meetingId,
    ]);
    return extendLease(copy, run, new Date());
  });
  expect(page.found?.hasMatchedDeals).toBe(true);
  expect(page.blocks).toBeLessThan(FEW_BLOCKS);
  const row = { id: meetingId, startsAt: new Date(), endsAt: null, ownerEmail: "", cancelledAt: null };
  const meeting = { row, attendees: [{ email: "p1@buyer.example", name: null }] };
  const tables = ["meeting_match", "deal_participant", "deal", "person", "person_address", "activity", "organization"];
  const look = await reading(database, tables, tenantId, (copy) => findOutdated(copy, [meeting]));
  expect(look.found).toHaveLength(1);
  expect(look.blocks).toBeLessThan(2 * FEW_BLOCKS);
});

/** Activity 1 is the latest by the order in which they are read, and 2 took place last. */
const OTHERWISE_ORDERED = [
  [
    "a day that begins late",
    "America/Los_Angeles",
    "(1, '2026-11-18T05:00Z', true, NULL), (2, '2026-11-18', false, NULL)",
  ],
  [
    "a day that begins early",
    "Pacific/Kiritimati",
    "(1, '2026-11-18', false, NULL), (2, '2026-11-17T14:00Z', true, NULL)",
  ],
  [
    "what was ticked off before it was due",
    "UTC",
    "(1, '2026-11-18', true, '2026-11-10'), (2, '2026-11-17', true, NULL), (3, '2026-11-16', true, NULL)",
  ],
];

// Seen red, each, where nothing earlier was read than the latest of that order.
test.each(OTHERWISE_ORDERED)("the latest of a timeline is found also behind %s", async (what, timeZone, rows) => {
  const scope = database.scope(await database.tenantId(what));
  for (const sql of FILL) await database.query(sql, [scope.tenantId, 1]);
  for (const table of ["activity", "note"])
    await scope.rows(`DELETE FROM ${table} WHERE tenant_id = $1`, [scope.tenantId]);
  await database.query("INSERT INTO judged_copy (tenant_id, copy_id, standards) VALUES ($1, 1, $2)", [
    scope.tenantId,
    { timeZone },
  ]);
  await database.query(
    `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, participant_ids, due_at, due_has_time, done, done_at, happened_at)
     SELECT $1, 1, id, '', 'call', 1, '{}', due::timestamptz, has_time, true, done_at::timestamptz, due::timestamptz
     FROM (VALUES ${rows}) AS one (id, due, has_time, done_at)`,
    [scope.tenantId],
  );
  const [{ id: meeting = "" } = {}] = await database.query<{ id: string }>(
    "SELECT id FROM meeting WHERE tenant_id = $1",
    [scope.tenantId],
  );
  const contacts = await readContacts({ ...scope, copyId: 1 }, [meeting], 1, new Date());
  expect(timelineOf({ contacts, deals: [], people: new Set(), mails: [] }, 1)).toMatchObject([{ activityId: 2 }]);
  // These have a day without a time at its midnight in UTC.
  const recent = await readRecentActivities({ ...scope, copyId: 1 }, "DEAL", [1], 2);
  expect(recent.map(({ crmId }) => crmId)).toEqual(timeZone === "UTC" ? [2, 3] : [1, 2]);
});

// Seen red: for each meeting all of its tenant's runs were gone through.
onOneServer("meetings that begin soon are found without the runs of before", async () => {
  const now = new Date();
  const { blocks, found } = await reading(database, ["sync_run"], tenantId, async ({ rows }) => {
    await rows("RESET ROLE");
    return rows(TENANTS_WITH_MEETINGS_SOON, [...soonAt(now), new Date(now.getTime() - 60_000)]);
  });
  expect(found).toHaveLength(200);
  expect(blocks).toBeLessThan(10 * SMALL.tenants);
});

// Seen red where only runs that have ended counted.
test("no tenant is found of whom a run is open", async () => {
  const now = new Date();
  const asked = [...soonAt(now), new Date(now.getTime() - 60_000)];
  const runner = database.dataSource.createQueryRunner();
  await runner.startTransaction();
  await runner.query(`INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at)
    SELECT tenant_id, gen_random_uuid(), copy_id, 'INCREMENTAL', CASE tenant_id % 2 WHEN 0 THEN 'QUEUED' ELSE 'RUNNING' END, now() FROM connection ON CONFLICT DO NOTHING`);
  expect(await runner.query(TENANTS_WITH_MEETINGS_SOON, asked)).toEqual([]);
  await runner.rollbackTransaction();
  await runner.release();
});

// Seen red with: a window that begins at the last row of the one before.
test("all rows of a table are looked through once, in windows", async () => {
  const of = { table: "activity", keys: ["tenant_id", "copy_id", "crm_id"] };
  const scope = database.scope(tenantId);
  const seen: number[] = [];
  for await (const window of windowsOf(scope, of)) {
    const sql = `SELECT crm_id AS id FROM activity WHERE tenant_id = $1 AND ${isWithin(of, window)} AND subject ~* $2`;
    const asked = [tenantId, "call", ...window];
    const found = await inWindow(scope, (rows) => rows<{ id: number }>(sql, asked, { id: "number" }));
    seen.push(...found.map(({ id: crmId }) => crmId).sort((a, b) => a - b));
  }
  expect(seen).toEqual(Array.from({ length: LARGE }, (_, index) => index + 1));
});

interface PlanNode {
  Filter?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  Plans?: PlanNode[];
}
const compared = (node: PlanNode): number =>
  (node.Filter?.includes("~*")
    ? node["Actual Loops"] * (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0))
    : 0) + (node.Plans ?? []).reduce((sum, one) => sum + compared(one), 0);

// Seen red with a pattern that stands by itself: so rare as it seemed, it was looked for in all rows, for each window.
onOneServer("each row is compared with a person's names once, however many windows the tenant has", async () => {
  const all = database.opened();
  const of = textsOf(all).find(({ table }) => table === "person_address");
  if (!of) throw new Error("addresses are texts");
  const scope = all.tenant(tenantId);
  const patterns = mentionsOf(["nobody@elsewhere.example"], []);
  let looks = 0;
  for await (const window of windowsOf(scope, of)) {
    const sql = `EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1 FROM ${of.table} WHERE tenant_id = $1 AND ${isWithin(of, window)} AND (${mentions(of)})`;
    const asked = [tenantId, patterns, ...window];
    const [plan] = await inWindow(scope, (rows) =>
      rows<{ "QUERY PLAN": [{ Plan: PlanNode }] }>(sql, asked, { "QUERY PLAN": "json" }),
    );
    if (plan) looks += compared(plan["QUERY PLAN"][0].Plan);
  }
  expect(looks).toBe(LARGE);
});
