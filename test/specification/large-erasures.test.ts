import { inBatches } from "../../src/database/upsert";
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
