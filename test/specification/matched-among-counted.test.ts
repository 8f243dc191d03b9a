import { findOutdated } from "../../src/briefing/match-meeting";
import { APPLICATION_ROLE } from "../../src/database/application-role";
import { type TenantScope } from "../../src/database/database";
import { HOUR_MS } from "../../src/platform/clock";
import { useDatabase } from "../support/world";

/** PostgreSQL takes a copy that it knows nothing of for nearly empty, and any index that begins with the copy for as good. */
const ROWS = 4_000;
const AT_DOMAIN = 200;
/** Of one deal. */
const ACTIVITIES = 1_000;
/** Of each table: a few for each address, organization and deal that may be meant. */
const MOST_ROWS = 3 * AT_DOMAIN;

const each = "generate_series(1, $2::int) g";
const ago = "now() - g * interval '1 hour'";
/** At one domain are addresses of as many organizations, each with a deal. */
const FILL = [
  `INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) SELECT $1, $1, 1, 1, 'LIVE', now() WHERE $2 > 0`,
  `INSERT INTO connection (tenant_id, state, copy_id) SELECT $1, 'CONNECTED', $1 WHERE $2 > 0`,
  `INSERT INTO organization (tenant_id, copy_id, crm_id, name, website_domain, custom_fields) SELECT $1, $1, g, '', 'o' || g || '.example', '{}' FROM ${each}`,
  `INSERT INTO person (tenant_id, copy_id, crm_id, name, organization_id, emails, phones, custom_fields)
   SELECT $1, $1, g, '', g % 1000, '[]', '[]', '{}' FROM ${each}`,
  `INSERT INTO person_address (tenant_id, copy_id, address, person_id, mailbox, domain)
   SELECT $1, $1, a, g, a, split_part(a, '@', 2) FROM ${each}, concat('p', g, '@', CASE WHEN g > ${AT_DOMAIN} THEN 'o' || g END, 'big.example') a`,
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, person_id, organization_id, participants_due, participants_known, custom_fields)
   SELECT $1, $1, g, '', 'open', g, g, false, true, '{}' FROM ${each}`,
  `INSERT INTO deal_participant SELECT $1, $1, g, g FROM ${each}`,
  `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, deal_id, participant_ids, due_at, due_has_time, done, happened_at)
   SELECT $1, $1, g, '', 'call', CASE WHEN g <= ${ACTIVITIES} THEN 1 ELSE g END, '{}', ${ago}, true, true, ${ago} FROM ${each}`,
];
const TABLES = FILL.flatMap((sql) => /^INSERT INTO (\w+)/.exec(sql)?.[1] ?? []);

const database = useDatabase();

beforeAll(async () => {
  for (const table of TABLES) await database.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
});

async function newTenant(name: string): Promise<TenantScope> {
  const tenantId = await database.tenantId(name);
  for (const sql of FILL) await database.query(sql, [tenantId, ROWS]);
  return database.scope(tenantId);
}

async function counted(name: string): Promise<TenantScope> {
  const scope = await newTenant(name);
  await database.query("ANALYZE");
  return scope;
}

const READ = `SELECT relname::text AS name, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int AS read
  FROM pg_stat_xact_user_tables WHERE relname = ANY ($1)`;
const SHAPE = { name: "text", read: "number" } as const;

/** As the service, for which an index compares less than for an owner of tables. @returns by table, what a look at a meeting reads */
async function readToMatch(scope: TenantScope): Promise<Record<string, number>> {
  const row = {
    id: "00000000-0000-0000-0000-000000000001",
    startsAt: new Date(Date.now() - 10 * HOUR_MS),
    endsAt: null,
    ownerEmail: "me@seller.example",
    cancelledAt: null,
  };
  const read: Record<string, number> = {};
  const transaction: TenantScope["transaction"] = (work) =>
    scope.transaction(async (inner) => {
      await inner.rows(`SET LOCAL ROLE ${APPLICATION_ROLE}`);
      const rows = () => inner.rows<{ name: string; read: number }>(READ, [TABLES], SHAPE);
      // What the session has not told yet of work before is counted with it.
      const before = new Map((await rows()).map((one) => [one.name, one.read]));
      const done = await work(inner);
      for (const one of await rows()) read[one.name] = one.read - (before.get(one.name) ?? 0);
      return done;
    });
  const attendees = [{ email: "p1@big.example", name: null }];
  expect(await findOutdated({ ...scope, transaction }, [{ row, attendees }])).toHaveLength(1);
  return read;
}

// In this order. Seen red with the rows found by joins and plain conditions: 1,600,000 activities and 80,601 persons of the first
// two; and where no order decides: 16,000 addresses of the second.
test.each<[string, () => Promise<TenantScope>]>([
  ["in tables that nobody has counted", () => newTenant("first")],
  [
    "that is newer than the last count",
    () =>
      newTenant("second")
        .then(() => counted("third"))
        .then(() => newTenant("newest")),
  ],
  ["that was counted", () => counted("last")],
])("against a copy %s a meeting is matched by what its people lead to, and nothing else is read", async (_, copy) => {
  const read = await readToMatch(await copy());
  expect(read).toMatchObject({ person: AT_DOMAIN + 1, activity: 1 });
  expect(Object.entries(read).filter(([, rows]) => rows > MOST_ROWS)).toEqual([]);
});
