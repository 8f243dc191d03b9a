import { previewQuiet } from "../../src/briefing/quiet/preview";
import { judgeByPresentRules } from "../../src/briefing/quiet/rejudging";
import { STANDARD } from "../../src/briefing/quiet/rules";
import { onOneServer, reading, settled } from "../support/blocks";
import { NOW } from "../support/quiet-facts";
import { COPY, HEALTHY } from "../support/quiet-lines";
import { QuietRows } from "../support/quiet-rows";
import { useDatabase } from "../support/world";

/** Each of them is of so many meetings: a company that meets its buyers each week. */
const [DEALS, MEETINGS] = [3_000, 10];
const now = new Date(NOW);
const database = useDatabase();

const ENTRIES =
  "SELECT coalesce(sum(idx_tup_read), 0)::int AS n FROM pg_stat_user_indexes WHERE relname = 'matched_record'";
const read = async () => (await database.query<{ n: number }>(ENTRIES))[0]?.n ?? 0;

// Seen red: each batch of deals went through what all of the tenant's meetings had matched, from its beginning.
onOneServer("a preview looks at what is matched once, however many deals and meetings there are", async () => {
  const tenantId = await database.tenantId("acme");
  const rows = new QuietRows(tenantId, 1, { ...COPY, readAt: NOW, asOf: NOW });
  rows.deal(HEALTHY, { notes: [], fields: [] });
  await rows.insert(database);
  for (const sql of [
    `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, add_time, participants_due, participants_known, custom_fields)
     SELECT $1, 1, 10 + g, '', 'open', now(), false, true, '{}' FROM generate_series(1, ${DEALS}) g`,
    `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
     SELECT $1, md5(m::text)::uuid, m, '', now(), '', '', '', '', now() FROM generate_series(1, ${MEETINGS}) m`,
    `INSERT INTO matched_record (tenant_id, copy_id, entity, crm_id, meeting_id)
     SELECT $1, 1, 'DEAL', 10 + g, md5(m::text)::uuid FROM generate_series(1, ${DEALS}) g, generate_series(1, ${MEETINGS}) m`,
  ])
    await database.query(sql, [tenantId]);
  const copy = { ...database.scope(tenantId), copyId: 1 };
  await judgeByPresentRules(copy, now);
  await settled(database, ["deal", "matched_record", "deal_silence"]);
  const before = await read();
  const { found } = await reading(database, ["matched_record"], tenantId, (one) => previewQuiet(one, STANDARD, now));
  expect(found).toMatchObject({ becomeQuiet: 0 });
  expect((await read()) - before).toBeLessThan(3 * DEALS);
});
