import { setTimeout as sleep } from "node:timers/promises";
import { type Fault, type LogEntry, startSimulator } from "../../simulator";
import { Random } from "../../simulator/seed/random";
import { readConfig } from "../../src/platform/config";
import { Secret } from "../../src/platform/keyring";
import { COPY_TABLES, copiedIds, copiedParticipants, visibleIds, visibleParticipants } from "../support/copy";
import { createTestDatabase } from "../support/database";
import { environmentFor, startService } from "../support/service";
import { connect, dataOf, type EndedRun, syncEnds } from "../support/stories";
import { useCrm } from "../support/world";

// Seen red with: the failure of a deal's participants not noted as a gap; a failed run that moves the watermark.

const SEEDS = Number(process.env.SEEDS ?? (process.env.DEEP ? 200 : 6));
const FAULT_RATE = 0.05;
/** More requests than a run makes. */
const PLANNED = 150;
/** Where a session is lost at the wrong moment a lease has to end, 30 s, and the next sweep to come, 10 s more. */
const RUN_ENDS_WITHIN_MS = 90_000;
const TIMEOUT_MS = 300_000;

let userId: number;
/** Both sides' clock: between two runs so much passes that only a right watermark finds what changed. */
let aheadMs = 60_000;
const clock = () => new Date(Date.now() + aheadMs);
const passMinutes = () => {
  aheadMs += 10 * 60_000;
};
const WORKER = "worker-under-fault";
/** Nothing but what a test asks for runs. */
const QUIET = { sync: { intervalMs: 0, reconcileIntervalMs: 0 } };

const { world, simulator, database, serve } = useCrm({ deals: 40, seed: 11, clock });
/** The API, whose sessions nobody ends, and the worker, whose sessions are ended. */
const service = serve({ roles: ["api"], config: QUIET });
beforeAll(async () => {
  const url = new URL(database.url.reveal());
  url.searchParams.set("application_name", WORKER);
  await world.startService({ config: { ...QUIET, databaseUrl: new Secret(url.href) } });
  userId = simulator.company.stories.singleDeal.ownerId;
});
beforeEach(() => world.beginAnew());

interface Kind {
  fault: Fault;
  /** What a gap says of it, and a run whose main list fails so; null where the answer is only late. */
  code: string | null;
}

const KINDS: readonly Kind[] = [
  { fault: { kind: "reset" }, code: "CRM_UNAVAILABLE" },
  { fault: { kind: "cut" }, code: "CRM_UNAVAILABLE" },
  { fault: { status: 500, body: "" }, code: "CRM_UNAVAILABLE" },
  { fault: { status: 503, body: "" }, code: "CRM_UNAVAILABLE" },
  { fault: { kind: "html" }, code: "CRM_UNAVAILABLE" },
  { fault: { kind: "garbage" }, code: "CRM_ANSWER_UNREADABLE" },
  { fault: { kind: "null" }, code: "CRM_ANSWER_UNREADABLE" },
  { fault: { kind: "throttle" }, code: "RATE_LIMITED" },
  { fault: { kind: "delay", ms: 60 }, code: null },
];

/** Decides for each of the next requests whether it fails and how, by its place in the order of arrival. */
function planFaults(random: Random, from: number): Map<number, Kind> {
  const planned = new Map<number, Kind>();
  for (let index = from; index < PLANNED; index += 1) {
    if (!random.chance(FAULT_RATE)) continue;
    const kind = random.pick(KINDS);
    // A rule counts only the requests that no earlier rule has hit.
    simulator.control.fail({ match: /^\/api\//, after: index - planned.size, times: 1, with: kind.fault });
    planned.set(index, kind);
  }
  return planned;
}

const requests = (): LogEntry[] => simulator.log.of("GET", /^\/api\//);
const dealOf = (path: string) => /\/deals\/(\d+)\/participants$/.exec(path)?.[1];
const LISTS: Record<string, string> = {
  "/api/v1/users": "USERS",
  "/api/v2/pipelines": "PIPELINES",
  "/api/v2/stages": "STAGES",
  "/api/v2/organizations": "ORGANIZATIONS",
  "/api/v2/persons": "PERSONS",
  "/api/v2/deals": "DEALS",
  "/api/v2/activities": "ACTIVITIES",
  "/api/v1/notes": "NOTES",
};
const MAY_FAIL = new Set(["PIPELINES", "STAGES"]);

/**
 * What the copy must say that it lacks, and what the run has failed for, by what the CRM saw: a list that fails is a gap and
 * the others are read; what would meet every call ends the run; a limit on participants ends their asking.
 * @param unknown the deals of which nobody knows yet who takes part
 */
function expected(
  gaps: Map<string, string>,
  from: number,
  planned: Map<number, Kind>,
  unknown: readonly number[],
): string | null {
  let [first, isOver]: [string | null, boolean] = [null, false];
  const asked = new Set<string>();
  for (const [index, { path, query }] of requests().entries()) {
    const code = planned.get(index)?.code ?? null;
    // The words of fields are asked beside, and what they lack is no gap of a run.
    if (index < from || (path.endsWith("Fields") && code !== "RATE_LIMITED")) continue;
    const dealId = dealOf(path);
    const list = LISTS[path];
    if (dealId) {
      asked.add(dealId);
      note(gaps, `DEAL_PARTICIPANTS ${dealId}`, code);
    } else if (list && query.ids === undefined) {
      if (code !== "RATE_LIMITED") note(gaps, list, code);
      if (code && !MAY_FAIL.has(list)) first ??= code;
    } else if (code && !query.ids) first ??= code;
    isOver ||= code === "RATE_LIMITED";
    if (isOver && !dealId) return code === "RATE_LIMITED" ? (first ?? code) : first;
  }
  for (const id of unknown) {
    if (!asked.has(String(id)) && !gaps.has(`DEAL_PARTICIPANTS ${id}`))
      gaps.set(`DEAL_PARTICIPANTS ${id}`, "NOT_READ_YET");
  }
  return first;
}

function note(gaps: Map<string, string>, what: string, code: string | null): void {
  if (code) gaps.set(what, code);
  else gaps.delete(what);
}

function summary(gaps: Map<string, string>): object[] {
  const counts = new Map<string, number>();
  for (const [what, code] of gaps) {
    const key = `${what.split(" ")[0]} ${code}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].sort().map(([key, count]) => {
    const [resource, code] = key.split(" ");
    return { resource, code, count };
  });
}

const QUEUED =
  "SELECT 1 FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND state IN ('QUEUED', 'RUNNING')";

/** A job that failed waits before it is tried again, as does a run that was held up. */
const DO_NOT_WAIT =
  "UPDATE graphile_worker._private_jobs SET run_at = now() WHERE locked_at IS NULL AND run_at > now()";

async function runEnds(as: { tenant: string }): Promise<EndedRun> {
  for (const began = Date.now(); (await database.query(QUEUED, [as.tenant])).length > 0; await sleep(15)) {
    await database.query(DO_NOT_WAIT);
    if (Date.now() - began > RUN_ENDS_WITHIN_MS) throw new Error(`the run of ${as.tenant} does not end`);
  }
  return syncEnds(service, as);
}

const REQUEST = `mutation { requestSync(kind: INCREMENTAL) {
  ... on SyncRequested { run { kind } } ... on Refusal { code message } } }`;

async function sync(as: { tenant: string }): Promise<EndedRun & { kind: string }> {
  const data = dataOf(await service.ask<{ requestSync: { run?: { kind: string } } }>(REQUEST, {}, as));
  if (!data.requestSync.run) throw new Error(`the sync was refused: ${JSON.stringify(data)}`);
  return { ...(await runEnds(as)), ...data.requestSync.run };
}

/**
 * Ends sessions of the worker at a seeded moment: mostly one, sometimes all. What time would then do is done at once.
 * The job library's own are left out: where it loses one while it notes a failed job, it rejects a promise that nobody
 * can hear, which a process logs and jest counts against whatever test is running.
 */
async function endSessions(random: Random, as: { tenant: string }): Promise<void> {
  await sleep(random.int(0, 250));
  await database.query(
    `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = $1 AND query NOT LIKE '%private_job%' ORDER BY state = 'idle', random() LIMIT $2) s`,
    [WORKER, random.chance(0.2) ? 100 : 1],
  );
  await sleep(100);
  // A run's lease has to end, which is not the matter here.
  await database.query(
    "UPDATE sync_run SET lease_until = started_at WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1) AND state = 'RUNNING'",
    [as.tenant],
  );
}

async function isExact(tenant: string): Promise<void> {
  expect(await copiedIds(database, tenant)).toEqual(visibleIds(simulator, userId));
  expect(await copiedParticipants(database, tenant)).toEqual(visibleParticipants(simulator, userId));
  const held = await database.query(
    "SELECT d.crm_id AS id, d.title FROM deal d JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1) ORDER BY 1",
    [tenant],
  );
  const shown = simulator.control.visibleTo(userId).deals.map(({ id, title }) => ({ id: id ?? 0, title }));
  expect(held).toEqual(shown.sort((a, b) => a.id - b.id));
}

/** The deals that have participants, also where the user may see none of them. */
const dealsToAsk = (): number[] =>
  simulator.control
    .visibleTo(userId)
    .deals.filter(({ participants_count }) => participants_count > 0)
    .map(({ id = 0 }) => id);

function change(random: Random): void {
  const { deals } = simulator.control.visibleTo(userId);
  const { id = 0 } = random.pick(deals);
  simulator.control.change("deal", id, { title: `Changed ${random.int(1, 1_000_000)}` });
  simulator.control.add("person");
}

const seeds = Array.from({ length: SEEDS }, (_, index) => ({ seed: index + 1 }));
const outcomes = new Map<string, number>();

test.each(seeds)(
  "seed $seed: whatever fails, a run says exactly what, and the next ones mend it",
  async ({ seed }) => {
    const random = new Random(`faults ${seed}`);
    const as = { tenant: `seed-${seed}` };
    const gaps = new Map<string, string>();
    const losesSessions = seed % 3 === 0;
    const underFaults = async (begin: () => Promise<EndedRun>, skip: number, unknown: readonly number[]) => {
      simulator.log.clear();
      const faults = planFaults(random.stream(`faults of ${skip}`), skip);
      const ending = losesSessions ? endSessions(random.stream(`sessions of ${skip}`), as) : undefined;
      const run = await begin();
      await ending;
      simulator.control.clearFaults();
      const code = expected(gaps, skip, faults, unknown);
      // A lost session ends no run: it goes on, and the failure may be passed by.
      const isRight = losesSessions ? [null, code] : [code];
      expect(isRight).toContain(run.error?.code ?? null);
      if (run.state === "SUCCEEDED") expect({ seed, gaps: run.gaps }).toEqual({ seed, gaps: summary(gaps) });
      else expect(run.state).toBe("FAILED");
      const outcome = run.error?.code ?? (run.gaps.length > 0 ? "gaps" : "whole");
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      passMinutes();
      return run;
    };

    const connectAndSync = async () => {
      await connect(service, simulator, as);
      return runEnds(as);
    };
    // Connecting asks for the user once; that is not the sync's.
    await underFaults(connectAndSync, 1, dealsToAsk());
    const mended = await sync(as);
    expect(mended.state).toBe("SUCCEEDED");
    expect(mended.gaps).toEqual([]);
    await isExact(as.tenant);
    gaps.clear();

    passMinutes();
    change(random);
    passMinutes();
    const second = await underFaults(() => sync(as), 0, []);
    change(random);
    passMinutes();
    // What changed after a list was read belongs to the run after the one that goes on.
    if (second.state === "FAILED") expect((await sync(as)).state).toBe("SUCCEEDED");
    expect(await sync(as)).toMatchObject({ state: "SUCCEEDED", gaps: [] });
    await isExact(as.tenant);
  },
  TIMEOUT_MS,
);

test("some runs failed, some had gaps and some were whole", () => {
  expect([...outcomes.keys()]).toEqual(expect.arrayContaining(["gaps", "whole"]));
  expect(outcomes.size).toBeGreaterThan(2);
  if (process.env.DEEP) process.stdout.write(`outcomes: ${JSON.stringify([...outcomes])}\n`);
});

test("the same company and one request at a time give the same requests and the same rows", async () => {
  const once = async () => {
    const twin = await startSimulator({ deals: 40, seed: 4, now: () => new Date("2026-03-02T10:00:00Z") });
    const own = await createTestDatabase();
    const alone = await startService(twin, own, {
      crm: readConfig({ ...environmentFor(twin), CRM_CONCURRENCY: "1" }).crm,
    });
    await connect(alone, twin);
    expect((await syncEnds(alone)).state).toBe("SUCCEEDED");
    const asked = twin.log.of("GET", /^\/api\//).map(({ method, path, query }) => ({ method, path, query }));
    const rows = [];
    for (const table of [...COPY_TABLES, "deal_participant", "person_address"]) {
      rows.push(
        await own.query(
          `SELECT to_jsonb(t) - '{tenant_id,copy_id,participants_asked_at}'::text[] AS row FROM ${table} t ORDER BY 1`,
        ),
      );
    }
    await alone.stop();
    await Promise.all([twin.stop(), own.drop()]);
    return { asked, rows };
  };
  const [left, right] = [await once(), await once()];
  expect(left.asked.length).toBeGreaterThan(20);
  expect(right).toEqual(left);
});

/** Minutes ago, by the CRM's clock: such a state may still be on its way; one of yesterday would not be. */
const CHANGED = { Old: 2, New: 1, "New too": 1 };
const OLD = "Old";
const NEW = "New";
const SAME = "New too";
function shown(title: keyof typeof CHANGED): object {
  const at = new Date(clock().getTime() - CHANGED[title] * 60_000);
  return { id: 900_001, title, status: "open", update_time: `${at.toISOString().slice(0, 19)}Z` };
}

test.each<[string, (keyof typeof CHANGED)[][], string]>([
  ["twice in a page", [[OLD, NEW]], "New"],
  ["twice in a page, newest first", [[NEW, OLD]], "New"],
  ["again on a later page, newer", [[OLD], [NEW]], "New"],
  ["again on a later page, older", [[NEW], [OLD]], "New"],
  ["again with an equal time", [[NEW], [SAME]], "New too"],
])("a deal that moves while the list is walked and is shown %s keeps its newest state", async (how, pages, title) => {
  const as = { tenant: `shown ${how}` };
  for (const [index, titles] of pages.entries()) {
    const data = titles.map(shown);
    const next_cursor = index + 1 < pages.length ? `page ${index + 1}` : null;
    const body = { success: true, data, additional_data: { next_cursor } };
    simulator.control.fail({ match: /^\/api\/v2\/deals$/, times: 1, with: { status: 200, body } });
  }
  await connect(service, simulator, as);
  expect((await runEnds(as)).state).toBe("SUCCEEDED");
  const held = await database.query(
    "SELECT d.title FROM deal d JOIN connection c USING (tenant_id, copy_id) WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [as.tenant],
  );
  expect(held).toEqual([{ title }]);
});
