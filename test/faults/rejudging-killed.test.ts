import { Client } from "pg";
import { type Simulator, startSimulator } from "../../simulator";
import type { DealFacts } from "../../src/briefing/quiet/facts";
import { judge } from "../../src/briefing/quiet/judge";
import { readQuietFacts } from "../../src/briefing/quiet/read-quiet";
import { judgeByPresentRules } from "../../src/briefing/quiet/rejudging";
import { DAY_MS } from "../../src/platform/clock";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { type Program, startProgram } from "../support/processes";
import { COPY, HEALTHY } from "../support/quiet-lines";
import { QuietRows } from "../support/quiet-rows";
import { quietSettings, rejudged, setQuiet } from "../support/quiet-settings";
import { environmentFor, type Service, startService } from "../support/service";
import { subscribe } from "../support/sockets";
import { dataOf, until } from "../support/stories";

/** Six batches, so that a kill meets one of them. */
const DEALS = 3_000;
const COPY_ID = 1;
const as = { tenant: "acme" };
jest.setTimeout(120_000);

let simulator: Simulator;
let database: TestDatabase;
let service: Service;
let tenantId: number;
let worker: Program | null = null;

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 10 }), createTestDatabase()]);
  tenantId = await database.tenantId(as.tenant);
  const now = Date.now();
  const rows = new QuietRows(tenantId, COPY_ID, { ...COPY, readAt: now, asOf: now });
  for (let index = 0; index < DEALS; index++) rows.deal(deal(index, now), { notes: [], fields: [] });
  await rows.insert(database);
  await database.query("INSERT INTO connection (tenant_id, state, copy_id) VALUES ($1, 'CONNECTED', $2)", [
    tenantId,
    COPY_ID,
  ]);
  await database.query("ANALYZE");
  await judgeByPresentRules(copy(), new Date(now));
  service = await startService(simulator, database, { roles: new Set(["api"]) });
});
afterEach(() => kill());
afterAll(async () => {
  await service.stop();
  await Promise.all([simulator.stop(), database.drop()]);
});

/** The last contact of each was up to 29 days ago; nothing is planned, and nobody has mailed. */
const deal = (index: number, now: number): DealFacts => ({
  ...HEALTHY,
  dealId: 1_000 + index,
  planned: [],
  hasMail: false,
  stageId: null,
  updatedAt: now,
  addedAt: now - 60 * DAY_MS,
  inStageSince: now - (index % 20) * DAY_MS,
  contacts: [
    { kind: "NOTE", at: now - ((index % 30) + 0.5) * DAY_MS, crmId: 7, activityType: null, withPerson: false },
  ],
});
const copy = () => ({ ...database.scope(tenantId), copyId: COPY_ID });

function startWorker(): void {
  worker = startProgram("src/main.js", {
    ...environmentFor(simulator),
    ROLES: "worker",
    DATABASE_URL: database.url.reveal(),
    SYNC_INTERVAL_SECONDS: "0",
  });
}
async function kill(): Promise<void> {
  worker?.child.kill("SIGKILL");
  await worker?.ended;
  worker = null;
}

interface Place {
  generation: number;
  coming: object | null;
  walked: number | null;
  done: number;
}
async function place(): Promise<Place> {
  const [found] = await database.query<Place>(
    "SELECT generation, coming, walked_to AS walked, coming_done AS done FROM judged_copy",
  );
  if (!found) throw new Error("the copy was never judged");
  return found;
}

/** How many deals are quiet, by the list; each deal is judged one by one as it is listed. */
async function quietDeals(): Promise<number> {
  const now = new Date();
  const ids = Array.from({ length: DEALS }, (_, index) => 1_000 + index);
  const found = await readQuietFacts(copy(), ids, now);
  if (!found) throw new Error("no deal is there");
  const stored = await database.query<{ deal_id: number; verdict: string }>(
    `SELECT deal_id, verdict FROM deal_silence JOIN judged_copy USING (tenant_id, copy_id, generation)
     WHERE holds_from <= $1 AND holds_until > $1`,
    [now],
  );
  const verdicts = new Map(stored.map(({ deal_id, verdict }) => [deal_id, verdict]));
  const wrong = found.deals.filter((facts) => judge(facts, found.copy, now).verdict !== verdicts.get(facts.dealId));
  expect([stored.length, wrong.length]).toEqual([DEALS, 0]);
  const { deals } = dataOf(
    await service.ask<{ deals: { totalCount: number } }>(
      "{ deals(filter: { verdict: [QUIET] }) { totalCount } }",
      {},
      as,
    ),
  );
  expect(stored.filter(({ verdict }) => verdict === "QUIET").length).toBe(deals.totalCount);
  return deals.totalCount;
}

/** Of how many deals there are schedules that are not held. */
const besides = async () =>
  (
    await database.query(
      "SELECT DISTINCT deal_id FROM deal_silence s JOIN judged_copy j USING (tenant_id, copy_id) WHERE s.generation <> j.generation",
    )
  ).length;
const isWalked = () => until("all is done", async () => (await place()).walked === null);

const days = (count: number) => ({ thresholds: [{ code: "NO_RECENT_ACTIVITY", days: count }] });
const underWay = (after: number) =>
  until("some batches are judged", async () => {
    const found = await place();
    if (!found.coming) throw new Error("it was over before anybody was killed");
    return (found.walked ?? 0) > after ? found : null;
  });

/** What a minute would do: the queue itself would wait four hours for a job of a worker that is gone. */
const timePasses = () =>
  database.query(
    "UPDATE graphile_worker._private_jobs SET locked_at = now() - interval '2 minutes' WHERE locked_at IS NOT NULL",
  );

test("a worker that is killed while all deals are judged anew has lost a batch: the next one goes on, and nothing shows before the end", async () => {
  const before = await quietDeals();
  expect(before).toBe(DEALS / 2 + DEALS / 30);
  expect((await setQuiet(service, days(5), as)).settings?.rejudging).toEqual({ done: 0, total: DEALS });
  startWorker();
  const first = await underWay(0);
  await kill();
  const left = await place();
  expect(left.done).toBeGreaterThanOrEqual(first.done);
  expect(await quietDeals()).toBe(before);
  const { rejudging } = await quietSettings(service, as);
  expect(rejudging).toEqual({ done: left.done, total: DEALS });
  const watching = await subscribe(service.url, "subscription { connectionStatusChanged { state } }", { as });
  await until("the present state has come", async () => watching.results.length > 0);
  await timePasses();
  const judged = () =>
    database.query(
      `SELECT s.deal_id, s.phase, s.xmin::text AS version FROM deal_silence s JOIN judged_copy j USING (tenant_id, copy_id)
       WHERE s.generation > j.generation AND s.deal_id <= $1 ORDER BY 1, 2`,
      [left.walked],
    );
  const beginning = await judged();
  expect(beginning.length).toBeGreaterThan(0);
  startWorker();
  await underWay(left.walked ?? 0);
  // What the first one has judged is not judged again.
  expect(await judged()).toEqual(beginning);
  await rejudged(service, as);
  expect(await quietDeals()).toBe((DEALS / 30) * 25);
  await until("its end is told", async () => watching.results.length > 1);
  expect(watching.results.length).toBe(2);
  await watching.end();
  await isWalked();
  expect(await besides()).toBe(0);
  // Seen red: one transaction exchanged all, nobody else could judge a deal meanwhile, and of 300,000 phases it never ended.
  const written = "SELECT count(DISTINCT deal_id)::int AS deals FROM deal_silence GROUP BY xmin::text ORDER BY 1 DESC";
  expect((await database.query<{ deals: number }>(written))[0]?.deals).toBeLessThanOrEqual(250);
});

test("a worker that is killed while what held before is deleted leaves every answer whole: the next one goes on, or other settings do", async () => {
  const holder = new Client({ connectionString: database.url.reveal() });
  await holder.connect();
  const killedAtTheLast = async (settings: object) => {
    const { generation } = await place();
    await holder.query("BEGIN");
    const ofLast = "SELECT 1 FROM deal_silence WHERE tenant_id = $1 AND deal_id = $2 AND generation = $3 FOR UPDATE";
    await holder.query(ofLast, [tenantId, 1_000 + DEALS - 1, generation]);
    await setQuiet(service, settings, as);
    startWorker();
    await until("it waits for the last deal", async () => (await database.lockWaits()).length > 0);
    const left = await besides();
    await kill();
    await holder.query("ROLLBACK");
    await timePasses();
    expect([(await place()).coming, left > 0, left < DEALS]).toEqual([null, true, true]);
  };
  await killedAtTheLast(days(20));
  expect((await quietSettings(service, as)).rejudging).toBeNull();
  expect(await quietDeals()).toBe((DEALS / 30) * 10);
  await killedAtTheLast(days(28));
  expect(await quietDeals()).toBe((DEALS / 30) * 2);
  startWorker();
  await isWalked();
  expect([await besides(), await quietDeals()]).toEqual([0, (DEALS / 30) * 2]);
  await holder.end();
});

test("settings that are saved while deals are judged by others take their place from the first deal on", async () => {
  await setQuiet(service, days(3_650), as);
  startWorker();
  await underWay(0);
  expect((await setQuiet(service, days(10), as)).settings?.rejudging).toEqual({ done: 0, total: DEALS });
  await rejudged(service, as);
  expect(await quietDeals()).toBe((DEALS / 30) * 20);
  const query =
    "{ deals(first: 1, filter: { verdict: [QUIET] }) { nodes { quiet { reasons { thresholdDays code } } } } }";
  expect(dataOf(await service.ask(query, {}, as))).toMatchObject({
    deals: {
      nodes: [{ quiet: { reasons: expect.arrayContaining([{ code: "NO_RECENT_ACTIVITY", thresholdDays: 10 }]) } }],
    },
  });
});

test("a disconnect while deals are judged anew ends it, and leaves nothing of it behind", async () => {
  await setQuiet(service, days(4), as);
  startWorker();
  await underWay(0);
  dataOf(await service.ask("mutation { disconnect { __typename } }", {}, as));
  await until("the copy is gone", async () => (await database.query("SELECT 1 FROM synced_copy")).length === 0);
  for (const table of ["deal_silence", "judged_copy"])
    expect({ table, rows: await database.query(`SELECT 1 FROM ${table}`) }).toEqual({ table, rows: [] });
  expect(await quietSettings(service, as)).toMatchObject({ thresholds: [{ days: 4 }], rejudging: null });
});
