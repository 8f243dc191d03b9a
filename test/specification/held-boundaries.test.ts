import { Client } from "pg";
import { Boundaries } from "../../src/briefing/quiet/boundaries";
import { Database } from "../../src/database/database";
import { createLogger } from "../../src/platform/logger";
import { useDatabase } from "../support/world";

/** More than are taken at once. */
const MANY = 600;

const database = useDatabase();

async function haveBegun(tenant: string, deals: number, since: string): Promise<number> {
  const tenantId = await database.tenantId(tenant);
  await database.query(
    `INSERT INTO deal_silence (tenant_id, copy_id, deal_id, phase, holds_from, holds_until, verdict, is_told, is_listed, judged_as, status, changed_at, currency, value_rank, negative_value)
     SELECT $1, $1, g, phase, now() - $3::interval, 'infinity', CASE phase WHEN 0 THEN 'ACTIVE' ELSE 'QUIET' END, phase = 0, false, '', 'open', now(), '~', 0, 0
     FROM generate_series(1, $2::int) g, generate_series(0, 1) phase`,
    [tenantId, deals, since],
  );
  return tenantId;
}

const untold = (tenantId: number) =>
  database.query("SELECT 1 FROM deal_silence WHERE tenant_id = $1 AND NOT is_told", [tenantId]);

// Seen red: the oldest were looked at again and again, and where all of them were held nobody else's was told.
test("what of one tenant's silences cannot be taken just now holds up nobody else's", async () => {
  const held = await haveBegun("held", MANY, "2 hours");
  const other = await haveBegun("other", 1, "1 hour");
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  await holder.query("BEGIN");
  await holder.query("SELECT 1 FROM deal_silence WHERE tenant_id = $1 FOR UPDATE", [held]);
  const boundaries = new Boundaries(new Database(database.dataSource), () => new Date(), createLogger("silent"));
  await boundaries.pass();
  expect([(await untold(held)).length, (await untold(other)).length]).toEqual([MANY, 0]);
  await holder.query("ROLLBACK");
  await holder.end();
  await boundaries.pass();
  expect(await untold(held)).toEqual([]);
});
