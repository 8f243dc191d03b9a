import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { pino } from "pino";
import { migrate } from "../../src/database/data-source";
import { enqueueJob, handlerOf, startJobRunner, sweepDead } from "../../src/database/jobs";
import { readQueueState } from "../../src/sync/run-history";
import { SYNC_RUN_ENDED } from "../../src/sync/runs";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { THING } from "../support/jobs";
import { until } from "../support/stories";

// Seen red with: the payload stored as it was given; a payload that the worker takes for what it should be.

const silent = pino({ level: "silent" });

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test("a job carries the ids of its kind and nothing else, and a worker takes only what is of its kind", async () => {
  const tenantId = await database.tenantId("acme");
  const scope = database.scope(tenantId);
  const record = { tenantId, thingId: "one", accessToken: "never stored" };
  await scope.transaction((scope) => enqueueJob(scope, THING, record));
  await database.query("SELECT graphile_worker.add_job('look_at_thing', $1)", [{ tenantId: "one", thingId: 1 }]);
  const stored = await database.query("SELECT payload FROM graphile_worker._private_jobs ORDER BY id");
  expect(stored).toEqual([{ payload: { tenantId, thingId: "one" } }, { payload: { tenantId: "one", thingId: 1 } }]);

  const done: unknown[] = [];
  const handler = handlerOf(THING, async (payload) => {
    done.push(payload);
  });
  const runner = await startJobRunner(database.url, [handler], silent);
  const jobs = () =>
    database.query<{ key: string | null; last_error: string | null }>(
      "SELECT key, last_error FROM graphile_worker.jobs",
    );
  const left = await until("one is done and the other refused", async () => {
    const left = await jobs();
    return left.length === 1 && left[0]?.last_error !== null && left;
  });
  await runner.stop();
  expect(done).toEqual([{ tenantId, thingId: "one" }]);
  expect(left).toEqual([{ key: null, last_error: expect.stringContaining("tenantId") }]);
});

/** What a standby does to whoever opens a session meanwhile. @param work with a session that was open before */
async function whileNothingIsWritten(work: (own: Client) => Promise<void>): Promise<void> {
  const own = new Client({ connectionString: database.url.reveal() });
  await own.connect();
  const [found] = await database.query<{ name: string }>("SELECT current_database() AS name");
  try {
    await own.query(`ALTER DATABASE ${found?.name} SET default_transaction_read_only = on`);
    await work(own);
  } finally {
    await own.query(`ALTER DATABASE ${found?.name} RESET default_transaction_read_only`);
    await own.end();
  }
}

// Seen red with sessions that are kept: by them jobs were neither taken nor ended for as long as the process lived.
test("a runner keeps no session that was opened while nothing could be written", async () => {
  const tenantId = await database.tenantId("acme");
  const done: unknown[] = [];
  const handler = handlerOf(THING, async (payload) => void done.push(payload));
  const others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
  const add = (thingId: string) =>
    database.query("SELECT graphile_worker.add_job('look_at_thing', $1)", [{ tenantId, thingId }]);
  const runner = await startJobRunner(database.url, [handler], silent);
  await add("before");
  await until("it is done", async () => done.length > 0);
  await whileNothingIsWritten(async (own) => {
    await own.query(`SELECT pg_terminate_backend(pid) ${others} AND application_name = ''`);
    await sleep(3_000); // a runner asks for jobs every two seconds
    const kept = `SELECT 1 ${others} AND application_name = '' AND query NOT LIKE 'LISTEN%'`;
    await until("none is kept that has refused a write", async () => (await own.query(kept)).rows.length === 0);
  });
  await add("later");
  await until("the later one is done", async () => done.length > 1).finally(() => runner.stop());
}, 60_000);

// Seen red: it began, and took no job for as long as it lived; so it was where it was begun anew amid a failover.
test("a runner is not begun where nothing can be written", async () => {
  await whileNothingIsWritten(() =>
    expect(startJobRunner(database.url, [handlerOf(THING, async () => undefined)], silent)).rejects.toThrow(
      "read-only transaction",
    ),
  );
});

// Seen red: where PostgreSQL's clock was ahead a job that planned itself anew was due at once, thousands of times a minute; where
// this process's was ahead it came as much later.
test.each([-120_000, 3_600_000])("a job waits as long as it is to by a clock that is %d ms ahead", async (aheadMs) => {
  const tenantId = await database.tenantId("acme");
  jest.useFakeTimers({
    now: Date.now() + aheadMs,
    doNotFake: ["setTimeout", "setInterval", "setImmediate", "nextTick", "performance", "queueMicrotask"],
  });
  await database
    .scope(tenantId)
    .transaction((scope) => enqueueJob(scope, THING, { tenantId, thingId: "late" }, 60_000));
  jest.useRealTimers();
  const [job] = await database.query<{ waits: number }>(
    "SELECT extract(epoch FROM run_at - now())::float8 AS waits FROM graphile_worker.jobs WHERE key = 'look_at_thing:late'",
  );
  expect(job?.waits).toBeGreaterThan(50);
  expect(job?.waits).toBeLessThan(70);
});

// Seen red: it was due by so much earlier as its transaction had begun before, found nothing to do yet, and planned itself a minute on.
test("a job waits from when it is enqueued, however long the transaction has waited before", async () => {
  const tenantId = await database.tenantId("acme");
  const enqueuedAt = await database.scope(tenantId).transaction(async (scope) => {
    await scope.rows("SELECT pg_sleep(0.3)");
    const [now] = await scope.rows<{ at: Date }>("SELECT clock_timestamp() AS at", [], { at: "instant" });
    await enqueueJob(scope, THING, { tenantId, thingId: "held up" }, 60_000);
    return now?.at.getTime() ?? 0;
  });
  const runAt = "SELECT run_at FROM graphile_worker.jobs WHERE key = 'look_at_thing:held up'";
  const [job] = await database.query<{ run_at: Date }>(runAt);
  expect(job?.run_at.getTime()).toBeGreaterThanOrEqual(enqueuedAt + 60_000);
});

// Seen red: it counted as given up for ever, and the doctor told of an error that no log had.
test("a job whose worker was killed, and that another took up, is not one that was given up", async () => {
  const db = database.opened();
  const tenantId = await database.tenantId("acme");
  const enqueue = () =>
    db.tenant(tenantId).transaction((scope) => enqueueJob(scope, THING, { tenantId, thingId: "killed" }));
  await enqueue();
  await database.query(
    "UPDATE graphile_worker._private_jobs SET locked_at = now(), locked_by = 'dead' WHERE key LIKE '%killed'",
  );
  await enqueue();
  await database.query(
    "UPDATE graphile_worker._private_jobs SET locked_at = NULL, locked_by = NULL WHERE locked_by = 'dead'",
  );
  const replaced = "SELECT 1 FROM graphile_worker.jobs WHERE key IS NULL AND attempts >= max_attempts";
  expect(await database.query(replaced)).toHaveLength(1);
  expect(await readQueueState(db)).toMatchObject({ givenUp: 0 });
  await sweepDead(db);
  expect(await database.query(replaced)).toEqual([]);
});

// Seen red: an uninstall that could not be confirmed counted as given up for ever, and the doctor ended with an error for ever.
test("a job that was given up is told of for days, then nothing waits for it any more", async () => {
  const db = database.opened();
  const tenantId = await database.tenantId("acme");
  const givenUp = "SELECT key FROM graphile_worker.jobs WHERE attempts >= max_attempts ORDER BY key";
  for (const [thingId, age] of [
    ["lately", "2 days"],
    ["long-ago", "4 days"],
  ] as const) {
    await db.tenant(tenantId).transaction((scope) => enqueueJob(scope, THING, { tenantId, thingId }));
    await database.query(
      `UPDATE graphile_worker._private_jobs SET attempts = max_attempts, run_at = now() - interval '${age}' WHERE key LIKE '%${thingId}'`,
    );
  }
  expect(await readQueueState(db)).toMatchObject({ givenUp: 2 });
  await sweepDead(db);
  expect(await database.query(givenUp)).toEqual([{ key: "look_at_thing:lately" }]);
});

// Seen red: a tenant for whom it failed had one more each quarter of an hour, each tried 25 times and then given up.
test("what follows a tenant's runs waits once, however many have ended", async () => {
  const tenantId = await database.tenantId("acme");
  for (const runId of ["first", "second"]) {
    await database.scope(tenantId).transaction((scope) => enqueueJob(scope, SYNC_RUN_ENDED, { tenantId, runId }));
  }
  const waiting =
    "SELECT payload ->> 'runId' AS run FROM graphile_worker._private_jobs WHERE key LIKE 'sync_run_ended:%'";
  expect(await database.query(waiting)).toEqual([{ run: "second" }]);
});

// Seen red: of each stop the job that ended last stayed locked for four hours, and doctor told of a worker that had died.
test("a runner that is stopped leaves no job of those that it has done", async () => {
  const tenantId = await database.tenantId("acme");
  await database.query("SELECT graphile_worker.complete_jobs(array_agg(id)) FROM graphile_worker.jobs");
  const begun: unknown[] = [];
  const untilStopped = handlerOf(THING, async (payload, stop) => {
    begun.push(payload);
    await new Promise((resolve) => stop.addEventListener("abort", resolve));
    await sleep(500);
  });
  const runner = await startJobRunner(database.url, [untilStopped], silent);
  for (const thingId of ["one", "other"])
    await database.query("SELECT graphile_worker.add_job('look_at_thing', $1)", [{ tenantId, thingId }]);
  await until("both are begun", async () => begun.length === 2);
  await runner.stop();
  expect(await database.query("SELECT 1 FROM graphile_worker.jobs")).toEqual([]);
});

/** A block that fails as a statement does whose session an administrator ends. */
const ENDS = "DO $$ BEGIN RAISE 'terminating connection' USING ERRCODE = 'admin_shutdown'; END $$";

// Seen red: each session that was ended under a job was told as a bug of ours.
test("a job whose session the database ended is tried again, and wakes nobody; one that fails otherwise does", async () => {
  const tenantId = await database.tenantId("acme");
  const lines: string[] = [];
  const logger = pino({ level: "error" }, { write: (line: string) => void lines.push(line) });
  const handler = handlerOf(THING, ({ thingId }) =>
    database.query(thingId === "ended" ? ENDS : "SELECT nothing").then(),
  );
  const runner = await startJobRunner(database.url, [handler], logger);
  for (const thingId of ["ended", "broken"])
    await database.query("SELECT graphile_worker.add_job('look_at_thing', $1)", [{ tenantId, thingId }]);
  await until("both have failed", async () => {
    const failed = "SELECT 1 FROM graphile_worker.jobs WHERE last_error ~ 'terminating|nothing'";
    return (await database.query(failed)).length === 2;
  });
  await runner.stop();
  expect(lines.map((line) => /terminating|nothing/.exec(line)?.[0])).toEqual(["nothing"]);
  await database.query("DELETE FROM graphile_worker._private_jobs");
});

// Seen red: such a job was locked for four hours, and doctor told of a worker that had died. What matching does after a sync
// waited for the next sync, and where nobody asks for one, for that long.
test("a job whose end could not be told, or whose process was killed, is free again within minutes, and one in hand is not", async () => {
  const tenantId = await database.tenantId("acme");
  const begun: string[] = [];
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const handler = handlerOf(THING, async ({ thingId }) => {
    begun.push(thingId);
    if (thingId === "held") await held;
  });
  const runner = await startJobRunner(database.url, [handler], silent);
  const add = (thingId: string, at: string) =>
    database.query(`SELECT graphile_worker.add_job('look_at_thing', $1, run_at => ${at})`, [{ tenantId, thingId }]);
  await add("held", "now()");
  await until("it is in hand", async () => begun.length === 1);
  for (const thingId of ["untold", "killed", "another's"]) await add(thingId, "now() + interval '1 hour'");
  // As a session leaves it that ended with the word, a process that was killed, and one that is at work.
  const was = (thingId: string, by: string | null, ago: string) =>
    database.query(
      `UPDATE graphile_worker._private_jobs SET run_at = now(), locked_at = now() - $3::interval,
         locked_by = coalesce($2, (SELECT locked_by FROM graphile_worker._private_jobs WHERE payload->>'thingId' = 'held'))
       WHERE payload->>'thingId' = $1`,
      [thingId, by, ago],
    );
  await was("held", null, "10 minutes");
  await was("untold", null, "1 minute");
  await was("killed", "a killed process", "5 minutes");
  await was("another's", "a process", "4 minutes");
  await runner.freeLost();
  await until("the others are taken again", async () => begun.length > 2);
  expect([...begun].sort()).toEqual(["held", "killed", "untold"]);
  // Seen red: after five minutes it would have been taken for a killed process's.
  const seen =
    "SELECT locked_at > now() - interval '10 seconds' AS now FROM graphile_worker._private_jobs WHERE payload->>'thingId' = 'held'";
  expect(await database.query(seen)).toEqual([{ now: true }]);
  letGo();
  await until("it is done", async () => (await database.query("SELECT 1 FROM graphile_worker.jobs")).length === 1);
  await runner.stop();
  await database.query("DELETE FROM graphile_worker._private_jobs");
});

// Seen red: a graceful stop amid a purge was told as a bug of ours.
test("a job that ends because its process does wakes nobody", async () => {
  const tenantId = await database.tenantId("acme");
  const lines: string[] = [];
  const logger = pino({ level: "error" }, { write: (line: string) => void lines.push(line) });
  let isBegun = false;
  const handler = handlerOf(THING, async (_payload, stop) => {
    isBegun = true;
    await new Promise((resolve) => stop.addEventListener("abort", resolve));
    throw new Error("it was stopped and goes on later");
  });
  const runner = await startJobRunner(database.url, [handler], logger);
  await database.query("SELECT graphile_worker.add_job('look_at_thing', $1)", [{ tenantId, thingId: "stopped" }]);
  await until("it has begun", async () => isBegun);
  await runner.stop();
  expect(lines).toEqual([]);
});

// Seen red: two lines of level 50 in each second, for as long as the older process lived.
test("a worker that is older than the queue's tables takes no jobs, and says so less and less often", async () => {
  const ahead = await createTestDatabase();
  const said: string[] = [];
  const logger = pino({ level: "error" }, { write: (line: string) => void said.push(line) });
  const runner = await startJobRunner(ahead.url, [], logger);
  const [row] = await ahead.query<{ next: number }>(
    "INSERT INTO graphile_worker.migrations (id, breaking) SELECT max(id) + 1, true FROM graphile_worker.migrations RETURNING id AS next",
  );
  const news = JSON.stringify({ migrationNumber: row?.next, breaking: true });
  // Heard once it listens.
  await until("it has given up", async () => {
    await ahead.query("SELECT pg_notify('worker:migrate', $1)", [news]);
    return said.length > 0;
  });
  await sleep(4_000);
  expect(said.length).toBeLessThan(5);
  expect(said[0]).toContain("breaking migration");
  // Seen red: at the start a stack stood behind the library's words.
  const next = row?.next ?? 0;
  await expect(migrate(ahead.url)).rejects.toMatchObject({
    code: "DATABASE_UNFIT",
    message: `The database cannot be used: its job queue is of revision ${next}, and this version knows those up to ${next - 1}; run the newer version that has changed it.`,
  });
  await runner.stop();
  await ahead.drop();
  // The library sets it for the process, which here is the test's.
  process.exitCode = undefined;
});
