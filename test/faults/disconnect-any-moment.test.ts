import { setTimeout as sleep } from "node:timers/promises";
import type { LogEntry } from "../../simulator";
import type { ActorClaims } from "../support/actors";
import { rowsOfCopy } from "../support/dump";
import { completeConsent, dataOf, recordMeeting, startConsent, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: the credential left in place by a disconnect; a run that is not told of it, and so looks 100 ms later; a
// page committed whether or not the copy is live and the run still ours; runs not cancelled; no purge enqueued.

const SEEDS = process.env.DEEP ? 200 : 10;
/** Tenants that sync and are disconnected at the same time, each bound to a CRM user of its own. */
const AT_ONCE = 4;
/** The service's requests in flight per connection (CRM_CONCURRENCY's default). */
const CONCURRENCY = 8;
/**
 * A request is begun when its access token has been read from the credential. From the commit of a disconnect on there
 * is none to read, so only requests that were begun before may still reach the CRM: of one connection never more than
 * may be in flight, and none later after the answer than a read takes to become a request: on a busy machine as long as the
 * disconnect itself took, which asks the database a dozen times.
 */
const IN_FLIGHT_MS = 250;
const LATE_MS = 300;

let users: number[];
/** How long a run takes undisturbed, and how many requests each user's takes. */
let usual: { ms: number; requests: number[] };

const { simulator, database, service } = useService({ deals: 120, seed: 3 });
beforeAll(async () => {
  const { ownerId } = simulator.company.stories.singleDeal;
  const active = [...simulator.company.users.values()].filter(({ active_flag }) => active_flag).map(({ id }) => id);
  users = [ownerId, ...active.filter((id) => id !== ownerId)].slice(0, AT_ONCE);
  // Waiting makes every request a moment in which a disconnect can come, and lets a page come back after the purge.
  simulator.control.fail({ match: /\/participants$/, with: { kind: "delay", ms: 3 } });
  simulator.control.fail({ match: /^\/api\/v[12]\//, with: { kind: "delay", ms: 60 } });
  for (let warm = 0; warm < 2; warm += 1) usual = await usualRun(`warm-${warm}`);
});

const requestsOf = (user: number): LogEntry[] => simulator.log.all().filter(({ userId }) => userId === user);

async function usualRun(tenant: string): Promise<typeof usual> {
  simulator.log.clear();
  const began = Date.now();
  await Promise.all(users.map((user, index) => connectAs(user, { tenant: `${tenant}-${index}` })));
  await Promise.all(users.map((_user, index) => syncEnds(service, { tenant: `${tenant}-${index}` })));
  const ms = Date.now() - began;
  return { ms, requests: users.map((user) => requestsOf(user).length) };
}

/** Nothing may come between signing in and approving: there is one browser for all tenants. */
async function connectAs(user: number, as: ActorClaims): Promise<void> {
  const state = await startConsent(service, as);
  simulator.control.signIn(user);
  const code = simulator.control.approve();
  expect((await completeConsent(service, { code, state }, as)).connection).toBeDefined();
}

/** A number from 0 to 1 that a seed decides (mulberry32's step). */
function chance(seed: number): number {
  let t = Math.imul(seed + 0x6d2b79f5, 0x85ebca6b);
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}

/** Half of the seeds wait for a time, half for a number of requests that the CRM has seen. */
async function moment(seed: number, user: number): Promise<void> {
  if (seed % 2 === 0) return void (await sleep(chance(seed) * usual.ms));
  const enough = Math.floor(chance(seed) * (usual.requests[users.indexOf(user)] ?? 0));
  while (requestsOf(user).length < enough) await sleep(1);
}

const DISCONNECT =
  "mutation { disconnect { ... on DisconnectSuccess { connection { state } } ... on Refusal { code } } }";
const SHOWN = `query ($id: ID!) { connection { state boundEmail sync { current { id } last { id } lastSuccessAt gaps { code } } }
  briefing(meetingId: $id) { asOf } meeting(id: $id) { briefing { asOf } match { status deal { id } } attendees { match { person { id } } } } }`;
const NOTHING = {
  connection: {
    state: "NOT_CONNECTED",
    boundEmail: null,
    sync: { current: null, last: null, lastSuccessAt: null, gaps: [] },
  },
  briefing: null,
  meeting: {
    briefing: null,
    match: { status: "PENDING", deal: null },
    attendees: [{ match: { person: null } }],
  },
};

interface Ended {
  seed: number;
  copyId: number;
  run: string;
  /** How many requests the CRM had seen when the disconnect was sent. */
  seen: number;
  /** Requests as this tenant's CRM user that came after the answer. */
  late: { atMs: number }[];
  /** How long it took until the answer. */
  tookMs: number;
}

async function disconnectAtSomeMoment(seed: number, user: number): Promise<Ended> {
  const as = { tenant: `seed-${seed}` };
  await connectAs(user, as);
  const [row] = await database.query<{ copy_id: number }>(
    "SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [as.tenant],
  );
  const copyId = row?.copy_id ?? 0;
  // Before the moment for some: matching takes a while, and the disconnect is to come at the very moment.
  const meet = () => recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
  const early = seed % 3 === 0 ? null : await meet();
  await moment(seed, user);
  const { id } = early ?? (await meet());
  const [seen, asked] = [requestsOf(user).length, Date.now()];
  dataOf(await service.ask(DISCONNECT, {}, as));
  const answered = Date.now();
  expect(dataOf(await service.ask(SHOWN, { id }, as))).toEqual(NOTHING);
  expect(
    await database.query("SELECT 1 FROM credential WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)", [
      as.tenant,
    ]),
  ).toEqual([]);
  const runs = await database.query<{ state: string; finished_at: Date }>(
    "SELECT state, finished_at FROM sync_run WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [as.tenant],
  );
  expect(runs).toHaveLength(1);
  expect(["CANCELLED", "SUCCEEDED"]).toContain(runs[0]?.state);
  const copy = () => database.query("SELECT 1 FROM synced_copy WHERE id = $1", [copyId]);
  await until(`the copy of seed ${seed} is purged`, async () => (await copy()).length === 0);
  expect({ seed, rows: await rowsOfCopy(database, copyId) }).toEqual({ seed, rows: {} });
  await sleep(LATE_MS);
  const late = requestsOf(user).filter(({ at }) => at.getTime() > answered);
  return {
    seed,
    copyId,
    seen,
    tookMs: answered - asked,
    run: runs[0]?.state ?? "",
    late: late.map(({ at }) => ({ atMs: at.getTime() - answered })),
  };
}

const waves = Array.from({ length: Math.ceil(SEEDS / AT_ONCE) }, (_, wave) =>
  Array.from({ length: Math.min(AT_ONCE, SEEDS - wave * AT_ONCE) }, (_, index) => wave * AT_ONCE + index + 1),
);
const all: Ended[] = [];

test.each(waves.map((seeds) => ({ seeds })))(
  "seeds $seeds: nothing is seen, asked or written after the disconnect",
  async ({ seeds }) => {
    simulator.log.clear();
    const ended = await Promise.all(seeds.map((seed, index) => disconnectAtSomeMoment(seed, users[index] ?? 0)));
    for (const { seed, copyId, late, tookMs } of ended) {
      expect({ seed, rows: await rowsOfCopy(database, copyId) }).toEqual({ seed, rows: {} });
      const latestMs = Math.max(IN_FLIGHT_MS, tookMs);
      expect({ seed, late: late.filter(({ atMs }) => atMs > latestMs) }).toEqual({ seed, late: [] });
      expect(late.length).toBeLessThanOrEqual(CONCURRENCY);
    }
    expect(simulator.log.of("POST", "/oauth/token").map(({ grantType }) => grantType)).toEqual(
      seeds.map(() => "authorization_code"),
    );
    all.push(...ended);
  },
);

test("the moments were spread over whole runs, and nothing came back later", async () => {
  expect(all).toHaveLength(SEEDS);
  for (const { seed, copyId } of all) {
    expect({ seed, rows: await rowsOfCopy(database, copyId) }).toEqual({ seed, rows: {} });
  }
  expect(await database.query("SELECT 1 FROM graphile_worker.jobs WHERE last_error IS NOT NULL")).toEqual([]);
  const cut = all.filter(({ run }) => run === "CANCELLED");
  // On a busy machine a run may be over before its moment: a quarter of them in the middle of one is enough.
  expect(cut.length).toBeGreaterThanOrEqual(SEEDS / 4);
  expect(new Set(cut.map(({ seen }) => seen)).size).toBeGreaterThanOrEqual(Math.min(SEEDS / 4, 25));
});
