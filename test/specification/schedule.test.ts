import { randomUUID } from "node:crypto";
import { Budget } from "../../src/connections/budget";
import type { Database } from "../../src/database/database";
import { createLogger } from "../../src/platform/logger";
import { claimRun, extendLease } from "../../src/sync/runs";
import { Schedule } from "../../src/sync/schedule";
import type { ActorClaims } from "../support/actors";
import { copiedIds, visibleIds } from "../support/copy";
import { connect, dataOf, recordMeeting, syncEnds } from "../support/stories";
import { loseAuthorization } from "../support/tokens";
import { useService } from "../support/world";

// Seen red with: small lists always due; roles, the member's minute, a budget not asked; a start that is recorded anew and
// clears nothing; runs for a meeting without a pause; a new authorization reading only changes; a 429 without a wait.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let db: Database;
let schedule: Schedule;
/** How far the clocks of both sides are ahead; it begins later than everything that made the company. */
let aheadMs = MINUTE;
const clock = () => new Date(Date.now() + aheadMs);
const later = (ms: number) => {
  aheadMs += ms;
};

const { simulator, database, service } = useService({ deals: 20, clock });
beforeAll(async () => {
  db = database.opened();
  const logger = createLogger("silent");
  const budget = new Budget({ database: db, clock, logger, share: 0.25 });
  const intervals = { intervalMs: 15 * MINUTE, reconcileIntervalMs: 30 * 24 * HOUR };
  schedule = new Schedule({ database: db, budget, clock, logger, ...intervals });
});
afterEach(() => simulator.control.clearFaults());

let tenants = 0;
/** A tenant whose first sync has ended; the CRM's log begins after that. */
async function connected(): Promise<ActorClaims & { tenant: string }> {
  tenants += 1;
  const as = { tenant: `tenant-${tenants}` };
  await connect(service, simulator, as);
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  simulator.log.clear();
  return as;
}

const REQUEST = `mutation ($kind: SyncKind) { requestSync(kind: $kind) {
  ... on SyncRequested { run { kind } } ... on Refusal { code message retryAt } } }`;
interface Requested {
  run?: { kind: string };
  code?: string;
  message?: string;
  retryAt?: string | null;
}
const ask = async (kind: string, as: ActorClaims) =>
  dataOf(await service.ask<{ requestSync: Requested }>(REQUEST, { kind }, as)).requestSync;
const due = async ({ tenant }: { tenant: string }) => schedule.due(await database.tenantId(tenant));
const asked = () => simulator.log.all().map(({ path }) => path);
const runsOf = ({ tenant }: { tenant: string }) =>
  database.query<{ kind: string; state: string; error_code: string | null }>(
    `SELECT kind, state, error_code FROM sync_run r WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)
     ORDER BY queued_at`,
    [tenant],
  );
async function connectionOf({ tenant }: { tenant: string }) {
  const [row] = await database.query<{ state: string; trouble_code: string | null; next_sync_at: Date | null }>(
    `SELECT state, trouble_code, next_sync_at FROM connection
     WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
    [tenant],
  );
  if (!row) throw new Error(`${tenant} is not connected`);
  return row;
}
const minutesUntil = (at: Date | string | null | undefined) =>
  (new Date(at ?? 0).getTime() - clock().getTime()) / MINUTE;

const WHO = "/api/v1/users/me";
const NOTES = "/api/v1/notes";
const ACTIVITIES = "/api/v2/activities";
const MAIN = ["/api/v2/organizations", "/api/v2/persons", "/api/v2/deals", ACTIVITIES, NOTES];
const SLOW = ["/api/v1/users", "/api/v2/pipelines", "/api/v2/stages"];

test("a run of the schedule reads what is due: users, pipelines and stages every four hours, the others at the interval", async () => {
  const as = await connected();
  later(15 * MINUTE);
  await due(as);
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED", progress: 1 });
  expect(asked()).toEqual([WHO, ...MAIN]);
  later(4 * HOUR);
  simulator.log.clear();
  await due(as);
  await syncEnds(service, as);
  expect(asked()).toEqual(expect.arrayContaining([...SLOW, ...MAIN]));
});

test("where nothing is due no run is made, and the next one is planned anew", async () => {
  const as = await connected();
  await due(as);
  expect(await runsOf(as)).toHaveLength(1);
  expect(minutesUntil((await connectionOf(as)).next_sync_at)).toBeGreaterThan(13);
  expect(asked()).toEqual([]);
});

// Seen red: no run was made for it, and the lists were read ten minutes late, for the next one was planned anew.
test("what was missed has its second look ten minutes later, with the lists of that run", async () => {
  const as = await connected();
  const tenantId = await database.tenantId(as.tenant);
  const miss =
    "INSERT INTO missed_record SELECT tenant_id, copy_id, 'DEALS', 1, $2 FROM connection WHERE tenant_id = $1";
  await database.query(miss, [tenantId, clock()]);
  later(9 * MINUTE);
  await due(as);
  expect(await runsOf(as)).toHaveLength(1);
  later(MINUTE);
  await due(as);
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  expect(asked()).toEqual(expect.arrayContaining(["/api/v2/organizations", "/api/v2/persons", "/api/v2/deals"]));
  expect(await database.query("SELECT 1 FROM missed_record WHERE tenant_id = $1", [tenantId])).toEqual([]);
});

// Planted and seen red: its second walk waited for the interval.
test("a list that showed much less is walked again ten minutes later", async () => {
  const as = await connected();
  const showedLess = `INSERT INTO sync_pass (tenant_id, copy_id, resource, kind, removes, walk, first_walk_ended_at)
    SELECT tenant_id, copy_id, 'DEALS', 'WHOLE', true, 2, $2 FROM connection WHERE tenant_id = $1`;
  await database.query(showedLess, [await database.tenantId(as.tenant), clock()]);
  await due(as);
  await syncEnds(service, as);
  expect(minutesUntil((await connectionOf(as)).next_sync_at)).toBeCloseTo(10, 0);
});

// Seen red: who set an interval where there was none had no run until somebody asked for one.
test("a connection that has no plan for its next run gets one", async () => {
  const as = await connected();
  await database.query("UPDATE connection SET next_sync_at = NULL");
  await database.query("SELECT graphile_worker.remove_job(key) FROM graphile_worker.jobs WHERE key LIKE 'sync_due:%'");
  await schedule.sweep();
  expect((await connectionOf(as)).next_sync_at).not.toBeNull();
});

// Seen red: in a document whose mutation before had shown the connection, it was shown as it was before the run.
test("a run that is asked for is answered with the connection whose current one it is", async () => {
  const as = await connected();
  const query = `mutation {
    clearFieldMapping(entity: DEAL) { ... on FieldMappingSuccess { connection { id sync { current { id } } } } }
    requestSync { ... on SyncRequested { run { id } connection { id sync { current { id } last { state } } } } } }`;
  type Shown = { connection: { id: string; sync: object } };
  type Asked = { clearFieldMapping: Shown; requestSync: Shown & { run: { id: string } } };
  const { clearFieldMapping, requestSync } = dataOf(await service.ask<Asked>(query, {}, as));
  const { id } = clearFieldMapping.connection;
  expect(clearFieldMapping.connection.sync).toEqual({ current: null });
  const { run, connection } = requestSync;
  expect(connection).toEqual({ id, sync: { current: run, last: { state: "SUCCEEDED" } } });
  await syncEnds(service, as);
});

test("where nothing changes the runs come more and more rarely, up to four times the interval", async () => {
  const as = await connected();
  for (let run = 0; run < 7; run += 1) {
    later(61 * MINUTE);
    await due(as);
    await syncEnds(service, as);
  }
  expect(minutesUntil((await connectionOf(as)).next_sync_at)).toBeGreaterThan(50);
  expect(minutesUntil((await connectionOf(as)).next_sync_at)).toBeLessThan(62);
});

test("a run that somebody asks for reads all lists", async () => {
  const as = await connected();
  expect(await ask("INCREMENTAL", as)).toMatchObject({ run: { kind: "INCREMENTAL" } });
  await syncEnds(service, as);
  expect(asked()).toEqual(expect.arrayContaining([WHO, ...SLOW, ...MAIN]));
});

test.each(["FULL", "RECONCILE"])("a member may not ask for %s, and that is noted; an admin may", async (kind) => {
  const as = await connected();
  expect(await ask(kind, { ...as, role: "member" })).toMatchObject({ code: "NOT_ALLOWED_FOR_ROLE", retryAt: null });
  const noted = "SELECT action, code, subject FROM audit_event WHERE action = 'POLICY_REFUSED' AND tenant_id = $1";
  expect(await database.query(noted, [await database.tenantId(as.tenant)])).toEqual([
    { action: "POLICY_REFUSED", code: "NOT_ALLOWED_FOR_ROLE", subject: "requestSync" },
  ]);
  expect(asked()).toEqual([]);
  expect(await ask(kind, as)).toEqual({ run: { kind } });
  await syncEnds(service, as);
});

test("a member has to wait a minute after the last run, and is told until when; an admin need not", async () => {
  const as = await connected();
  const member = { ...as, role: "member" };
  const refused = await ask("INCREMENTAL", member);
  expect(refused).toMatchObject({ code: "SYNC_TOO_SOON" });
  expect(minutesUntil(refused.retryAt)).toBeGreaterThan(0);
  expect(minutesUntil(refused.retryAt)).toBeLessThanOrEqual(1);
  expect(asked()).toEqual([]);
  expect(await ask("INCREMENTAL", as)).toEqual({ run: { kind: "INCREMENTAL" } });
  await syncEnds(service, as);
  later(MINUTE);
  expect(await ask("INCREMENTAL", member)).toEqual({ run: { kind: "INCREMENTAL" } });
  await syncEnds(service, as);
});

test("while the company's tokens are needed for others nothing is asked, by nobody, until the next look", async () => {
  const as = await connected();
  later(20 * MINUTE);
  const low = `UPDATE crm_budget SET daily_limit = 30000, remaining = 2000, told_at = $1, looked_at = $1, day_began_at = $1`;
  const known = "INSERT INTO crm_budget (crm_company_id, day_began_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
  await database.query(known, [simulator.company.id, clock()]);
  await database.query(low, [clock()]);
  try {
    const refused = await ask("INCREMENTAL", as);
    expect(refused).toMatchObject({ code: "BUDGET_LOW" });
    expect(minutesUntil(refused.retryAt)).toBeGreaterThan(58);
    await due(as);
    expect(asked()).toEqual([]);
    expect(await runsOf(as)).toHaveLength(1);
    expect(minutesUntil((await connectionOf(as)).next_sync_at)).toBeGreaterThan(58);
  } finally {
    await database.query("DELETE FROM crm_budget");
  }
});

const refreshedAt = async (id: string) => {
  const uuid = Buffer.from(id, "base64url").toString().split(":").at(-1);
  const [row] = await database.query<{ at: Date | null }>("SELECT refreshed_at AS at FROM meeting WHERE id = $1", [
    uuid,
  ]);
  return row?.at ?? null;
};
const inMinutes = (minutes: number) => ({ startsAt: new Date(clock().getTime() + minutes * MINUTE).toISOString() });

const FAR_AHEAD = new Date("2100-01-01T00:00:00Z");

test("a worker that dies while its clock is in 2100 keeps nobody from going on: neither its lease nor its plans are believed", async () => {
  const as = await connected();
  const tenantId = await database.tenantId(as.tenant);
  await database.query(
    `UPDATE sync_run SET state = 'RUNNING', lease_id = $3, lease_until = $2, finished_at = NULL WHERE tenant_id = $1`,
    [tenantId, FAR_AHEAD, randomUUID()],
  );
  await schedule.sweep();
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  await database.query("UPDATE connection SET next_sync_at = $2 WHERE tenant_id = $1", [tenantId, FAR_AHEAD]);
  await database.query("UPDATE sync_list SET read_at = $2, whole_at = $2 WHERE tenant_id = $1", [tenantId, FAR_AHEAD]);
  await database.query("UPDATE graphile_worker._private_jobs SET run_at = $2 WHERE key = $1", [
    `sync_due:${tenantId}`,
    FAR_AHEAD,
  ]);
  simulator.log.clear();
  await schedule.sweep();
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  expect(asked()).toEqual(expect.arrayContaining([...SLOW, ...MAIN]));
  const { next_sync_at: planned } = await connectionOf(as);
  expect(minutesUntil(planned)).toBeGreaterThan(0);
  expect(minutesUntil(planned)).toBeLessThanOrEqual(66);
});

// Seen red with leases by the workers' own clocks: the first look of one that was ahead took the run, and the other's page was lost.
test("a worker whose clock is minutes ahead, or behind, takes no run of another that lives", async () => {
  const as = await connected();
  const scope = db.tenant(await database.tenantId(as.tenant));
  const [{ id = "" } = {}] = await scope.rows<{ id: string }>(
    "UPDATE sync_run SET state = 'QUEUED', finished_at = NULL WHERE tenant_id = $1 RETURNING id",
    [scope.tenantId],
    { id: "text" },
  );
  const run = await claimRun(scope, id, clock());
  for (const minutes of [5, -10]) {
    later(minutes * MINUTE);
    await schedule.sweep();
    expect(await claimRun(scope, id, clock())).toBeNull();
  }
  expect(run && (await extendLease(scope, run, clock()))).not.toBeNull();
  later(5 * MINUTE);
  await database.query("UPDATE sync_run SET lease_until = now() - interval '1 s' WHERE id = $1", [id]);
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
});

test("five minutes before a meeting begins its activities and notes are read, once", async () => {
  const as = await connected();
  const { email } = simulator.company.stories.singleDeal;
  const { id } = await recordMeeting(service, [email], inMinutes(8), as);
  later(2 * MINUTE);
  await schedule.sweep();
  expect([asked(), await refreshedAt(id)]).toEqual([[], null]);
  later(1.5 * MINUTE);
  await schedule.sweep();
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  expect(asked()).toEqual(expect.arrayContaining([WHO, ACTIVITIES, NOTES]));
  const lists = simulator.log.all().filter(({ path, query }) => path.startsWith("/api/v2/") && !query.ids);
  expect(lists.map(({ path }) => path)).toEqual([ACTIVITIES]);
  expect(await refreshedAt(id)).not.toBeNull();
  later(1.5 * MINUTE);
  simulator.log.clear();
  await schedule.sweep();
  expect([asked(), await runsOf(as)]).toEqual([[], [expect.anything(), expect.anything()]]);
});

test("a meeting that is recorded as it begins is refreshed, and again where it is recorded with another start", async () => {
  const as = await connected();
  later(2 * MINUTE);
  const { email } = simulator.company.stories.singleDeal;
  const input = { externalId: "moved", ...inMinutes(-1) };
  const { id } = await recordMeeting(service, [email], input, as);
  await schedule.sweep();
  await syncEnds(service, as);
  expect(await refreshedAt(id)).not.toBeNull();
  await recordMeeting(service, [email], input, as);
  expect(await refreshedAt(id)).not.toBeNull();
  await recordMeeting(service, [email], { ...input, ...inMinutes(4) }, as);
  expect(await refreshedAt(id)).toBeNull();
  later(1.5 * MINUTE);
  simulator.log.clear();
  await schedule.sweep();
  await syncEnds(service, as);
  expect(asked()).toEqual(expect.arrayContaining([ACTIVITIES, NOTES]));
  expect(await refreshedAt(id)).not.toBeNull();
});

test("meetings that are long over, far away or about nobody in the CRM wake nobody", async () => {
  const as = await connected();
  later(2 * MINUTE);
  const { email } = simulator.company.stories.singleDeal;
  await recordMeeting(service, [email], inMinutes(-60), as);
  await recordMeeting(service, [email], inMinutes(60), as);
  await recordMeeting(service, ["nobody@unknown-company.example"], inMinutes(3), as);
  await schedule.sweep();
  expect(asked()).toEqual([]);
  expect(await runsOf(as)).toHaveLength(1);
});

test("a refresh that the CRM does not let through is tried again a minute later, not at once", async () => {
  const as = await connected();
  later(2 * MINUTE);
  const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], inMinutes(4), as);
  simulator.control.fail({ match: WHO, times: 1, with: { status: 503, body: "" } });
  await schedule.sweep();
  expect(await syncEnds(service, as)).toMatchObject({ state: "FAILED" });
  expect(await refreshedAt(id)).toBeNull();
  await schedule.sweep();
  expect(await runsOf(as)).toHaveLength(2);
  expect(asked()).toEqual([WHO]);
  later(1.2 * MINUTE);
  await schedule.sweep();
  await syncEnds(service, as);
  expect(await refreshedAt(id)).not.toBeNull();
});

test("what the same user sees no more is gone after the first run of a new authorization", async () => {
  const as = await connected();
  const { ownerId } = simulator.company.stories.singleDeal;
  const [person, another] = simulator.control.visibleTo(ownerId).persons.map(({ id }) => id ?? 0);
  await loseAuthorization(database, as.tenant, clock());
  for (const id of [person ?? 0, another ?? 0]) simulator.control.hide("person", id);
  await connect(service, simulator, as);
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  expect((await runsOf(as)).at(-1)).toMatchObject({ kind: "RECONCILE" });
  expect(await copiedIds(database, as.tenant)).toEqual(visibleIds(simulator, ownerId));
  for (const id of [person ?? 0, another ?? 0]) simulator.control.show("person", id);
});

// Seen red: after a renewal a closed account was told as an outage of which nothing has to be done, and aged the copies that alerts look at.
test.each([
  [403, "a token in use", "CRM_REFUSED", 15 * MINUTE, [WHO]],
  [403, "a renewed token", "CRM_REFUSED", HOUR, ["/oauth/token", WHO]],
  [402, "a renewed token", "CRM_ACCOUNT_CLOSED", HOUR, ["/oauth/token", WHO]],
])(
  "a JSON %d to the question whose %s is ends the run with %s and no authorization, and the schedule goes on",
  async (status, _what, code, passed, requests) => {
    const as = await connected();
    later(passed);
    const body = { success: false, error: "You do not have permissions to do this." };
    const end = simulator.control.fail({ match: WHO, with: { status, body } });
    await due(as);
    expect(await syncEnds(service, as)).toMatchObject({ state: "FAILED", error: { code } });
    expect(asked()).toEqual(requests);
    const { next_sync_at, ...shown } = await connectionOf(as);
    expect(shown).toEqual({ state: "CONNECTED", trouble_code: code });
    expect(minutesUntil(next_sync_at)).toBeGreaterThan(13);
    end();
    later(15 * MINUTE);
    await due(as);
    expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
    expect(await connectionOf(as)).toMatchObject({ state: "CONNECTED", trouble_code: null });
  },
);

test("after a 429 the next run comes in an hour at the soonest", async () => {
  const as = await connected();
  later(15 * MINUTE);
  simulator.control.fail({ match: ACTIVITIES, times: 1, with: { kind: "throttle" } });
  await due(as);
  expect(await syncEnds(service, as)).toMatchObject({ state: "FAILED", error: { code: "RATE_LIMITED" } });
  expect(minutesUntil((await connectionOf(as)).next_sync_at)).toBeGreaterThan(59);
  await database.query("DELETE FROM crm_budget");
});
