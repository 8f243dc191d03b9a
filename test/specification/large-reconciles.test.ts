import { beginAbsence, takeAbsent } from "../../src/sync/gone";
import { fillTenants, MEETING_ID, onOneServer, reading } from "../support/blocks";
import { hasTriggers } from "../support/database";
import { useDatabase } from "../support/world";

const LARGE = 6_000;
const FILL = [
  "INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at) SELECT $1, 1, 1, 1, 'LIVE', now() WHERE $2 > 0",
  "INSERT INTO connection (tenant_id, state, state_changed_at, copy_id) SELECT $1, 'CONNECTED', now(), 1 WHERE $2 > 0",
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, status, participants_due, participants_known, custom_fields)
   SELECT $1, 1, g, '', 'open', false, true, '{}' FROM generate_series(1, $2::int) g`,
  `INSERT INTO sync_run (tenant_id, id, copy_id, kind, state, queued_at)
   SELECT $1, ${MEETING_ID}, 1, 'RECONCILE', 'QUEUED', now() FROM generate_series(1, least(1, $2::int)) g`,
];

const database = useDatabase();
let tenantId: number;
let runId: string;

beforeAll(async () => {
  const filled = await fillTenants(database, FILL, { small: { tenants: 5, of: 20 }, large: LARGE });
  [tenantId, runId] = [filled.tenantId, filled.meetingId];
});

const run = () => ({
  ...{ tenantId, runId, leaseId: runId, copyId: 1 },
  ...{ kind: "RECONCILE" as const, startedAt: new Date(), leaseUntil: new Date(), toldAt: 0 },
});

/** Tells how many rows each statement notes, and lets none end that notes few. */
const TELL_PARTS = `CREATE TABLE part (rows int);
  CREATE FUNCTION tell_part() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO part SELECT count(*) FROM noted;
    IF EXISTS (SELECT FROM noted HAVING count(*) < 5000) THEN RAISE 'cut off'; END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER told AFTER INSERT ON absent_record REFERENCING NEW TABLE AS noted FOR EACH STATEMENT EXECUTE FUNCTION tell_part()`;
const LET_END = `CREATE OR REPLACE FUNCTION tell_part() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
  'BEGIN INSERT INTO part SELECT count(*) FROM noted; RETURN NULL; END'`;

// Seen red: one statement noted all of them, and some millions take it longer than a statement may. What a statement notes is told
// by a trigger, and a cluster's tables have none.
(hasTriggers() ? test : test.skip)(
  "a list's ids are noted in parts, and all of them anew where that was cut off",
  async () => {
    const own = "UPDATE sync_run SET state = 'RUNNING', lease_id = id WHERE tenant_id = $1 AND id = $2";
    await database.query(own, [tenantId, runId]);
    await database.query("INSERT INTO absent_record VALUES ($1, 1, 'DEALS', 999999)", [tenantId]);
    let isStopped = false;
    // Where it is told to stop while the first part is noted.
    const observe = <T>(text: string, work: () => Promise<T>) => {
      isStopped ||= text.includes("INSERT INTO absent_record");
      return work();
    };
    const begin = (options = {}) => {
      const copy = { ...database.opened(options).tenant(tenantId), copyId: 1 };
      return beginAbsence({ copy, run: run(), clock: () => new Date(), isStopped: () => isStopped }, "DEALS");
    };
    const noted = () =>
      database.query<{ id: number }>(
        "SELECT crm_id::int AS id FROM absent_record WHERE tenant_id = $1 AND resource = 'DEALS' ORDER BY crm_id",
        [tenantId],
      );
    await database.query(TELL_PARTS);
    await expect(begin()).rejects.toThrow("cut off");
    expect(await noted()).toHaveLength(5_000);
    await database.query(LET_END);
    // Seen red: the others were noted first, of which a list may have hundreds.
    expect(await begin({ observe })).toBe(false);
    expect(await noted()).toHaveLength(5_000);
    isStopped = false;
    expect(await begin()).toBe(true);
    expect(await noted()).toEqual(Array.from({ length: LARGE }, (_, index) => ({ id: index + 1 })));
    const parts = await database.query<{ rows: number }>("SELECT rows FROM part");
    expect(parts.map(({ rows }) => rows)).toEqual([5_000, 5_000, 5_000, 1_000]);
  },
);

// Seen red: each row that was left was compared with a thousand, 90,000 blocks for these.
onOneServer("what walks have not shown is taken in batches that do not grow with what is left", async () => {
  const fill = `INSERT INTO absent_record SELECT $1, 1, 'PERSONS', g FROM generate_series(1, ${LARGE}) g`;
  await database.query(fill, [tenantId]);
  const { found, blocks } = await reading(database, ["absent_record"], tenantId, async (copy) => {
    await copy.rows("SET LOCAL plan_cache_mode = auto");
    return takeAbsent(copy, "PERSONS");
  });
  expect([...found].sort((a, b) => a - b)).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
  expect(blocks).toBeLessThan(3_000);
});
