import { setTimeout as sleep } from "node:timers/promises";
import { readMatches, readPreviousMeetings } from "../../src/briefing/meeting-rows";
import { readGaps, readUnread } from "../../src/connections/completeness";
import { APPLICATION_ROLE } from "../../src/database/application-role";
import { type CopyScope, Database } from "../../src/database/database";
import { useDatabase } from "../support/world";

/** PostgreSQL's statistics are those of all tenants, and most are small. */
const SMALL = { tenants: 200, meetings: 20 };
const LARGE = 6_000;
const SETTLED_MS = 1_500;
/** A few of each index, and one of each table. */
const MOST_BLOCKS = 40;

const database = useDatabase();
let tenantId: number;
const each = "generate_series(1, $2::int) g";
const id = "md5($1::bigint || ':' || g)::uuid";
const startsAt = "now() - g * interval '1 hour'";
const FILL = [
  "INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) SELECT $1, 1, 1, 1, 'LIVE', now() WHERE $2 > 0",
  `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
   SELECT $1, ${id}, g, '', ${startsAt}, '', '', '', '', now() FROM ${each}`,
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_due, participants_known, custom_fields)
   SELECT $1, 1, g, '', 'open', false, true, '{}' FROM ${each}`,
  `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, reason, deal_id, candidates, matched_at, fingerprint)
   SELECT $1, ${id}, 1, ${startsAt}, 'MATCHED', '', g / 2, '[]', now(), '' FROM ${each}`,
  `INSERT INTO matched_record SELECT $1, 1, CASE WHEN g = $2 THEN 'PERSON' ELSE 'DEAL' END, g / 2, ${id} FROM ${each}`,
];

beforeAll(async () => {
  for (let index = 0; index <= SMALL.tenants; index += 1) {
    tenantId = await database.tenantId(`tenant-${index}`);
    const count = index < SMALL.tenants ? SMALL.meetings : LARGE;
    for (const sql of FILL) await database.query(sql, [tenantId, count]);
  }
  await database.query("VACUUM ANALYZE");
  // What was written is still being told of.
  for (let before = -1; before !== (await blocks()); await sleep(SETTLED_MS)) before = await blocks();
});

/** That were read so far, of tables and their indexes. */
async function blocks(): Promise<number> {
  const sql = `SELECT sum(idx_blks_hit + idx_blks_read + heap_blks_hit + heap_blks_read)::int AS blocks
    FROM pg_statio_user_tables WHERE relname IN ('meeting_match', 'meeting', 'deal', 'matched_record')`;
  return (await database.query<{ blocks: number }>(sql))[0]?.blocks ?? 0;
}

/** By a read of an operation, whose plans are made without its values. */
async function reading<T>(read: (copy: CopyScope, meetingId: string) => Promise<T[]>, entity = "DEAL") {
  const matched =
    "SELECT meeting_id AS id FROM matched_record WHERE tenant_id = $1 AND copy_id = 1 AND entity = $2 ORDER BY crm_id DESC LIMIT 1";
  const [meeting] = await database.query<{ id: string }>(matched, [tenantId, entity]);
  await database.query("SELECT pg_stat_force_next_flush()");
  const before = await blocks();
  const found = await new Database(database.dataSource).tenant(tenantId).transaction(async (scope) => {
    await scope.rows(`SET LOCAL ROLE ${APPLICATION_ROLE}`);
    await scope.rows("SET LOCAL plan_cache_mode = force_generic_plan");
    const rows = await read({ ...scope, copyId: 1 }, meeting?.id ?? "");
    await scope.rows("SELECT pg_stat_force_next_flush()");
    return rows.length;
  });
  return { found, blocks: (await blocks()) - before };
}

// Seen red with the matches compared by ANY, which went through all of the tenant's entries in the index of a list; and with
// those read one by one, and beside them all of the tenant's matched deals.
test.each<[string, (copy: CopyScope, id: string) => Promise<unknown[]>]>([
  ["its match", (copy, id) => readMatches(copy, [id])],
  ["the one before it", (copy, id) => readPreviousMeetings(copy, [id], new Date())],
])("of a meeting %s is looked up by itself, however many the tenant has", async (_what, read) => {
  const looked = await reading(read);
  expect(looked.found).toBe(1);
  expect(looked.blocks).toBeLessThan(MOST_BLOCKS);
});

// Seen red without an index of the deals of which it is not known who takes part: all deals of the copy were read.
test.each<[string, string, (copy: CopyScope, id: string) => Promise<unknown[]>]>([
  ["a copy", "DEAL", (copy) => readGaps(copy, new Date())],
  ["a meeting with a person and no deal", "PERSON", async (copy) => [await readUnread(copy, "NOT_KNOWN")]],
])("what %s lacks is found without its other deals", async (_what, entity, read) => {
  const looked = await reading(read, entity);
  expect(looked.found).toBeGreaterThan(0);
  expect(looked.blocks).toBeLessThan(MOST_BLOCKS);
});
