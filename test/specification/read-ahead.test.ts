import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { copiedIds, copiedParticipants, visibleIds, visibleParticipants } from "../support/copy";
import { connect, dataOf, type EndedRun, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Planted and seen red: a reader that goes on as far as it can; pages committed out of order; a checkpoint that is
// saved when its page is read; a page that is asked for again after a failure; a failure that nobody hears; a reader that
// goes on although the run pauses; a pause that drops what was read ahead; a list that is read when its turn comes; its
// first page asked for twice; a third part of participants that is asked before the first is committed.

const ACTIVITIES = "/api/v2/activities";
const PAGE = 500;
const TURN_MS = 15_000;

/** Each test syncs a company of several pages whole. */
jest.setTimeout(90_000);

let userId: number;
let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
/** Of the test's own: what it holds keeps the commit of a piece waiting. */
let session: Client;

// The CRM's time is the true one.
const { world, simulator, database, service } = useService({ deals: 700, seed: 7, config: { clock } });
beforeAll(async () => {
  session = new Client({ connectionString: database.url.reveal() });
  await session.connect();
  world.cleanup(() => session.end());
  userId = simulator.company.stories.singleDeal.ownerId;
});
beforeEach(() => world.beginAnew());
afterEach(() => session.query("ROLLBACK"));

/** Connects a tenant; the commit of its first page of activities, and of nothing else, then waits for the session. */
async function connectWithFirstPageHeld(tenant: string): Promise<void> {
  const first = visibleIds(simulator, userId).activity?.[0];
  await connectHolding(
    tenant,
    `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, participant_ids, due_has_time, done)
     SELECT tenant_id, copy_id, $2, '', '', '{}', false, false FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
    first,
  );
  await until("the page after it was read too", async () => simulator.log.of("GET", ACTIVITIES).length === 2);
  await commitWaits();
}

async function connectHolding(tenant: string, sql: string, key: unknown): Promise<void> {
  const goOn = simulator.control.fail({ match: "/api/v1/users/me", after: 1, times: 1, with: { kind: "hang" } });
  await connect(service, simulator, { tenant });
  await session.query("BEGIN");
  await session.query(sql, [tenant, key]);
  goOn();
}

const waiting = async () => [...new Set((await database.lockWaits()).map(({ pid }) => pid))];
const commitWaits = () => until("the commit waits", async () => (await waiting()).length === 1);
const endWaiting = async () =>
  database.query("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", [await waiting()]);

/** The checkpoint of activities, and how many the copy holds. */
async function standOf(tenant: string): Promise<{ cursor: string | null; requests: number; held: number } | undefined> {
  const [stand] = await database.query<{ cursor: string | null; requests: number; held: number }>(
    `SELECT p.cursor, s.requests,
       (SELECT count(*)::int FROM activity a WHERE a.tenant_id = $1 AND a.copy_id = r.copy_id) AS held
     FROM sync_run r JOIN sync_step s ON s.tenant_id = r.tenant_id AND s.run_id = r.id
     LEFT JOIN sync_pass p ON p.tenant_id = $1 AND p.copy_id = r.copy_id AND p.resource = s.resource
     WHERE r.tenant_id = $1 AND s.resource = 'ACTIVITIES' ORDER BY r.queued_at DESC LIMIT 1`,
    [await database.tenantId(tenant)],
  );
  return stand;
}

const askedCursors = () => simulator.log.of("GET", ACTIVITIES).map(({ query }) => query.cursor ?? null);

async function isExact(tenant: string): Promise<void> {
  expect(await copiedIds(database, tenant)).toEqual(visibleIds(simulator, userId));
  expect(await copiedParticipants(database, tenant)).toEqual(visibleParticipants(simulator, userId));
}

const REQUEST = `mutation { requestSync(kind: INCREMENTAL) {
  ... on SyncRequested { run { kind } } ... on Refusal { code message } } }`;

async function nextRun(tenant: string): Promise<EndedRun> {
  const { requestSync } = dataOf(await service.ask<{ requestSync: object }>(REQUEST, {}, { tenant }));
  expect(requestSync).toEqual({ run: { kind: "INCREMENTAL" } });
  return syncEnds(service, { tenant });
}

test("while a page is committed the next one is read, and no further one", async () => {
  await connectWithFirstPageHeld("ahead");
  await sleep(200);
  expect(simulator.log.of("GET", ACTIVITIES)).toHaveLength(2);
  expect(await standOf("ahead")).toEqual({ cursor: null, requests: 0, held: 0 });
  await session.query("ROLLBACK");
  expect((await syncEnds(service, { tenant: "ahead" })).state).toBe("SUCCEEDED");
  const asked = askedCursors();
  expect(asked.length).toBeGreaterThan(2);
  expect(new Set(asked).size).toBe(asked.length);
  expect(await standOf("ahead")).toMatchObject({ requests: asked.length });
  await isExact("ahead");
});

test("a page that was read ahead of a commit that fails is not stored, nor its cursor: both are asked for when the run goes on", async () => {
  await connectWithFirstPageHeld("dropped");
  await endWaiting();
  const tenantId = await database.tenantId("dropped");
  const givenBack = "SELECT 1 FROM sync_run WHERE tenant_id = $1 AND state = 'QUEUED'";
  await until("the run is given back", async () => (await database.query(givenBack, [tenantId])).length === 1);
  expect(await standOf("dropped")).toEqual({ cursor: null, requests: 0, held: 0 });
  const asked = askedCursors();
  expect(asked).toHaveLength(2);
  await session.query("ROLLBACK");
  simulator.log.clear();
  expect((await syncEnds(service, { tenant: "dropped" })).state).toBe("SUCCEEDED");
  expect(askedCursors().slice(0, 2)).toEqual(asked);
  await isExact("dropped");
});

test("a 429 to the page that is read ahead ends the run after the page before is stored, and nothing follows it", async () => {
  simulator.control.fail({ match: ACTIVITIES, after: 1, with: { kind: "throttle" } });
  await connectWithFirstPageHeld("limited");
  await session.query("ROLLBACK");
  expect(await syncEnds(service, { tenant: "limited" })).toMatchObject({
    state: "FAILED",
    error: { code: "RATE_LIMITED" },
  });
  const answers = simulator.log.of("GET", /^\/api\//);
  expect(answers.findIndex(({ status }) => status === 429)).toBe(answers.length - 1);
  expect(await standOf("limited")).toEqual({ cursor: askedCursors()[1], requests: 1, held: PAGE });
  simulator.control.clearFaults();
  simulator.log.clear();
  expect((await nextRun("limited")).state).toBe("SUCCEEDED");
  // Behind the pass that goes on, what changed since it began is asked for.
  const walked = simulator.log.of("GET", ACTIVITIES).filter(({ query }) => !query.updated_since);
  expect(walked.map(({ query }) => query.cursor ?? null)).not.toContain(null);
  await isExact("limited");
});

test("a run whose turn is over stores the page that was read ahead before it gives its place, so that none is read twice", async () => {
  await connectWithFirstPageHeld("turn");
  aheadMs += TURN_MS;
  await session.query("ROLLBACK");
  expect((await syncEnds(service, { tenant: "turn" })).state).toBe("SUCCEEDED");
  const turns = simulator.log.of("GET", /^\/api\/(v1\/users\/me|v2\/activities)$/).map(({ path }) => path);
  const ofSecondTurn = turns.lastIndexOf("/api/v1/users/me");
  expect(turns.slice(0, ofSecondTurn).filter((path) => path === ACTIVITIES)).toHaveLength(2);
  const asked = askedCursors();
  expect(asked.length).toBeGreaterThan(2);
  expect(new Set(asked).size).toBe(asked.length);
  expect(await standOf("turn")).toMatchObject({ requests: asked.length });
  await isExact("turn");
});

const PERSONS = "/api/v2/persons";
const DEALS = "/api/v2/deals";
const asked = (path: string) => simulator.log.of("GET", path).length;

/** Of the way through a whole list: besides, what changed since is asked for, and some records by their ids. */
const walkedCursors = (path: string) =>
  simulator.log
    .of("GET", path)
    .flatMap(({ query: { updated_since, ids, cursor } }) => (updated_since || ids ? [] : [cursor ?? null]));

/** Connects a tenant; the commit of the last page of persons waits for the session, and the first page of deals is read. */
async function connectWithLastPersonHeld(tenant: string): Promise<void> {
  const last = visibleIds(simulator, userId).person?.at(-1);
  await connectHolding(
    tenant,
    `INSERT INTO person (tenant_id, copy_id, crm_id, name, emails, phones, custom_fields)
     SELECT tenant_id, copy_id, $2, '', '[]', '[]', '{}' FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)`,
    last,
  );
  await until("the next list's first page is asked for", async () => asked(DEALS) === 1);
  await commitWaits();
}

const heldDeals = async (tenant: string) => {
  const [held] = await database.query<{ n: number }>("SELECT count(*)::int AS n FROM deal WHERE tenant_id = $1", [
    await database.tenantId(tenant),
  ]);
  return held?.n;
};

test("while the last page of a list is committed the first one of the next list is read, once and no further one", async () => {
  await connectWithLastPersonHeld("next-list");
  await sleep(200);
  expect([asked(DEALS), asked(ACTIVITIES)]).toEqual([1, 0]);
  expect(await heldDeals("next-list")).toBe(0);
  await session.query("ROLLBACK");
  expect((await syncEnds(service, { tenant: "next-list" })).state).toBe("SUCCEEDED");
  for (const list of [PERSONS, DEALS, ACTIVITIES]) {
    const cursors = walkedCursors(list);
    expect(new Set(cursors).size).toBe(cursors.length);
  }
  await isExact("next-list");
});

test("a run that was taken over stores nothing of the next list's page, and asks for nothing more", async () => {
  await connectWithLastPersonHeld("taken-over");
  const tenantId = await database.tenantId("taken-over");
  // It waits for the commit in hand, and comes before the next one.
  const takenOver = database.query(
    "UPDATE sync_run SET lease_id = $2, lease_until = now() + interval '30 s' WHERE tenant_id = $1",
    [tenantId, randomUUID()],
  );
  await until("the takeover waits", async () => (await waiting()).length === 2);
  await session.query("ROLLBACK");
  await takenOver;
  await until("the worker has noticed", async () => {
    const [job] = await database.query("SELECT 1 FROM graphile_worker.jobs WHERE task_identifier = 'sync_run' LIMIT 1");
    return !job;
  });
  expect([asked(DEALS), asked(ACTIVITIES)]).toEqual([1, 0]);
  expect(await heldDeals("taken-over")).toBe(0);
  await database.query("UPDATE sync_run SET lease_until = now() - interval '1 s' WHERE tenant_id = $1", [tenantId]);
  expect((await syncEnds(service, { tenant: "taken-over" })).state).toBe("SUCCEEDED");
  await isExact("taken-over");
});

test("a next list whose first page is refused for want of tokens leaves the list before it whole", async () => {
  simulator.control.fail({ match: DEALS, with: { kind: "throttle" } });
  await connectWithLastPersonHeld("no-tokens");
  await session.query("ROLLBACK");
  expect(await syncEnds(service, { tenant: "no-tokens" })).toMatchObject({
    state: "FAILED",
    error: { code: "RATE_LIMITED" },
  });
  expect([asked(DEALS), asked(ACTIVITIES)]).toEqual([1, 0]);
  const copied = await copiedIds(database, "no-tokens");
  expect(copied.person).toEqual(visibleIds(simulator, userId).person);
  simulator.control.clearFaults();
  expect((await nextRun("no-tokens")).state).toBe("SUCCEEDED");
  await isExact("no-tokens");
});

const PARTICIPANTS = /^\/api\/v1\/deals\/\d+\/participants$/;
const askedDeals = () => simulator.log.of("GET", PARTICIPANTS).map(({ path }) => path);

async function committedDeals(tenant: string): Promise<number | undefined> {
  const [step] = await database.query<{ requests: number }>(
    `SELECT requests FROM sync_step WHERE tenant_id = $1 AND resource = 'DEAL_PARTICIPANTS'
     ORDER BY run_id DESC LIMIT 1`,
    [await database.tenantId(tenant)],
  );
  return step?.requests;
}

/** Connects a tenant; of the fifth part of its deals behind the first eight one answer is missing until it is let go. */
async function connectWithAnswerHeld(tenant: string): Promise<() => void> {
  const letGo = simulator.control.fail({ match: PARTICIPANTS, after: 111, times: 1, with: { kind: "hang" } });
  await connect(service, simulator, { tenant });
  await until("the parts before it are committed", async () => (await committedDeals(tenant)) === 108);
  await until("the part behind it is asked", async () => askedDeals().length === 158);
  return letGo;
}

test("while deals are asked who takes part, those before them are committed, and fifty at most are asked and not committed", async () => {
  const letGo = await connectWithAnswerHeld("parts");
  await sleep(200);
  expect([askedDeals().length, await committedDeals("parts")]).toEqual([158, 108]);
  letGo();
  expect((await syncEnds(service, { tenant: "parts" })).state).toBe("SUCCEEDED");
  expect(new Set(askedDeals()).size).toBe(askedDeals().length);
  expect(await committedDeals("parts")).toBe(askedDeals().length);
  await isExact("parts");
});

test("where the commit of a part fails nothing more is asked, and the run goes on behind what is committed", async () => {
  const letGo = await connectWithAnswerHeld("part-lost");
  await session.query("BEGIN");
  await session.query("SELECT 1 FROM deal WHERE tenant_id = $1 FOR UPDATE", [await database.tenantId("part-lost")]);
  letGo();
  await commitWaits();
  await endWaiting();
  const givenBack = "SELECT 1 FROM sync_run WHERE tenant_id = $1 AND state = 'QUEUED'";
  const tenantId = await database.tenantId("part-lost");
  await until("the run is given back", async () => (await database.query(givenBack, [tenantId])).length === 1);
  expect([askedDeals().length, await committedDeals("part-lost")]).toEqual([158, 108]);
  await session.query("ROLLBACK");
  expect((await syncEnds(service, { tenant: "part-lost" })).state).toBe("SUCCEEDED");
  expect(askedDeals().length - new Set(askedDeals()).size).toBe(50);
  await isExact("part-lost");
});

test("SIGTERM while the next list's page is not answered gives the run back at once, and another worker goes on", async () => {
  const letGo = simulator.control.fail({ match: DEALS, times: 1, with: { kind: "hang" } });
  await connectWithLastPersonHeld("stopped");
  await session.query("ROLLBACK");
  await until("the list before is stored", async () => {
    const sql = "SELECT 1 FROM sync_step WHERE tenant_id = $1 AND resource = 'PERSONS' AND state = 'SUCCEEDED'";
    return (await database.query(sql, [await database.tenantId("stopped")])).length > 0;
  });
  await service.stop();
  letGo();
  const other = await world.startService({ config: { clock } });
  expect((await syncEnds(other, { tenant: "stopped" })).state).toBe("SUCCEEDED");
  const cursors = walkedCursors(PERSONS);
  expect(new Set(cursors).size).toBe(cursors.length);
  await isExact("stopped");
});
