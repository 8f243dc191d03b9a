import { readCopyFacts } from "../../src/briefing/copy-facts";
import { readFields } from "../../src/briefing/fields";
import { findBereft } from "../../src/briefing/match-meeting";
import { meetingsById, readPreviousMeetings } from "../../src/briefing/meeting-rows";
import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import {
  readDealLinks,
  readOpenDealsOf,
  readPersonsOf,
  readSetup,
  readStagesOf,
  readUnreadDealsOf,
} from "../../src/briefing/records";
import { readNextActivities } from "../../src/briefing/timeline";
import { readCopyState } from "../../src/connections/completeness";
import { type CopyScope } from "../../src/database/database";
import { CrmUserRow } from "../../src/entities/crm-company";
import { HOUR_MS } from "../../src/platform/clock";
import { createLogger } from "../../src/platform/logger";
import { RUNS_KEPT_MS, readRunStatus, readRunsById, sweepRuns } from "../../src/sync/run-history";
import { NOTE } from "../../src/writeback/receipts";
import { NEWEST_WRITE, readReceipts, readWrites } from "../../src/writeback/write-history";
import { FEW_BLOCKS, fillTenants, MEETING_ID, onOneServer, reading } from "../support/blocks";
import { useDatabase } from "../support/world";

/** What a page shows a little of may be thousands in a large company; PostgreSQL plans for the average one, which is small. */
const SMALL = { tenants: 400, of: 10 };
const LARGE = 3_000;

const each = "generate_series(1, $2::int) g";
const at = "now() - g * interval '1 hour'";
const RECEIPT = `$1, ${MEETING_ID}, 'key-' || g, '', ${MEETING_ID}, 1, 1, 'DEAL', 1, 'FAILED', 'u', ${at} FROM ${each}`;
/** Everything hangs on the first of what it can hang on. */
const INSERTS = [
  `INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) SELECT $1, 1, 1, 1, 'LIVE', now() WHERE $2 > 0`,
  `INSERT INTO crm_user SELECT $1, 1, g, 'User', 'u' || g || '@seller.example', 'u' || g || '@seller.example', true FROM ${each}`,
  `INSERT INTO pipeline SELECT $1, 1, g, 'Pipeline', g FROM ${each}`,
  `INSERT INTO stage SELECT $1, 1, g, 'Stage', g, g, NULL FROM ${each}`,
  `INSERT INTO crm_field SELECT $1, 1, 'DEAL', 'key-' || f, f, 'Field', 'enum', (SELECT jsonb_object_agg(g::text, md5(g::text)) FROM ${each})
   FROM generate_series(1, 4) f`,
  `INSERT INTO person (tenant_id, copy_id, crm_id, name, organization_id, emails, phones, custom_fields)
   SELECT $1, 1, g, 'Person', 1, '[]', '[]', '{}' FROM ${each}`,
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, person_id, organization_id, stage_id, owner_id, participants_due, participants_known, custom_fields)
   SELECT $1, 1, g, '', 'open', 1, 1, g, g, true, false, '{}' FROM ${each}`,
  `INSERT INTO data_gap SELECT $1, 1, 'DEAL_PARTICIPANTS', g, 'CRM_UNAVAILABLE', '', now() FROM ${each}`,
  `INSERT INTO rejected_record (tenant_id, copy_id, resource, record_key, reason, payload, since, seen_at)
   SELECT $1, 1, 'ACTIVITIES', g, '', '{"subject": "What the CRM sent of it."}', now(), now() FROM ${each}`,
  `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, participant_ids, due_at, due_has_time, done, done_at, happened_at)
   SELECT $1, 1, g, '', 'call', 1, '{}', ${at}, true, g > 1, ${at}, CASE WHEN g > 1 THEN ${at} END FROM ${each}`,
  "UPDATE activity SET due_at = now() + interval '1 day' WHERE tenant_id = $1 AND NOT done AND $2 > 0",
  `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
   SELECT $1, ${MEETING_ID}, g, '', ${at}, '', '', '', '', now() FROM ${each}`,
  `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, reason, deal_id, candidates, matched_at, fingerprint)
   SELECT $1, ${MEETING_ID}, 1, ${at}, 'MATCHED', '', 1, '[]', now(), '' FROM ${each}`,
  `INSERT INTO matched_record SELECT $1, 1, entity, 1, ${MEETING_ID} FROM ${each}, unnest(ARRAY['DEAL', 'PERSON', 'ORGANIZATION']) entity WHERE g <= 3`,
  `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at, finished_at) SELECT $1, ${MEETING_ID}, 1, 'INCREMENTAL', 'SUCCEEDED', ${at}, ${at} FROM ${each}`,
  `INSERT INTO note_write (tenant_id, id, idempotency_key, input_hash, meeting_id, copy_id, crm_company_id, entity, target_id, state, requested_by, requested_at, reference)
   SELECT ${RECEIPT.replace(" FROM", ", g FROM")}`,
  `INSERT INTO field_write (tenant_id, id, idempotency_key, input_hash, meeting_id, copy_id, crm_company_id, entity, target_id, state, requested_by, requested_at, position, field_key, value)
   SELECT ${RECEIPT.replace(" FROM", ", 0, '', '1' FROM")}`,
];
const TABLES = INSERTS.flatMap((sql) => /^INSERT INTO (\w+)/.exec(sql)?.[1] ?? []);

const database = useDatabase();
let tenantId: number;
let meetingId: string;

beforeAll(async () => {
  ({ tenantId, meetingId } = await fillTenants(database, INSERTS, { small: SMALL, large: LARGE }));
}, 300_000);

const newest = { first: 5, after: null, order: NEWEST_WRITE };
const everybodys = { meetingId: null, by: null, idempotencyKey: null };

// Each was seen red as it was before: all that the company has of it was read, for some as often as there are parents. `most`:
// blocks of tables and indexes.
onOneServer.each<[what: string, count: number, most: number, read: (copy: CopyScope) => Promise<unknown[]>]>([
  ["a user", 1, 30, (copy) => readSetup(copy, CrmUserRow, [7])],
  [
    "the stages of pipelines",
    20,
    100,
    (copy) =>
      readStagesOf(
        copy,
        Array.from({ length: 20 }, (_, index) => index + 1),
      ),
  ],
  ["a meeting", 1, 25, (copy) => meetingsById(copy, [meetingId])],
  [
    "the meeting before another one of the same deal",
    1,
    40,
    (copy) => readPreviousMeetings(copy, [meetingId], new Date()),
  ],
  ["why it is not known who takes part in deals", 3, 70, (copy) => readDealLinks(copy, [1, 2, 3])],
  ["of how many of a company's deals that is not known", 1, 10_000, (copy) => readUnreadDealsOf(copy, [1])],
  ["the matched persons of an organization", 1, 200, (copy) => readPersonsOf(copy, [1], 5)],
  ["the matched deals of an organization", 1, 200, (copy) => readOpenDealsOf(copy, "ORGANIZATION", [1], 5)],
  ["the matched deals of a person", 1, 200, (copy) => readOpenDealsOf(copy, "PERSON", [1], 5)],
  ["the next activity of a deal", 1, 30, (copy) => readNextActivities(copy, [1], new Date())],
  ["a run", 1, 20, (copy) => readRunsById(copy, [meetingId])],
  ["the last runs", 1, 30, async (copy) => [await readRunStatus(copy, 1)]],
  ["the last runs of a copy that has none yet", 1, 30, async (copy) => [await readRunStatus(copy, 2)]],
  ["a receipt", 1, 30, (copy) => readReceipts(copy, NOTE, [meetingId])],
  ["the latest writes", 5, 60, async (copy) => (await readWrites(copy, everybodys, newest)).rows],
  ["the writes of a user", 0, 60, async (copy) => (await readWrites(copy, { ...everybodys, by: "v" }, newest)).rows],
  ["what silence is judged by", 1, 400, async (copy) => (await readQuietFacts(copy, [7], new Date()))?.deals ?? []],
  ["how whole the copy is", 1, 60, async (copy) => (await readCopyState(copy)).unreadable],
  [
    "meetings that know what is gone",
    0,
    60,
    async (copy) => (await findBereft(copy, new Date()).next()).value?.ids ?? [],
  ],
  [
    "fields in words",
    20,
    150,
    async (copy) => {
      const records = Array.from({ length: 20 }, (_, index) => ({ "key-1": index + 1, "key-2": String(index + 1) }));
      return readFields(copy, "DEAL", records, async () => []);
    },
  ],
])("of thousands that a company has, %s is found without the others", async (_what, count, most, read) => {
  const { found, blocks } = await reading(database, TABLES, tenantId, read);
  expect(found).toHaveLength(count);
  expect(blocks).toBeLessThan(most);
});

// Seen red: all that was ever done for a deal was read each time that one of its meetings is looked at.
onOneServer(
  "of thousands of a deal's activities those at the time of meetings are found without the others",
  async () => {
    const meetings = [-2, 24].map((hours) => {
      return { startsAt: new Date(Date.now() + hours * HOUR_MS), ownerAddress: null, attendees: [] };
    });
    const read = (copy: CopyScope) => readCopyFacts(copy, meetings, [1]);
    const { found, blocks } = await reading(database, ["activity"], tenantId, read);
    // One that was done, and the one that is planned.
    expect(found.activities.map(({ at }) => at > new Date()).sort()).toEqual([false, true]);
    expect(blocks).toBeLessThan(FEW_BLOCKS);
  },
);

// Seen red: they were kept for ever, and what looks for the last ones looked through all of them.
test("runs go with their steps after 90 days, but not the last that succeeded", async () => {
  const before = new Date(Date.now() - RUNS_KEPT_MS);
  const runs = (which: string) =>
    database.query<{ id: string }>(
      `SELECT id FROM sync_run WHERE tenant_id = $1 AND queued_at ${which} $2 ORDER BY queued_at DESC`,
      [tenantId, before],
    );
  await database.query("UPDATE sync_run SET state = 'FAILED' WHERE tenant_id = $1 AND queued_at >= $2", [
    tenantId,
    before,
  ]);
  const [kept, [last]] = [await runs(">="), await runs("<")];
  await database.query(
    "INSERT INTO sync_step (tenant_id, run_id, resource, state) SELECT $1, id, 'DEALS', 'SUCCEEDED' FROM sync_run WHERE tenant_id = $1",
    [tenantId],
  );
  // Of a copy that has gone nothing says how old it is.
  await database.query(
    `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at, finished_at)
     SELECT $1, gen_random_uuid(), g, 'FULL', 'SUCCEEDED', $2, $2 FROM generate_series(2, 5) g`,
    [tenantId, new Date(0)],
  );
  for (let sweeps = 0; sweeps < 2; sweeps += 1) await sweepRuns(database.opened(), createLogger("silent"), new Date());
  expect(await runs(">=")).toEqual(kept);
  expect(await runs("<")).toEqual([last]);
  const steps = await database.query("SELECT 1 FROM sync_step WHERE tenant_id = $1", [tenantId]);
  expect(steps).toHaveLength(kept.length + 1);
});
