import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { z } from "zod";
import { connectionTo } from "../../src/database/application-role";
import { AdvisoryLocks } from "../../src/database/between-processes";
import { createDataSource, openPool } from "../../src/database/data-source";
import { heldUpOf, UNREACHED_CODES } from "../../src/database/errors";
import { enqueueJob, handlerOf, startJobRunner } from "../../src/database/jobs";
import type { SessionLimits } from "../../src/database/session-limits";
import { openOn } from "../support/database";
import { type Gate, openGate } from "../support/gate";
import { until } from "../support/stories";
import { useDatabase } from "../support/world";

// The host of the database goes without a word, and another one takes over: what was sent and not taken TCP would send
// again for a quarter of an hour. Seen red with: an answer that is waited for without end; a session that was
// frozen and is cut before it reads what came meanwhile; a job library's listening session that is not asked.

const database = useDatabase();
let gate: Gate;
beforeAll(async () => {
  const port = Number(new URL(database.url.reveal()).port);
  gate = await openGate(() => port);
});
afterAll(() => gate.close());

const silent = pino({ level: "silent" });
const limits = { statement: 500, lock: 500, idleInTransaction: 500, transaction: 500 };
const PATIENCE_MS = limits.statement + 10_000;

test.each([...UNREACHED_CODES, "ETIMEDOUT"])("%s of the database is temporary", (code) => {
  expect(heldUpOf(Object.assign(new Error("connect"), { code }))).not.toBeNull();
});

test("an answer that does not come ends its statement, and the next session is another one", async () => {
  const dataSource = await createDataSource({ url: gate.urlOf(database.url), entities: [], limits }).initialize();
  const ask = () => dataSource.query("SELECT 1 AS it");
  expect(await ask()).toEqual([{ it: 1 }]);
  gate.silenceOpen();
  const askedAt = performance.now();
  expect(heldUpOf(await ask().catch((error: unknown) => error))).not.toBeNull();
  expect(performance.now() - askedAt).toBeGreaterThan(PATIENCE_MS - 500);
  expect(await ask()).toEqual([{ it: 1 }]);
  await dataSource.destroy();
}, 30_000);

test("a read that is called off gives its session back, though another host takes what calls it off", async () => {
  const url = gate.urlOf(database.url);
  const dataSource = await createDataSource({ url, entities: [] }).initialize();
  const db = openOn(dataSource);
  const tenantId = await database.tenantId("acme");
  // Set to a tenant already, and not yet: the health check's.
  for (const before of [() => db.tenant(tenantId).rows("SELECT 1"), () => db.answers()]) {
    await before();
    gate.silenceOpen();
    const askedAt = performance.now();
    const asking = db.tenant(tenantId, AbortSignal.timeout(200)).rows("SELECT 1");
    await expect(asking).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
    expect(performance.now() - askedAt).toBeLessThan(20_000);
  }
  await dataSource.destroy();
}, 90_000);

// Seen red: after 72 s. Each request of the tenant waited for it.
test("which tenant it is, where that is not remembered, is waited for ten seconds and told as held up, and then asked of the next host", async () => {
  const dataSource = await createDataSource({ url: gate.urlOf(database.url), entities: [] }).initialize();
  const db = openOn(dataSource);
  const tenantId = await db.idOf("acme");
  for (const tenant of ["not remembered", "acme"]) {
    db.forgetIds();
    await db.answers();
    gate.silenceOpen();
    const askedAt = performance.now();
    const refusal = await db.idOf(tenant).catch((error: unknown) => error);
    expect(heldUpOf(refusal)).not.toBeNull();
    expect(performance.now() - askedAt).toBeLessThan(20_000);
  }
  expect(await db.idOf("acme")).toBe(tenantId);
  await dataSource.destroy();
}, 90_000);

// Linux tells when TCP asks. Seen red, each: after two hours.
(process.platform === "linux" ? test : test.skip)(
  "a session of which nothing comes is asked by TCP after 10 s, of the pool and of a start that waits for another's migrations",
  async () => {
    const pool = openPool(database.url, limits, {}, silent, "ended");
    const waiting = connectionTo(database.url);
    await waiting.connect();
    for (const session of [pool, waiting]) {
      const { rows } = await session.query("SELECT inet_client_port() AS port");
      const ours = `:${rows[0].port.toString(16).toUpperCase().padStart(4, "0")} `;
      const line = readFileSync("/proc/net/tcp", "utf8")
        .split("\n")
        .find((line) => line.split(":").slice(0, 3).join(":").includes(ours));
      const [, kind, inHundredths = ""] = /0{8}:0{8} (\d\d):([0-9A-F]{8})/.exec(line ?? "") ?? [];
      expect(kind).toBe("02");
      expect(Number.parseInt(inHundredths, 16)).toBeLessThan(1_001);
    }
    await Promise.all([pool.end(), waiting.end()]);
  },
);

test("a process that was frozen reads first what came meanwhile", async () => {
  const pool = openPool(database.url, limits, {}, silent, "ended");
  const session = await pool.connect();
  const answer = session.query("SELECT 1 AS it FROM pg_sleep(0.3)");
  answer.catch(() => undefined);
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PATIENCE_MS + 500);
  expect((await answer).rows).toEqual([{ it: 1 }]);
  // Seen red: it was looked at once, and never again.
  expect(session.connection.stream.listenerCount("timeout")).toBe(1);
  session.release();
  await pool.end();
}, 30_000);

test("a lock on a host that has gone is not waited for longer than a statement, and given back behind the caller", async () => {
  const limitedBy = (limits: SessionLimits) =>
    new AdvisoryLocks({
      ...{ url: gate.urlOf(database.url), limits, sessions: 1, withinMs: 1_000, space: 7, logger: silent },
      heldUp: (cause) => new Error("held up", { cause }),
    });
  const locks = limitedBy(limits);
  const done = async () => "done";
  expect(await locks.hold("it", () => null, done)).toBe("done");
  await sleep(300);
  gate.silenceOpen();
  const askedAt = performance.now();
  await expect(locks.hold("it", () => null, done)).rejects.toThrow("held up");
  expect(performance.now() - askedAt).toBeLessThan(PATIENCE_MS + 5_000);
  const silenced = async () => gate.silenceOpen();
  const heldAt = performance.now();
  await locks.hold("it", () => null, silenced);
  expect(performance.now() - heldAt).toBeLessThan(5_000);
  // Kept, though the work is silent for longer than the patience.
  const slow = limitedBy({ ...limits, idleInTransaction: 60_000, transaction: 60_000 });
  const long = () => sleep(PATIENCE_MS + 4_000, "long");
  const holding = slow.hold("long", () => null, long);
  await sleep(PATIENCE_MS + 2_000);
  const held = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 7 AND granted";
  expect(await database.query(held)).toHaveLength(1);
  expect(await holding).toBe("long");
  await Promise.all([locks.close(), slow.close()]);
}, 90_000);

test("jobs go on beside a host that has gone, and the session that hears of them is kept while nothing happens", async () => {
  const tenantId = await database.tenantId("acme");
  const kind = { name: "look", payload: z.object({ tenantId: z.int() }), subjectOf: () => "it" };
  let done = 0;
  const warnings: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line) => warnings.push(line) });
  const handler = handlerOf(kind, async () => {
    done += 1;
  });
  const runner = await startJobRunner(gate.urlOf(database.url), [handler], logger);
  const enqueue = () => database.scope(tenantId).transaction((scope) => enqueueJob(scope, kind, { tenantId }));
  await enqueue();
  await until("a job is done", async () => done === 1);
  await sleep(42_000);
  expect(warnings).toEqual([]);
  gate.silenceOpen();
  await enqueue();
  const goneAt = performance.now();
  while (done === 1 && performance.now() - goneAt < 60_000) await sleep(250);
  expect(done).toBe(2);
  await runner.stop();
}, 150_000);
