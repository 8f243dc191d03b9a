import { randomUUID } from "node:crypto";
import { readGaps } from "../../src/connections/completeness";
import { APPLICATION_ROLE } from "../../src/database/application-role";
import { type CopyScope } from "../../src/database/database";
import { DAY_MS } from "../../src/platform/clock";
import {
  countDue,
  isAnyDealDue,
  lonelyDeals,
  nearestMeetings,
  nextDeals,
  planTurn,
} from "../../src/sync/participant-queue";
import { onOneServer as test } from "../support/blocks";
import { useDatabase } from "../support/world";

const DEALS = 3_000;
const DUE = 20;
const NEAREST = 5_000;
const now = new Date();
const QUEUE = { mark: now, now, ruleOfOne: false, againBefore: new Date(now.getTime() - 2 * DAY_MS), meetings: [] };

const database = useDatabase();
let [tenantId, newId] = [0, 0];

// Seen red with the statements and indexes of before: 3,000 to 16,000 rows were read, and 100 statements sent.
/** Almost all of one company's deals were closed and asked about long ago; another company has just come, and all of its wait. */
beforeAll(async () => {
  tenantId = await database.tenantId("acme");
  newId = await database.tenantId("new");
  await database.query("ALTER TABLE deal SET (autovacuum_enabled = off)");
  const insert = `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, person_id, participants_count, participants_due,
      participants_known, participants_asked_at, won_time, add_time, custom_fields)
    SELECT $1, $1, g, '', 'won', g, 1 + g % 2, g <= $3, g > $3, CASE WHEN g > $3 THEN now() - interval '1 year' END,
      now() - interval '2 years', now() - interval '3 years', jsonb_build_object('a', repeat('as long as it is', 60)) FROM generate_series(1, $2::int) g`;
  await database.query(insert, [tenantId, DEALS, DUE]);
  await database.query(insert, [newId, DEALS, DEALS]);
  await database.query(
    `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
     SELECT $1, gen_random_uuid(), g, '', $2::timestamptz + (g / 2 - 4000) * interval '1 hour', '', '', '', '', now()
     FROM generate_series(1, 16000) g`,
    [tenantId, now],
  );
  for (const table of ["deal", "meeting"]) await database.query(`VACUUM ANALYZE ${table}`);
});

const READ = `SELECT sum(seq_tup_read + idx_tup_fetch)::int AS n FROM pg_stat_xact_user_tables WHERE relname IN ('deal', 'meeting')`;

/** As the service, for which an index compares less than for an owner of tables. @returns the result, and how many rows were read for it */
function reading<T>(ofTenant: number, work: (copy: CopyScope) => Promise<T>): Promise<[result: T, rows: number]> {
  return database.scope(ofTenant).transaction(async (scope) => {
    await scope.rows(`SET LOCAL ROLE ${APPLICATION_ROLE}`);
    const read = async () => (await scope.rows<{ n: number }>(READ, [], { n: "number" }))[0]?.n ?? 0;
    const before = await read();
    const result = await work({ ...scope, copyId: ofTenant });
    return [result, (await read()) - before];
  });
}

test.each<[string, number, (copy: CopyScope) => Promise<unknown>]>([
  ["a few deals that wait are counted", DUE, (copy) => countDue(copy, now, 1_000_000)],
  ["those of one participant are found", DUE / 2, async (copy) => (await lonelyDeals(copy, now, 0, DEALS)).length],
  ["of long closed ones none is asked again", 0, async (copy) => (await nextDeals(copy, "AGAIN", QUEUE, 500)).length],
])("%s without reading the others", async (_, count, work) => {
  const [found, rows] = await reading(tenantId, work);
  expect(found).toBe(count);
  expect(rows).toBeLessThanOrEqual(2 * DUE);
});

test("of a copy whose deals all wait one is found at once, and they are counted in their index", async () => {
  const [isAny, rows] = await reading(newId, (copy) => isAnyDealDue(copy, now));
  expect(isAny).toBe(true);
  expect(rows).toBeLessThanOrEqual(1);
  const [gaps, readForGaps] = await reading(newId, (copy) => readGaps(copy, now));
  expect(gaps).toContainEqual(expect.objectContaining({ resource: "DEAL_PARTICIPANTS", count: DEALS }));
  expect(readForGaps).toBe(0);
  expect(await reading(newId, (copy) => countDue(copy, now, 1_000_000_000))).toEqual([DEALS, 0]);
});

// Seen red with each that waits looked at: 3,000 deals.
test.each([
  ["few", DUE],
  ["many", DEALS],
])(
  "where of %s deals that wait none is a meeting's that is one question, however many meetings there are",
  async (_, due) => {
    const sent: string[] = [];
    const [deals, rows] = await reading(due === DUE ? tenantId : newId, (copy) => {
      const apply: ProxyHandler<typeof copy.rows>["apply"] = (ask, self, statement) => {
        sent.push(statement[0]);
        return Reflect.apply(ask, self, statement);
      };
      const rows = new Proxy(copy.rows, { apply });
      const meetings = Array.from({ length: NEAREST }, () => randomUUID());
      return nextDeals({ ...copy, rows }, "OF_MEETINGS", { ...QUEUE, meetings }, 500);
    });
    expect(deals).toEqual([]);
    expect(rows).toBeLessThan(DEALS / 2);
    expect(sent).toHaveLength(1);
  },
);

test("the nearest meetings are those to come, the soonest first, then the latest past ones, and no others are read", async () => {
  const [ids, rows] = await reading(tenantId, (copy) => nearestMeetings(copy, now));
  const all = await database.query<{ id: string }>(
    `SELECT id FROM meeting WHERE tenant_id = $1
     ORDER BY starts_at < $2, abs(extract(epoch FROM starts_at - $2::timestamptz)), id LIMIT ${NEAREST}`,
    [tenantId, now],
  );
  expect(ids).toEqual(all.map(({ id }) => id));
  expect(rows).toBe(0);
});

// Seen red, each, with its condition left out.
test.each(["DEAL", "PERSON", "ORGANIZATION"])(
  "among many deals that wait that of a meeting's %s is found",
  async (entity) => {
    const id = randomUUID();
    await database.query(
      `WITH copied AS (
       INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) VALUES ($1, $1, 1, 1, 'LIVE', now()) ON CONFLICT DO NOTHING
     ), recorded AS (
       INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
       VALUES ($1, $2, $3, '', now(), '', '', '', '', now())
     ), known AS (UPDATE deal SET organization_id = 7 WHERE tenant_id = $1 AND crm_id = 7)
     INSERT INTO matched_record VALUES ($1, $1, $3, 7, $2)`,
      [newId, id, entity],
    );
    const [deals] = await reading(newId, (copy) => nextDeals(copy, "OF_MEETINGS", { ...QUEUE, meetings: [id] }, 500));
    expect(deals.map(({ dealId }) => dealId)).toEqual([7]);
    await database.query("DELETE FROM matched_record WHERE tenant_id = $1", [newId]);
  },
);

/** By its number: how many take part, its status, for how many days it has been closed, and for how many its answer is old. */
const traits = (id: number) => ({
  count: [null, 0, 1, 2, 3][id % 5] ?? null,
  status: id % 3 === 0 ? "open" : "won",
  closedFor: 37 * (id % 7),
  askedFor: (id % 4) - 1 + (id % 2) / 10,
  matched: id % 11 === 0,
});

// Seen red, each: without those of matched organizations, and with one as often as it was matched.
test("those that matter are asked again, each once: of several before of one, and the longest unasked first", async () => {
  const ofThis = await database.tenantId("again");
  const all = Array.from({ length: 300 }, (_, index) => ({ id: index + 1, ...traits(index + 1) }));
  await database.query(
    `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, person_id, organization_id, participants_count, participants_due,
       participants_known, participants_asked_at, won_time, custom_fields)
     SELECT $1, $1, r.id, '', r.status, r.id, r.id, r.count, false, true, $3::timestamptz - r."askedFor" * interval '1 day',
       CASE WHEN r.status = 'won' THEN $3::timestamptz - r."closedFor" * interval '1 day' END, '{}'
     FROM jsonb_to_recordset($2::jsonb) AS r (id bigint, status text, count integer, "closedFor" float8, "askedFor" float8)`,
    [ofThis, JSON.stringify(all), now],
  );
  await database.query(
    `WITH copied AS (
       INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) VALUES ($1, $1, 1, 1, 'LIVE', now())
     ), recorded AS (
       INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, owner_email, owner_key, search_text, recorded_by, recorded_at)
       VALUES ($1, $2, '', '', now(), '', '', '', '', now())
     ) INSERT INTO matched_record SELECT $1, $1, e, d.crm_id, $2 FROM deal d, unnest(ARRAY['DEAL', 'PERSON', 'ORGANIZATION']) WITH ORDINALITY AS one (e, n)
       WHERE d.tenant_id = $1 AND d.crm_id % 11 = 0 AND (d.crm_id % 2 = 0 OR d.crm_id % 3 + 1 = n)`,
    [ofThis, randomUUID()],
  );
  const again = all
    .filter(({ status, closedFor, matched }) => status === "open" || closedFor <= 90 || matched)
    .filter(({ count, askedFor }) => count !== 0 && (askedFor > 2 || askedFor < 0));
  again.sort((a, b) => Number(a.count === 1) - Number(b.count === 1) || b.askedFor - a.askedFor || a.id - b.id);
  expect(again.length).toBeGreaterThan(60);
  for (const most of [1, 7, 40, 500]) {
    const [found] = await reading(ofThis, (copy) => nextDeals(copy, "AGAIN", QUEUE, most));
    expect(found.map(({ dealId }) => dealId)).toEqual(again.slice(0, most).map(({ id }) => id));
  }
});

// Seen red: each run went through all that were ever asked, by their rows where those had changed lately.
test("of long closed ones that were asked just now none is read", async () => {
  await database.query(
    "UPDATE deal SET participants_asked_at = participants_asked_at + interval '1 s' WHERE tenant_id = $1",
    [tenantId],
  );
  expect(await reading(tenantId, (copy) => nextDeals(copy, "AGAIN", QUEUE, 500))).toEqual([[], 0]);
  expect((await reading(tenantId, (copy) => planTurn(copy, QUEUE, "RECONCILE", 10_000)))[1]).toBe(0);
});

// Seen red: of 150,000 deals, 20,000 of which had failed, a run did not end, and began anew for ever.
test("of a copy that no statistics know, deals that wait are not each compared with all that could not be read", async () => {
  const failing = await database.tenantId("failing");
  await database.query(
    `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_due, participants_known, participants_asked_at, custom_fields)
     SELECT $1, $1, g, '', 'open', true, false, CASE WHEN g > $2 THEN now() END, '{}' FROM generate_series(1, 2 * $2::int) g`,
    [failing, DUE],
  );
  await database.query(
    "INSERT INTO data_gap SELECT $1, $1, 'DEAL_PARTICIPANTS', g, 'CRM_REFUSED', '', now() FROM generate_series($2 + 1, 2 * $2::int) g",
    [failing, DUE],
  );
  const plans: unknown[] = [];
  const [gaps] = await reading(failing, async (copy) => {
    const apply: ProxyHandler<typeof copy.rows>["apply"] = async (ask, self, [sql, ...more]) => {
      plans.push(await Reflect.apply(ask, self, [`EXPLAIN (FORMAT JSON) ${sql}`, more[0]]));
      return Reflect.apply(ask, self, [sql, ...more]);
    };
    return readGaps({ ...copy, rows: new Proxy(copy.rows, { apply }) }, now);
  });
  const counts = gaps.map(({ resource, code, count }) => [resource, code, count]);
  expect(counts).toContainEqual(["DEAL_PARTICIPANTS", "CRM_REFUSED", DUE]);
  expect(counts).toContainEqual(["DEAL_PARTICIPANTS", "NOT_READ_YET", DUE]);
  expect(plans.length).toBeGreaterThan(1);
  expect(JSON.stringify(plans)).not.toMatch(/"Join Filter":"[^"]*crm_id/);
});
