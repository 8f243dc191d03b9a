import { readMatches, readPreviousMeetings } from "../../src/briefing/meeting-rows";
import { readOtherDeals } from "../../src/briefing/records";
import { readContacts } from "../../src/briefing/timeline";
import { readGaps, readUnread } from "../../src/connections/completeness";
import type { CopyScope } from "../../src/database/database";
import { FEW_BLOCKS, fillTenants, MEETING_ID, onOneServer, reading as readingBlocks } from "../support/blocks";
import { useDatabase } from "../support/world";

/** PostgreSQL's statistics are those of all tenants, and most are small. */
const SMALL = { tenants: 200, of: 20 };
const LARGE = 6_000;

const TABLES = ["meeting_match", "meeting", "deal", "matched_record"];

const database = useDatabase();
let tenantId: number;
const each = "generate_series(1, $2::int) g";
const startsAt = "now() - g * interval '1 hour'";
const FILL = [
  "INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) SELECT $1, 1, 1, 1, 'LIVE', now() WHERE $2 > 0",
  `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
   SELECT $1, ${MEETING_ID}, g, '', ${startsAt}, '', '', '', '', now() FROM ${each}`,
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_due, participants_known, custom_fields)
   SELECT $1, 1, g, '', 'open', false, true, '{}' FROM ${each}`,
  `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, reason, deal_id, candidates, matched_at, fingerprint)
   SELECT $1, ${MEETING_ID}, 1, ${startsAt}, 'MATCHED', '', g / 2, '[]', now(), '' FROM ${each}`,
  `INSERT INTO matched_record SELECT $1, 1, CASE WHEN g = $2 THEN 'PERSON' ELSE 'DEAL' END, g / 2, ${MEETING_ID} FROM ${each}`,
];

beforeAll(async () => {
  ({ tenantId } = await fillTenants(database, FILL, { small: SMALL, large: LARGE }));
});

/** By what hangs on the tenant's last matched record of the kind. */
async function reading<T>(read: (copy: CopyScope, meetingId: string) => Promise<T[]>, entity = "DEAL") {
  const matched = `SELECT r.meeting_id AS id FROM matched_record r JOIN meeting m ON m.tenant_id = $1 AND m.id = r.meeting_id
    WHERE r.tenant_id = $1 AND r.copy_id = 1 AND r.entity = $2 ORDER BY r.crm_id DESC, m.starts_at DESC LIMIT 1`;
  const [meeting] = await database.query<{ id: string }>(matched, [tenantId, entity]);
  const { found, blocks } = await readingBlocks(database, TABLES, tenantId, (copy) => read(copy, meeting?.id ?? ""));
  return { found: found.length, blocks };
}

// Seen red with the matches compared by ANY, which went through all of the tenant's entries in the index of a list; and with
// those read one by one, and beside them all of the tenant's matched deals.
onOneServer.each<[string, (copy: CopyScope, id: string) => Promise<unknown[]>]>([
  ["its match", (copy, id) => readMatches(copy, [id])],
  ["the one before it", (copy, id) => readPreviousMeetings(copy, [id], new Date())],
])("of a meeting %s is looked up by itself, however many the tenant has", async (_what, read) => {
  const looked = await reading(read);
  expect(looked.found).toBe(1);
  expect(looked.blocks).toBeLessThan(FEW_BLOCKS);
});

// Seen red with an index by deal that has meetings of no deal too: it has all that is asked of a match, and all of the tenant's.
onOneServer.each<[string, (copy: CopyScope, id: string) => Promise<unknown[]>]>([
  ["timeline is", (copy, id) => readContacts(copy, [id], 20, new Date())],
  ["other deals are", (copy, id) => readOtherDeals(copy, [id])],
])("a meeting's %s found without the matches of others", async (_what, read) => {
  expect((await reading(read)).blocks).toBeLessThan(FEW_BLOCKS);
});

// Seen red without an index of the deals of which it is not known who takes part: all deals of the copy were read.
onOneServer.each<[string, string, (copy: CopyScope, id: string) => Promise<unknown[]>]>([
  ["a copy", "DEAL", (copy) => readGaps(copy, new Date())],
  ["a meeting with a person and no deal", "PERSON", async (copy) => [await readUnread(copy, "NOT_KNOWN")]],
])("what %s lacks is found without its other deals", async (_what, entity, read) => {
  const looked = await reading(read, entity);
  expect(looked.found).toBeGreaterThan(0);
  expect(looked.blocks).toBeLessThan(FEW_BLOCKS);
});
