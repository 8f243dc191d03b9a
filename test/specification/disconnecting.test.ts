import { purgeCopy, sweepPurges } from "../../src/connections/copies";
import type { Database } from "../../src/database/database";
import { createLogger } from "../../src/platform/logger";
import { encodeId } from "../../src/resolvers/inputs";
import { enqueueRun } from "../../src/sync/schedule-rows";
import type { ActorClaims } from "../support/actors";
import { copiedIds, visibleIds } from "../support/copy";
import { dumpState, rowsOfCopy } from "../support/dump";
import {
  connect,
  dataOf,
  listRuns,
  noJobIsDue,
  type Refusal,
  recordMeeting,
  syncEnds,
  until,
} from "../support/stories";
import { useService } from "../support/world";

// Seen red with: the credential left in place; the copy not retired; the runs not cancelled; no purge enqueued; a purge
// that does not look whether the copy is retired, or that takes the rows of every copy; a page committed
// without a look whether its copy is live; members allowed to disconnect; the plan asked for.

let db: Database;

const { simulator, database, service } = useService({ deals: 20 });
beforeAll(async () => {
  db = database.opened();
});
afterEach(() => simulator.control.clearFaults());

const DISCONNECT = `mutation { disconnect {
  ... on DisconnectSuccess { remainsInCrm connection { state crm boundEmail boundUserName companyName companyDomain
    connectedAt reauthorizationReason trouble { code }
    sync { current { id } last { id } lastSuccessAt gaps { code } } } }
  ... on Refusal { code message } } }`;
interface Disconnected {
  connection?: object;
  remainsInCrm?: string;
  code?: string;
}
const disconnect = async (as: ActorClaims) =>
  dataOf(await service.ask<{ disconnect: Disconnected & Partial<Refusal> }>(DISCONNECT, {}, as)).disconnect;
const NOTHING = {
  ...{ state: "NOT_CONNECTED", crm: null, boundEmail: null, boundUserName: null, companyName: null },
  ...{ companyDomain: null, connectedAt: null, reauthorizationReason: null, trouble: null },
  sync: { current: null, last: null, lastSuccessAt: null, gaps: [] },
};

let tenants = 0;
interface Tenant {
  as: ActorClaims;
  tenantId: number;
  copyId: number;
}
const newcomer = () => {
  tenants += 1;
  return { tenant: `tenant-${tenants}` };
};

async function copyOf(as: ActorClaims): Promise<number> {
  const query = "SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)";
  const [row] = await database.query<{ copy_id: number | null }>(query, [as.tenant]);
  return row?.copy_id ?? 0;
}

/** A tenant that is connected and whose first sync has ended. */
async function connected(): Promise<Tenant> {
  const as = newcomer();
  expect((await connect(service, simulator, as)).connection).toBeDefined();
  expect(await syncEnds(service, as)).toMatchObject({ state: "SUCCEEDED" });
  return { as, tenantId: await database.tenantId(as.tenant), copyId: await copyOf(as) };
}

const purged = (copyId: number) =>
  until("the copy is purged", async () => Object.keys(await rowsOfCopy(database, copyId)).length === 0);
const credentialsOf = ({ tenant }: ActorClaims) =>
  database.query<{ version: number; copy_id: number }>(
    "SELECT version, copy_id FROM credential WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
const runStates = async ({ tenant }: ActorClaims) =>
  (
    await database.query<{ state: string }>(
      "SELECT state FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) ORDER BY queued_at",
      [tenant],
    )
  ).map(({ state }) => state);
const runAgain = ({ tenantId, copyId }: Tenant) =>
  db.tenant(tenantId).transaction((scope) => enqueueRun(scope, copyId, "FULL", new Date()));
const stateOf = async (as: ActorClaims) =>
  dataOf(await service.ask<{ connection: { state: string } }>("{ connection { state } }", {}, as)).connection.state;

/** The CRM ends every grant of the user who is signed in, and a run finds that out. */
async function expelled(): Promise<Tenant> {
  const tenant = await connected();
  simulator.control.revoke(simulator.company.stories.singleDeal.ownerId);
  await runAgain(tenant);
  await until("it is known", async () => (await stateOf(tenant.as)) === "NEEDS_REAUTHORIZATION");
  return tenant;
}

test.each([
  ["an owner on the small plan", { role: "owner", plan: "small" }],
  ["an admin whose plan has ended", { role: "admin", plan: "" }],
  ["another admin than the one who connected", { sub: "ben" }],
])("%s may disconnect: state, credential and bound account are gone at once", async (_who, claims) => {
  const { as, tenantId } = await connected();
  const planned = () =>
    database.query("SELECT 1 FROM connection WHERE tenant_id = $1 AND next_sync_at IS NOT NULL", [tenantId]);
  expect(await planned()).toHaveLength(1);
  const answer = await disconnect({ ...as, ...claims });
  expect(answer.connection).toEqual(NOTHING);
  // Planted and seen red: whoever connected next was told when the one before would have been read.
  expect(await planned()).toEqual([]);
  expect(answer.remainsInCrm).toMatch(/installed apps/);
  expect(await credentialsOf(as)).toEqual([]);
});

test("a member may not disconnect, and nothing changes", async () => {
  const { as, copyId } = await connected();
  await noJobIsDue(database);
  const before = await dumpState(database);
  const answer = await disconnect({ ...as, role: "member" });
  expect(answer).toEqual({ code: "NOT_ALLOWED_FOR_ROLE", message: expect.stringMatching(/\.$/) });
  expect(await dumpState(database)).toEqual(before);
  expect(await copyOf(as)).toBe(copyId);
});

const SHOWN = `query ($id: ID!) { meeting(id: $id) { id match { status deal { id person { id } organization { id } stage { id }
  pipeline { id } owner { id } recentActivities { id } recentNotes { id } } } attendees { match { status person { id } } } briefing { asOf } }
  briefing(meetingId: $id) { asOf } }`;
const RECORDS = /^(Deal|Person|Organization|Stage|Pipeline|CrmUser|Activity|Note):/;

test("what was readable is not from the answer on: ids, briefing, matches and sync status", async () => {
  const { as } = await connected();
  const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
  const shown = JSON.stringify(dataOf(await service.ask(SHOWN, { id }, as)));
  const ids = [...shown.matchAll(/"id":"([^"]+)"/g)]
    .map(([, found]) => found ?? "")
    .filter((found) => RECORDS.test(Buffer.from(found, "base64url").toString()));
  const types = new Set(ids.map((found) => Buffer.from(found, "base64url").toString().split(":")[0]));
  expect(types.size).toBe(8);
  expect((await disconnect(as)).connection).toEqual(NOTHING);
  const nodes = ids.map((_id, index) => `n${index}: node(id: $i${index}) { id }`).join(" ");
  const variables = Object.fromEntries(ids.map((found, index) => [`i${index}`, found]));
  const query = `query (${ids.map((_id, index) => `$i${index}: ID!`).join(", ")}) { ${nodes} }`;
  expect(new Set(Object.values(dataOf(await service.ask(query, variables, as))))).toEqual(new Set([null]));
  expect(dataOf(await service.ask(SHOWN, { id }, as))).toEqual({
    meeting: {
      ...{ id, briefing: null },
      match: { status: "PENDING", deal: null },
      attendees: [{ match: { status: "PENDING", person: null } }],
    },
    briefing: null,
  });
});

test("the CRM is not asked: no request leaves, and none revokes the grant", async () => {
  const { as, copyId } = await connected();
  simulator.log.clear();
  await disconnect(as);
  await purged(copyId);
  expect(simulator.log.all()).toEqual([]);
});

test("a run in hand is cancelled with its steps, and what it was waiting for is dropped", async () => {
  const as = newcomer();
  const release = simulator.control.fail({ match: "/api/v2/deals", with: { kind: "hang" } });
  simulator.log.clear();
  await connect(service, simulator, as);
  const copyId = await copyOf(as);
  await listRuns(database, as.tenant, "DEALS");
  expect(await rowsOfCopy(database, copyId)).toMatchObject({ person: expect.any(Number) });
  await disconnect(as);
  expect(await runStates(as)).toEqual(["CANCELLED"]);
  const open = await database.query(
    "SELECT resource FROM sync_step WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND state NOT IN ('CANCELLED', 'SUCCEEDED')",
    [as.tenant],
  );
  expect(open).toEqual([]);
  await purged(copyId);
  release();
  const deals = () => simulator.log.of("GET", "/api/v2/deals");
  await until("the late answer is sent", async () => deals().every(({ status }) => status === 200));
  await until(
    "the job ends",
    async () =>
      (await database.query("SELECT 1 FROM graphile_worker.jobs WHERE task_identifier <> 'sync_due'")).length === 0,
  );
  expect(await rowsOfCopy(database, copyId)).toEqual({});
  expect(deals()).toHaveLength(1);
  expect(await runStates(as)).toEqual(["CANCELLED"]);
});

test("a page for a copy that is retired is dropped, even where its run was not cancelled", async () => {
  const as = newcomer();
  const release = simulator.control.fail({ match: "/api/v2/persons", with: { kind: "hang" } });
  simulator.log.clear();
  await connect(service, simulator, as);
  const copyId = await copyOf(as);
  await until("persons are asked for", async () => simulator.log.of("GET", "/api/v2/persons").length > 0);
  await database.query("UPDATE synced_copy SET state = 'RETIRED' WHERE id = $1", [copyId]);
  const held = await rowsOfCopy(database, copyId);
  release();
  await noJobIsDue(database);
  expect(await rowsOfCopy(database, copyId)).toEqual(held);
  expect(held).not.toHaveProperty("person");
  await disconnect(as);
});

test("the purge takes every row of the copy; another tenant's and a later copy's stay", async () => {
  const [mine, other] = [await connected(), await connected()];
  await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, mine.as);
  const others = await rowsOfCopy(database, other.copyId);
  const held = await rowsOfCopy(database, mine.copyId);
  expect(Object.keys(held)).toEqual(expect.arrayContaining(["person_address", "deal_participant", "matched_record"]));
  await disconnect(mine.as);
  await connect(service, simulator, mine.as);
  await purged(mine.copyId);
  await syncEnds(service, mine.as);
  expect([mine.copyId, other.copyId]).not.toContain(await copyOf(mine.as));
  expect(await copiedIds(database, mine.as.tenant)).toEqual(
    visibleIds(simulator, simulator.company.stories.singleDeal.ownerId),
  );
  expect(await rowsOfCopy(database, other.copyId)).toEqual(others);
});

test("disconnecting twice, at once by ten, or before anyone connected succeeds and purges once", async () => {
  const never = newcomer();
  expect((await disconnect(never)).connection).toEqual(NOTHING);
  const { as, copyId } = await connected();
  const answers = await Promise.all(Array.from({ length: 10 }, () => disconnect(as)));
  expect(answers.map(({ connection }) => connection)).toEqual(answers.map(() => NOTHING));
  await purged(copyId);
  expect((await disconnect(as)).connection).toEqual(NOTHING);
});

test("a connection that needs re-authorization can be disconnected", async () => {
  const { as, copyId } = await expelled();
  expect((await disconnect(as)).connection).toEqual(NOTHING);
  expect(await credentialsOf(as)).toEqual([]);
  await purged(copyId);
});

test("connecting again at once makes a new copy, and a meeting recorded before is matched on it", async () => {
  const { as, copyId } = await connected();
  const { id } = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
  await disconnect(as);
  expect((await connect(service, simulator, as)).connection).toMatchObject({ state: "CONNECTED" });
  const later = await copyOf(as);
  expect(later).not.toBe(copyId);
  const { match } = await until("the meeting is matched again", async () => {
    const query = "query ($id: ID!) { meeting(id: $id) { match { status deal { id } } } }";
    type Read = { meeting: { match: { status: string; deal: { id: string } } } };
    const { meeting } = dataOf(await service.ask<Read>(query, { id }, as));
    return meeting.match.status === "MATCHED" && meeting;
  });
  expect(match.deal.id).toBe(encodeId("Deal", later, simulator.company.stories.singleDeal.dealId));
  expect(await rowsOfCopy(database, later)).not.toEqual({});
});

const changed = (table: string, change: string) =>
  `jsonb_populate_record(NULL::${table}, to_jsonb(t) || jsonb_build_object(${change}))`;

/**
 * A retired copy of 12,000 notes and a few rows of each other table. It comes to be at one moment and with a job that
 * is not due, so that the service's own sweep leaves it to the test.
 */
async function retiredCopy({ tenantId, copyId }: Tenant): Promise<number> {
  const tables = Object.keys(await rowsOfCopy(database, copyId));
  return database.dataSource.transaction(async (manager) => {
    const [made] = await manager.query(
      `INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
       VALUES ($1, 1, 1, 'RETIRED', now()) RETURNING id`,
      [tenantId],
    );
    const id: number = made.id;
    for (const table of tables) {
      if (["connection", "credential", "synced_copy", "renewal_attempt"].includes(table)) continue;
      await manager.query(
        `INSERT INTO ${table} SELECT (${changed(table, "'copy_id', $1::bigint")}).* FROM ${table} t WHERE copy_id = $2`,
        [id, copyId],
      );
    }
    await manager.query(
      `INSERT INTO note SELECT (${changed("note", "'crm_id', 1000000 + g")}).*
       FROM generate_series(1, 12000) g, LATERAL (SELECT * FROM note WHERE copy_id = $1 LIMIT 1) t`,
      [id],
    );
    await manager.query(
      "SELECT graphile_worker.add_job('purge_copy', '{}', run_at => now() + interval '1 hour', job_key => 'purge_copy:' || $1::text)",
      [id],
    );
    return id;
  });
}

/** A signal that says so from the `reads`th look on. */
const stopsAfter = (reads: number) => {
  let seen = 0;
  return {
    get aborted() {
      seen += 1;
      return seen > reads;
    },
  } as AbortSignal;
};
const going = new AbortController().signal;
const total = (counts: Record<string, number>) => Object.values(counts).reduce((sum, n) => sum + n, 0);

test("a purge that is cut off leaves the copy's own row and goes on where it stood", async () => {
  const tenant = await connected();
  const live = await rowsOfCopy(database, tenant.copyId);
  const copyId = await retiredCopy(tenant);
  const reference = { tenantId: tenant.tenantId, copyId };
  const logger = createLogger("silent");
  const before = total(await rowsOfCopy(database, copyId));
  expect(before).toBeGreaterThan(12_000);
  for (const looks of [0, 3, 8]) {
    await expect(purgeCopy(db, reference, stopsAfter(looks), logger)).rejects.toThrow("goes on later");
    expect(await rowsOfCopy(database, copyId)).toMatchObject({ synced_copy: 1 });
  }
  const left = total(await rowsOfCopy(database, copyId));
  expect(left).toBeGreaterThan(1);
  expect(left).toBeLessThan(before);
  await purgeCopy(db, reference, going, logger);
  expect(await rowsOfCopy(database, copyId)).toEqual({});
  expect(await rowsOfCopy(database, tenant.copyId)).toEqual(live);
});

// Seen red where a batch that another purge had in hand was taken for the table's last: a purge that takes longer than five
// minutes is begun again beside itself, and of that one the row by which the rest is found went first.
test("a purge beside another one leaves nothing that the other has not taken", async () => {
  const tenant = await connected();
  const [{ tenantId }, copyId] = [tenant, await retiredCopy(tenant)];
  const first = database.dataSource.createQueryRunner();
  await first.startTransaction();
  const batch = "SELECT ctid FROM note WHERE tenant_id = $1 AND copy_id = $2 LIMIT 5000";
  await first.query(`DELETE FROM note WHERE tenant_id = $1 AND ctid = ANY (ARRAY (${batch}))`, [tenantId, copyId]);
  const second = purgeCopy(db, { tenantId, copyId }, going, createLogger("silent"));
  await until("the second waits for the first", async () => (await database.lockWaits()).length > 0);
  await first.commitTransaction();
  await first.release();
  await second;
  expect(await rowsOfCopy(database, copyId)).toEqual({});
});

// Seen red where the copy's id in the sweep's statement was taken for the queue's own.
test("a sweep leaves a purge alone whose job waits", async () => {
  const copyId = await retiredCopy(await connected());
  await sweepPurges(db, createLogger("silent"));
  const [job] = await database.query<{ waits: boolean }>(
    "SELECT run_at > now() + interval '30 minutes' AS waits FROM graphile_worker.jobs WHERE key = 'purge_copy:' || $1::text",
    [copyId],
  );
  expect(job).toEqual({ waits: true });
});

// Seen red: whatever the queue had given up counted as a job that waits, for ever.
test("a purge that the queue has given up is tried anew hours later, when its cause may have been mended", async () => {
  const copyId = await retiredCopy(await connected());
  const key = `purge_copy:${copyId}`;
  const giveUp = (ago: string) =>
    database.query(
      "UPDATE graphile_worker._private_jobs SET attempts = max_attempts, run_at = now() - $2::interval WHERE key = $1",
      [key, ago],
    );
  const isGivenUp = async () => {
    await sweepPurges(db, createLogger("silent"));
    // Whatever its key: what took its place would be done, and this one stay for ever.
    return (await database.query("SELECT 1 FROM graphile_worker.jobs WHERE attempts = max_attempts")).length > 0;
  };
  await giveUp("1 hour");
  expect(await isGivenUp()).toBe(true);
  await giveUp("7 hours");
  expect(await isGivenUp()).toBe(false);
});

test("a purge never touches a live copy, nor another tenant's under its own name", async () => {
  const [mine, other] = [await connected(), await connected()];
  const before = await rowsOfCopy(database, mine.copyId);
  const logger = createLogger("silent");
  await purgeCopy(db, mine, going, logger);
  await purgeCopy(db, { tenantId: other.tenantId, copyId: mine.copyId }, going, logger);
  expect(await rowsOfCopy(database, mine.copyId)).toEqual(before);
  const retired = await retiredCopy(mine);
  await purgeCopy(db, { tenantId: other.tenantId, copyId: retired }, going, logger);
  expect(total(await rowsOfCopy(database, retired))).toBeGreaterThan(12_000);
});
