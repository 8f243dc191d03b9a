import { pino } from "pino";
import { enqueueJob, handlerOf, startJobRunner } from "../../src/database/jobs";
import { MINUTE_MS } from "../../src/platform/clock";
import { tellWhenLate } from "../../src/platform/work";
import { THING } from "../support/jobs";
import { until } from "../support/stories";
import { useDatabase } from "../support/world";

const silent = pino({ level: "silent" });

const database = useDatabase();

// Seen red: what was enqueued into the freed row was deleted with the word that the first one's work was done.
test("the end of a job that was freed meanwhile takes along nothing that was enqueued in its place", async () => {
  const tenantId = await database.tenantId("acme");
  const enqueue = () =>
    database.scope(tenantId).transaction((scope) => enqueueJob(scope, THING, { tenantId, thingId: "freed" }));
  let [begun, letGo] = [0, () => {}];
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const handler = handlerOf(THING, async () => {
    begun += 1;
    if (begun === 1) await held;
  });
  const cutOff = await startJobRunner(database.url, [handler], silent);
  await enqueue();
  await until("it is in hand", async () => begun === 1);
  await database.query("UPDATE graphile_worker._private_jobs SET locked_at = now() - interval '6 minutes'");
  const other = await startJobRunner(database.url, [{ ...handler, name: "other" }], silent);
  await other.freeLost();
  await enqueue();
  letGo();
  await until("it is done for what was enqueued", async () => begun === 2).finally(async () => {
    await other.stop();
    await cutOff.stop();
  });
});

/** What is timed in this turn of the event loop has waited for `ms` in the next one. */
function jumpOver(ms: number): void {
  jest.useFakeTimers({
    doNotFake: ["Date", "nextTick", "performance", "queueMicrotask", "setImmediate", "setInterval"],
  });
  setImmediate(() => {
    jest.advanceTimersByTime(ms);
    jest.useRealTimers();
  });
}

// Seen red: each 30 seconds it was said to be at work, and nobody was told that it did not end.
test("a job that does not end is told, by its tenant, while its process lives", async () => {
  const tenantId = await database.tenantId("acme");
  const lines: string[] = [];
  const logger = pino({ level: "error" }, { write: (line: string) => void lines.push(line) });
  const begun: string[] = [];
  const handler = handlerOf(THING, ({ thingId }, stop) => {
    begun.push(thingId);
    jumpOver(thingId === "endless" ? 15 * MINUTE_MS : 14 * MINUTE_MS);
    return new Promise((resolve) => stop.addEventListener("abort", () => resolve()));
  });
  const runner = await startJobRunner(database.url, [handler], logger);
  for (const thingId of ["slow", "endless"]) {
    await database.query("SELECT graphile_worker.add_job('look_at_thing', $1)", [{ tenantId, thingId }]);
    await until("it is in hand", async () => begun.includes(thingId));
  }
  await until("it is told", async () => lines.length > 0);
  await runner.stop();
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({
      payload: { tenantId, thingId: "endless" },
      msg: expect.stringContaining("does not end"),
    }),
  ]);
});

// Seen red with a timer that stays.
test("work that has ended is not told later", async () => {
  jest.useFakeTimers();
  const late: string[] = [];
  await tellWhenLate(Promise.resolve(), MINUTE_MS, () => late.push("quick"));
  void tellWhenLate(new Promise(() => undefined), MINUTE_MS, () => late.push("endless"));
  jest.advanceTimersByTime(MINUTE_MS);
  jest.useRealTimers();
  expect(late).toEqual(["endless"]);
});
