import { pino } from "pino";
import { enqueueJob, handlerOf, type JobPlace, type JobRunner, RUNNERS, startJobRunner } from "../../src/database/jobs";
import { SYNC_RUN } from "../../src/sync/runs";
import { enqueueRun } from "../../src/sync/schedule-rows";
import type { ActorClaims } from "../support/actors";
import { THING } from "../support/jobs";
import { connect, dataOf, until } from "../support/stories";
import { useService } from "../support/world";

const silent = pino({ level: "silent" });

const { simulator, database, service } = useService({ deals: 10, roles: ["api"] });

const runners: JobRunner[] = [];
const stopRunners = () => Promise.all(runners.splice(0).map((runner) => runner.stop()));
afterEach(stopRunners);

/** All that was told to wait, until it is let go. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

// Seen red: one kind of place for all: ten tenants whose CRM took 25 s an answer held every place of a worker, and a sync that a
// user of another tenant asked for waited for 397 s, the first one of a new connection for 401 s.
test("however many jobs wait long for their CRM, a worker takes others meanwhile", async () => {
  const tenantId = await database.tenantId("slow");
  const tenant = database.scope(tenantId);
  const enqueue = (thingId: string, place: JobPlace) =>
    tenant.transaction((scope) => enqueueJob(scope, THING, { tenantId, thingId }, 0, place));
  for (let one = 0; one < 25; one += 1) await enqueue(`late ${one}`, "LATE");
  const { opened, open } = gate();
  const begun: string[] = [];
  const handler = handlerOf(THING, ({ thingId }) => {
    begun.push(thingId);
    return opened;
  });
  for (const slots of RUNNERS) runners.push(await startJobRunner(database.url, [handler], silent, slots));
  const most = RUNNERS.reduce((sum, { forbiddenFlags, concurrency }) => sum + (forbiddenFlags ? 0 : concurrency), 0);
  await until("as many as may are in hand", async () => begun.length >= most);
  const others = RUNNERS.reduce((sum, { concurrency }) => sum + concurrency, 0) - most;
  expect(others).toBeGreaterThan(most);
  for (let one = 0; one < others; one += 1) await enqueue(`other ${one}`, "IN_TURN");
  await until("others are in hand", async () => begun.filter((name) => name.startsWith("other")).length === others);
  expect(begun.filter((name) => name.startsWith("late"))).toHaveLength(most);
  open();
  await until("all are done", async () => begun.length === 25 + others);
});

const REQUEST = "mutation { requestSync { ... on Refusal { code } } }";
const ask = async (as: ActorClaims) => expect(dataOf(await service.ask(REQUEST, {}, as))).toEqual({ requestSync: {} });

/** A connected tenant whose first sync has ended so long ago. */
async function connected(tenant: string, minutesAgo: number) {
  const as = { tenant };
  await connect(service, simulator, as);
  const tenantId = await database.tenantId(tenant);
  await database.query(
    `UPDATE sync_run SET state = 'SUCCEEDED', queued_at = now() - $2 * interval '1 minute', finished_at = now() - $2 * interval '1 minute'
     WHERE tenant_id = $1`,
    [tenantId, minutesAgo],
  );
  await database.query("DELETE FROM graphile_worker._private_jobs");
  return { as, tenantId };
}

// Seen red: after an outage of an hour a user's sync, and a new connection's first, waited behind those of thousands of tenants.
test("what a user waits for comes before what is due, but not by asking again and again", async () => {
  const db = database.opened();
  const scheduled = [];
  for (const name of ["one", "two", "three"]) scheduled.push((await connected(name, 60)).tenantId);
  const [waiting, again] = [await connected("waiting", 60), await connected("again", 0)];
  for (const tenantId of scheduled) {
    const [copy] = await database.query<{ id: number }>("SELECT copy_id AS id FROM connection WHERE tenant_id = $1", [
      tenantId,
    ]);
    await db
      .tenant(tenantId)
      .transaction((scope) => enqueueRun(scope, Number(copy?.id), "INCREMENTAL", new Date(), ["DEALS"]));
  }
  // Its run waits already, and is asked for: "SYNC_ALREADY_RUNNING" is no reason to wait longer.
  const queued = scheduled.pop() ?? 0;
  await database.query(
    "UPDATE sync_run SET queued_at = now() - interval '2 minutes' WHERE tenant_id = $1 AND state = 'QUEUED'",
    [queued],
  );
  expect(dataOf(await service.ask(REQUEST, {}, { tenant: "three" }))).toEqual({
    requestSync: { code: "SYNC_ALREADY_RUNNING" },
  });
  await ask(again.as);
  await ask(waiting.as);
  await connect(service, simulator, { tenant: "new" });
  const begun: number[] = [];
  const handler = handlerOf(SYNC_RUN, async ({ tenantId }) => void begun.push(tenantId));
  // Of its two sessions one listens: what it takes it takes one by one.
  runners.push(await startJobRunner(database.url, [handler], silent, { concurrency: 2 }));
  await until("all have begun", async () => begun.length === 6);
  const fresh = await database.tenantId("new");
  expect(begun).toEqual([queued, waiting.tenantId, fresh, ...scheduled, again.tenantId]);
});
