import { pino } from "pino";
import { z } from "zod";
import { Database } from "../../src/database/database";
import { enqueueJob, handlerOf, type JobKind, startJobRunner } from "../../src/database/jobs";
import { createTestDatabase, type TestDatabase } from "../support/database";
import { until } from "../support/stories";

// Seen red with: the payload stored as it was given; a payload that the worker takes for what it should be.

const PAYLOAD = z.object({ tenantId: z.int(), thingId: z.string() });
const THING: JobKind<z.infer<typeof PAYLOAD>> = {
  name: "look_at_thing",
  payload: PAYLOAD,
  subjectOf: ({ thingId }) => thingId,
};
const silent = pino({ level: "silent" });

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

test("a job carries the ids of its kind and nothing else, and a worker takes only what is of its kind", async () => {
  const tenantId = await database.tenantId("acme");
  const scope = new Database(database.dataSource).tenant(tenantId);
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
