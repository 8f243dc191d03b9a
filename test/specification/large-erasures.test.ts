import { inBatches } from "../../src/database/upsert";
import { exportOf, findPerson } from "../../src/operator/person";
import { fillTenants, onOneServer, reading } from "../support/blocks";
import { useDatabase } from "../support/world";

/** Together they have six times as many rows as the large one, whose rows were written last. */
const SMALL = { tenants: 100, of: 300 };
const LARGE = 5_000;

const FILL = [
  `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, person_id, participant_ids, due_has_time, done)
   SELECT $1, 1, g, 'A call', 'call', g, g, '{}', false, true FROM generate_series(1, $2::int) g`,
];

const database = useDatabase();

// Seen red: each batch began at the table's first row, and went through those of all tenants, 6.5 blocks for each row that went.
onOneServer("what a large tenant leaves is deleted without a look at what others have", async () => {
  const { tenantId } = await fillTenants(database, FILL, { small: SMALL, large: LARGE });
  const copy = { table: "activity", where: "copy_id = $2", parameters: [1], size: LARGE / 50 };
  const { found, blocks } = await reading(database, ["activity"], tenantId, async (scope) => {
    await scope.rows("SET LOCAL plan_cache_mode = auto");
    return inBatches(scope, copy);
  });
  expect(found).toBe(LARGE);
  expect(blocks).toBeLessThan(4 * LARGE);
});

// Seen red: of ten thousand attendees of the person's meetings those that came first were looked through, and nothing said so.
test("an export has the person's place in each meeting, however many others were there", async () => {
  const tenantId = await database.tenantId("crowded");
  await database.query(
    `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
     VALUES ($1, gen_random_uuid(), 'fair', 'A fair', now(), 'anna@seller.example', 'anna@seller.example', '', 'anna', now())`,
    [tenantId],
  );
  await database.query(
    `INSERT INTO meeting_attendee (tenant_id, meeting_id, position, email, side, match_status, match_reason, candidate_ids, organization_status)
     SELECT $1, m.id, g, 'p' || g || '@buyer.example', 'BUYER', 'NONE', '', '{}', 'NONE' FROM meeting m, generate_series(0, 10500) g
     WHERE m.tenant_id = $1`,
    [tenantId],
  );
  const all = database.opened();
  const scope = all.tenant(tenantId);
  const person = await findPerson(scope, "p10500@buyer.example");
  const { held, cutAt } = await exportOf(all, scope, person);
  expect([held.attendances, cutAt]).toEqual([[expect.objectContaining({ position: 10_500 })], []]);
  // Recorded anew between the two, the place is another's, who is nobody's to export.
  await database.query("UPDATE meeting_attendee SET email = 'other@buyer.example' WHERE position = 10500");
  expect((await exportOf(all, scope, person)).held.attendances).toEqual([]);
});
