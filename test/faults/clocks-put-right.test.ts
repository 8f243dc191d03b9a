import { resumeCrm, stopCrm } from "../../src/connections/crm-stops";
import { notesWith, writeNote } from "../support/notes";
import { dataOf, recordMeeting, syncAgain, syncEnds, until } from "../support/stories";
import { useCrm } from "../support/world";

// What a worker's clock that was ahead has left behind when it is right again.

const YEAR_MS = 365 * 86_400_000;

let aheadMs = 0;
const clock = () => new Date(Date.now() + aheadMs);

const { simulator, database, serve } = useCrm({ deals: 10 });
const service = serve({ config: { clock }, connected: ["acme"] });
afterEach(() => {
  aheadMs = 0;
  simulator.control.clearFaults();
});

const QUEUED_JOB =
  "FROM graphile_worker.jobs j JOIN sync_run r ON j.key = 'sync_run:' || r.id WHERE r.state = 'QUEUED'";

/** A run that the operator's stop holds up while the service's clock is so far ahead. */
async function putOffAhead(ms: number): Promise<void> {
  aheadMs = ms;
  const db = database.opened();
  await stopCrm(db, "The database is moved.", new Date());
  await service.ask("mutation { requestSync { __typename } }");
  await until("the run is put off", async () => {
    const jobs = await database.query(`SELECT 1 ${QUEUED_JOB} AND j.locked_at IS NULL AND j.run_at > now()`);
    return jobs.length > 0;
  });
  aheadMs = 0;
  await resumeCrm(db, new Date());
}

// Seen red: it stayed QUEUED for as long as the clock had been ahead, and no other run was made.
test.each([3_600_000, YEAR_MS])("a run that was put off by a clock %d ms ahead goes on seconds later", async (ms) => {
  await putOffAhead(ms);
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
});

// Seen red: its job waited, so that no sweep took it up.
test("a run whose job is put off for longer than any is gone on with by the next sweep", async () => {
  await putOffAhead(YEAR_MS);
  await database.query(
    `UPDATE graphile_worker._private_jobs SET run_at = now() + interval '1 year' WHERE id IN (SELECT j.id ${QUEUED_JOB})`,
  );
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
});

// Seen red: nothing was matched again until the time had come at which that run was noted to have ended.
test("what a run brings is matched also after one that a clock a year ahead has ended", async () => {
  aheadMs = YEAR_MS;
  await syncAgain(service, database);
  aheadMs = 0;
  const email = "late@late-trading.example";
  const { id } = await recordMeeting(service, [email]);
  const emails = [{ value: email, primary: true, label: "work" }];
  const person_id = simulator.control.add("person", { name: "Late", emails });
  simulator.control.add("deal", { title: "Late", status: "open", person_id });
  await syncAgain(service, database);
  const read = "query ($id: ID!) { meeting(id: $id) { match { status } } }";
  const { meeting } = dataOf(await service.ask<{ meeting: object }>(read, { id }));
  expect(meeting).toEqual({ match: { status: "MATCHED" } });
});

// Seen red: neither sweep found it for a year, nor was the operator told of it.
test.each(["UNKNOWN", "SENDING"])(
  "a write that a process a year ahead has left %s, without a job, is looked up minutes later",
  async (state) => {
    const { id: meetingId } = await recordMeeting(service, [simulator.company.stories.singleDeal.email]);
    simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { kind: "lostAfter" } });
    aheadMs = YEAR_MS;
    const { reference } = await writeNote(service, { meetingId });
    aheadMs = 0;
    await database.query("DELETE FROM graphile_worker._private_jobs WHERE key LIKE 'note_look_up:%'");
    if (state === "SENDING")
      await database.query(
        "UPDATE note_write SET state = 'SENDING', sent_at = NULL, next_look_up_at = NULL WHERE reference = $1",
        [reference],
      );
    const is = (sql: string) => async () =>
      (await database.query(`SELECT 1 FROM note_write WHERE reference = $1 AND ${sql}`, [reference])).length > 0;
    await until("its times are the present ones", is("greatest(requested_at, sent_at, next_look_up_at) <= now()"));
    aheadMs = 5 * 60_000;
    await until("it is looked up", is("state = 'WRITTEN'"));
    expect(notesWith(simulator, reference)).toHaveLength(1);
  },
);

// Seen red: none that was recorded after the last run was for as long as the clock had been ahead.
test("a meeting is refreshed before it begins also after a run that a clock a year ahead has ended", async () => {
  aheadMs = YEAR_MS;
  await syncAgain(service, database);
  aheadMs = 0;
  await syncAgain(service, database);
  aheadMs = 2 * 60_000;
  const startsAt = new Date(clock().getTime() + 3 * 60_000).toISOString();
  await recordMeeting(service, [simulator.company.stories.singleDeal.email], { startsAt });
  const refreshed = "SELECT 1 FROM meeting WHERE starts_at = $1 AND refreshed_at IS NOT NULL";
  await until("it is refreshed", async () => (await database.query(refreshed, [startsAt])).length > 0);
});
