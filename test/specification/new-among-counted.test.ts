import { APPLICATION_ROLE } from "../../src/database/application-role";
import { type CopyScope } from "../../src/database/database";
import { analyzeDeals } from "../../src/sync/participant-queue";
import { until } from "../support/stories";
import { useDatabase } from "../support/world";

/** PostgreSQL's statistics are those of the last ANALYZE, and a company may be newer. */
const DEALS = 3_000;
const CHANGED = Array.from({ length: 25 }, (_, index) => index + 1);

const database = useDatabase();
let tenantId: number;
let otherId: number;

beforeAll(async () => {
  tenantId = await database.tenantId("acme");
  otherId = await database.tenantId("other");
  await database.query("ALTER TABLE deal SET (autovacuum_enabled = off)");
  await database.query(
    `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_due, participants_known, custom_fields)
     SELECT $1, 1, g, '', 'open', false, true, '{}' FROM generate_series(1, $2::int) g`,
    [tenantId, DEALS],
  );
});

/** As the service, for which an index compares less than for an owner of tables. */
function asService<T>(work: (copy: CopyScope) => Promise<T>): Promise<T> {
  return database.scope(tenantId).transaction(async (scope) => {
    await scope.rows(`SET LOCAL ROLE ${APPLICATION_ROLE}`);
    return work({ ...scope, copyId: 1 });
  });
}

/** How many deals are read to change 25, after participants are to be asked. */
function readToChange(): Promise<number> {
  const read = "SELECT (seq_tup_read + idx_tup_fetch)::int AS n FROM pg_stat_xact_user_tables WHERE relname = 'deal'";
  return asService(async (copy) => {
    await analyzeDeals(copy);
    const before = await copy.rows<{ n: number }>(read, [], { n: "number" });
    const change =
      "UPDATE deal SET participants_due = false WHERE tenant_id = $1 AND copy_id = 1 AND crm_id = ANY ($2)";
    await copy.rows(change, [tenantId, CHANGED]);
    const after = await copy.rows<{ n: number }>(read, [], { n: "number" });
    return (after[0]?.n ?? 0) - (before[0]?.n ?? 0);
  });
}

/** All deals were another company's when they were counted. */
async function countOthers() {
  await database.query("UPDATE deal SET tenant_id = $1, copy_id = 2", [otherId]);
  await database.query("ANALYZE deal");
  await database.query("UPDATE deal SET tenant_id = $1, copy_id = 1", [tenantId]);
  // Told a moment later, by the session that did it.
  const changed = "SELECT FROM pg_stat_user_tables WHERE relname = 'deal' AND n_mod_since_analyze >= $1";
  await until("the change is told", async () => {
    await database.query("SELECT pg_stat_force_next_flush()");
    return (await database.query(changed, [DEALS])).length > 0;
  });
}

// In this order: from the first on the table is counted. Seen red without: 3,000 deals.
test("a few deals of a copy are changed by their keys, once the table has been counted", async () => {
  expect(await readToChange()).toBe(CHANGED.length);
});

// Seen red with a count only of a table that nobody has counted: 3,000 deals.
test("so are those of a company that is newer than the last count", async () => {
  await countOthers();
  expect(await readToChange()).toBe(CHANGED.length);
});

// Seen red with a count for each run, however lately there was one.
test("a company that stays unknown is not counted again and again", async () => {
  await countOthers();
  for (const column of ["tenant_id", "copy_id"]) {
    await database.query(`ALTER TABLE deal ALTER ${column} SET STATISTICS 0`);
  }
  await database.query("ANALYZE deal");
  const counts = "SELECT analyze_count::int AS n FROM pg_stat_user_tables WHERE relname = 'deal'";
  const before = await database.query(counts);
  await asService(analyzeDeals);
  expect(await database.query(counts)).toEqual(before);
});
