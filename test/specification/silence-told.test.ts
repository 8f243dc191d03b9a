import { setTimeout as sleep } from "node:timers/promises";
import { type Simulator, startSimulator } from "../../simulator";
import * as times from "../../simulator/model/times";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { setQuiet } from "../support/quiet-settings";
import { type Service, startService } from "../support/service";
import { type Subscription, subscribe } from "../support/sockets";
import { connect, dataOf, noJobIsDue, recordMeeting, syncEnds, until } from "../support/stories";

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);
const now = () => clock().getTime();
const later = (ms: number) => new Date(now() + ms).toISOString();
let simulator: Simulator;
let database: TestDatabase;
let worker: Service;
let other: Service;
const startWorker = () => startService(simulator, database, { clock });

beforeAll(async () => {
  [simulator, database] = await Promise.all([startSimulator({ deals: 20, now: clock }), createTestDatabase()]);
  worker = await startWorker();
  other = await startService(simulator, database, { clock, roles: new Set(["api"]) });
  await connect(other, simulator);
  await syncEnds(other);
  await recordMeeting(other, [simulator.company.stories.noParticipants.email], { startsAt: later(-40 * DAY_MS) });
  await noJobIsDue(database);
});
afterAll(async () => {
  await Promise.all([worker.stop(), other.stop()]);
  await Promise.all([simulator.stop(), database.drop()]);
});

interface Told {
  silenceChanged: { crmId: string; quiet: { verdict: string } };
}
async function watch(service = other, tenant = "acme"): Promise<Subscription<Told>> {
  const query = "subscription { silenceChanged { crmId quiet { verdict } } }";
  const watching = await subscribe<Told>(service.url, query, { as: { tenant, role: "member" } });
  await watching.listens();
  return watching;
}
const watchWhole = () => subscribe<object>(other.url, "subscription { connectionStatusChanged { state } }");
const verdictsOf = ({ results }: Subscription<Told>) =>
  results.map(({ silenceChanged: { crmId, quiet } }) => `${crmId} ${quiet.verdict}`);

async function sync(): Promise<void> {
  aheadMs += 11 * MINUTE_MS;
  dataOf(await other.ask("mutation { requestSync { ... on SyncRequested { run { id } } } }"));
  expect((await syncEnds(other)).state).toBe("SUCCEEDED");
  await noJobIsDue(database);
}
const mailAt = (at: number) =>
  simulator.control.change("person", simulator.company.stories.noParticipants.personId, {
    last_incoming_mail_time: times.v2Time(at / 1_000),
  });
const deal = () => simulator.company.stories.noParticipants.dealId;
/** Of that deal alone: the others' times come as well. */
const toldOf = (watching: Subscription<Told>) => verdictsOf(watching).filter((one) => one.startsWith(`${deal()} `));
/** What nobody was told of is not told later either. */
const SILENT_MS = 300;

test("a flip is told once to every process of the tenant and to nobody else: by a meeting, its end, and a sync", async () => {
  const { email, dealId, personId } = simulator.company.stories.ghosted;
  await recordMeeting(other, [email], { startsAt: later(-40 * DAY_MS) });
  const watchers = await Promise.all([watch(), watch(), watch(worker)]);
  const stranger = await watch(other, "stranger");
  const told = (count: number) =>
    until(`${count} are told`, async () => watchers.every(({ results }) => results.length >= count));
  const { id } = await recordMeeting(other, [email], { startsAt: later(5 * DAY_MS), externalId: "ahead" });
  await told(1);
  // What changes no verdict is not told.
  await recordMeeting(other, [email], { startsAt: later(6 * DAY_MS), externalId: "ahead" });
  dataOf(await other.ask("mutation ($id: ID!) { deleteMeeting(meetingId: $id) { __typename } }", { id }));
  await told(2);
  simulator.control.change("person", personId, { last_incoming_mail_time: times.v2Time(now() / 1_000) });
  await sync();
  await told(3);
  await sync();
  await sleep(SILENT_MS);
  for (const watching of watchers) {
    const [planned, ghosted, answered, ...more] = verdictsOf(watching);
    expect([ghosted, more]).toEqual([`${dealId} GHOSTED`, []]);
    expect([planned, answered]).not.toContain(ghosted);
  }
  expect(stranger.results).toEqual([]);
  await Promise.all([...watchers, stranger].map((one) => one.end()));
});

test("time alone is told at its instant, after clocks have jumped, and by a worker that comes late; also while the copy is stale", async () => {
  mailAt(now());
  await sync();
  const next = await database.query<{ at: Date; verdict: string }>(
    `SELECT holds_from AS at, verdict FROM deal_silence s JOIN connection c USING (tenant_id, copy_id)
     WHERE deal_id = $1 AND NOT is_told ORDER BY phase`,
    [deal()],
  );
  const [first, second] = next;
  if (!first || !second) throw new Error("nothing changes with time");
  const watching = await watch();
  aheadMs += first.at.getTime() - now() - 1_500;
  await until("it is told", async () => toldOf(watching).length > 0);
  expect(now()).toBeGreaterThanOrEqual(first.at.getTime());
  // Stale by now: the deal shows as unknown, and its stored verdict is told of.
  expect(toldOf(watching)).toEqual([`${deal()} UNKNOWN`]);
  await worker.stop();
  aheadMs += second.at.getTime() - now() + HOUR_MS;
  await sleep(SILENT_MS);
  expect(toldOf(watching).length).toBe(1);
  worker = await startWorker();
  await until("the late one tells it", async () => toldOf(watching).length > 1);
  await sleep(SILENT_MS);
  expect(toldOf(watching).length).toBe(2);
  await watching.end();
});

// Seen red: whoever had read or was told UNKNOWN meanwhile was never told otherwise, nor for a year after a clock had been a year ahead.
test("a copy that is no longer too old to judge by is told once for the connection", async () => {
  await sync();
  const first = "SELECT id FROM sync_run WHERE state = 'SUCCEEDED' ORDER BY queued_at LIMIT 1";
  await database.query(`UPDATE sync_run SET finished_at = $1 WHERE id = (${first})`, [later(365 * DAY_MS)]);
  aheadMs += 2 * DAY_MS;
  const whole = await watchWhole();
  await until("the present state is there", async () => whole.results.length === 1);
  const verdict = async () => {
    const query = "{ deals(first: 1, orderBy: QUIET_DAYS_DESC) { nodes { quiet { verdict } } } }";
    const { deals } = dataOf(await other.ask<{ deals: { nodes: { quiet: { verdict: string } }[] } }>(query));
    return deals.nodes[0]?.quiet.verdict;
  };
  expect(await verdict()).toBe("UNKNOWN");
  await sync();
  await until("it is told", async () => whole.results.length === 2);
  expect(await verdict()).not.toBe("UNKNOWN");
  await sync();
  await sleep(SILENT_MS);
  expect(whole.results.length).toBe(2);
  await whole.end();
});

test("a deal that becomes matched, and another zone, are told once for the connection and by no deal", async () => {
  await sync();
  const [watching, whole] = await Promise.all([watch(), watchWhole()]);
  await until("the present state is there", async () => whole.results.length === 1);
  await recordMeeting(other, [simulator.company.stories.singleDeal.email], { startsAt: later(-30 * DAY_MS) });
  await until("the new one is told", async () => whole.results.length === 2);
  const told = whole.results.length;
  for (const id of simulator.company.users.keys())
    simulator.control.change("user", id, { timezone_name: "Pacific/Auckland" });
  await sync();
  await until("the new days are told", async () => whole.results.length > told);
  await sleep(SILENT_MS);
  expect(watching.results).toEqual([]);
  await Promise.all([watching.end(), whole.end()]);
});

test("what changed while a deal was not matched is told once when it is again; what settings changed meanwhile is not", async () => {
  const { email, dealId, personId } = simulator.company.stories.ghosted;
  const meeting = { startsAt: later(-50 * DAY_MS), externalId: "comes-and-goes" };
  const cancel = (id: string) =>
    other.ask("mutation ($id: ID!) { cancelMeeting(meetingId: $id) { __typename } }", { id });
  const query = "{ meetings(first: 50) { nodes { id match { deal { crmId } } } } }";
  const { meetings } = dataOf(
    await other.ask<{ meetings: { nodes: { id: string; match: { deal: { crmId: string } | null } }[] } }>(query),
  );
  for (const { id, match } of meetings.nodes) if (match.deal?.crmId === String(dealId)) dataOf(await cancel(id));
  const lastContact = (days: number) =>
    simulator.control.change("person", personId, {
      last_incoming_mail_time: times.v2Time(now() / 1_000 - days * 86_400),
    });
  const journaled = async () =>
    (
      await database.query<{ entry: string }>(
        "SELECT was || ' ' || became AS entry FROM deal_change WHERE deal_id = $1 AND kind = 'VERDICT' ORDER BY id",
        [dealId],
      )
    ).map(({ entry }) => entry);
  lastContact(0);
  await sync();
  const { id } = await recordMeeting(other, [email], meeting);
  const before = await journaled();
  const watching = await watch();
  dataOf(await cancel(id));
  lastContact(200);
  await sync();
  expect(await journaled()).toEqual(before);
  await recordMeeting(other, [email], meeting);
  await until("the flip is told", async () => watching.results.length > 0);
  const after = await journaled();
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.slice(before.length)).toEqual(["ACTIVE GHOSTED"]);
  dataOf(await cancel(id));
  await setQuiet(other, { thresholds: [{ code: "GHOSTED", days: 300 }] });
  await noJobIsDue(database);
  await recordMeeting(other, [email], meeting);
  await sleep(SILENT_MS);
  expect(await journaled()).toEqual(after);
  expect(verdictsOf(watching)).toEqual([`${dealId} GHOSTED`]);
  await setQuiet(other, {});
  await noJobIsDue(database);
  await watching.end();
});

test("boundaries of a copy that was retired are told to nobody", async () => {
  const watching = await watch();
  const retired = await database.query<{ copy_id: number }>("SELECT copy_id FROM connection WHERE copy_id IS NOT NULL");
  await worker.stop();
  dataOf(await other.ask("mutation { disconnect { __typename } }"));
  aheadMs += 60 * DAY_MS;
  worker = await startWorker();
  const left = "SELECT 1 FROM deal_silence WHERE copy_id = $1 AND NOT is_told AND holds_from <= $2";
  await until("they are passed", async () => {
    return (await database.query(left, [retired[0]?.copy_id, clock()])).length === 0;
  });
  await sleep(SILENT_MS);
  expect(watching.results).toEqual([]);
  await watching.end();
});
