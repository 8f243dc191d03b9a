import { pino } from "pino";
import { resumeCrm, stopCrm } from "../../src/connections/crm-stops";
import { useFieldStory } from "../support/field-story";
import { heldIn, listPath, listsAreOld, patches, recordPath, setMapping, writeFields } from "../support/fields";
import { askedNote, seller } from "../support/notes";
import { startService } from "../support/service";
import { connect, syncAgain, until } from "../support/stories";
import { fieldWritesOf, startWriteback } from "../support/writeback";

// Seen red with: an absence believed at once.

const story = useFieldStory();
const { simulator, database } = story;

/** A worker looks at once for what another has left behind, as the sweeps of both would. */
async function withFreshWorker<T>(work: () => Promise<T>): Promise<T> {
  const worker = await startService(simulator, database);
  try {
    return await work();
  } finally {
    await worker.stop();
  }
}

/** A value that the CRM took, with its receipt as a process leaves it that is killed before it has the answer. */
async function written(value: string): Promise<string> {
  const { writes } = await writeFields(story.service, story.meetingId, [{ entity: "DEAL", value }]);
  expect(writes?.[0]?.state).toBe("WRITTEN");
  simulator.log.clear();
  return newest();
}
async function newest(): Promise<string> {
  const [row] = await database.query<{ id: string }>("SELECT id FROM field_write ORDER BY requested_at DESC LIMIT 1");
  return row?.id ?? "";
}
/** Its answer was lost so long ago, and its next look, after so many, is due. */
const LOST = `UPDATE field_write SET state = 'UNKNOWN', error_code = 'ANSWER_LOST', error_message = 'lost', settled_at = NULL,
  sent_at = now() - make_interval(mins => $2), next_look_up_at = now() - interval '2 minutes', look_ups = $3 WHERE id = $1`;
const unknown = (id: string, minutesAgo: number, lookUps = 3) => database.query(LOST, [id, minutesAgo, lookUps]);
/** It is looked up. With the job in one statement: sweeps of two workers that find it without one at the same moment may look twice. */
async function lookUp(id: string, minutesAgo: number, lookUps = 3): Promise<void> {
  await database.query(
    `WITH due AS (${LOST} RETURNING tenant_id, id)
     SELECT graphile_worker.add_job('field_look_up', json_build_object('tenantId', tenant_id, 'writeId', id),
       job_key => 'field_look_up:' || id) FROM due`,
    [id, minutesAgo, lookUps],
  );
  const going = `SELECT 1 FROM graphile_worker.jobs
    WHERE task_identifier = 'field_look_up' AND (locked_at IS NOT NULL OR run_at <= now())`;
  await until("the look has ended", async () => (await database.query(going)).length === 0);
}
const looks = () => simulator.log.of("GET", "/api/v2/deals/");
const receipt = async (id: string) =>
  (
    await database.query<{ state: string; error_code: string | null }>(
      "SELECT state, error_code FROM field_write WHERE id = $1",
      [id],
    )
  )[0];
const settled = (id: string) =>
  until(`${id} is settled`, async () => {
    const row = await receipt(id);
    return row && !["SENDING", "UNKNOWN"].includes(row.state) && row;
  });
const change = (value: unknown) =>
  simulator.control.change("deal", story.ids.DEAL, {
    custom_fields: { ...simulator.control.fieldsOf("deal", story.ids.DEAL), [story.keyOf("DEAL")]: value as string },
  });

test("a value whose process was killed is found in the CRM, and nothing is sent again", async () => {
  const id = await written("was there");
  await database.query(
    `UPDATE field_write SET state = 'SENDING', requested_at = now() - interval '3 minutes', sent_at = NULL,
       settled_at = NULL WHERE id = $1`,
    [id],
  );
  await withFreshWorker(() => settled(id));
  expect(await receipt(id)).toEqual({ state: "WRITTEN", error_code: null });
  expect(looks()).toHaveLength(1);
  expect(patches(simulator)).toEqual([]);
});

// Planted and seen red: a sweep took it for left behind while its process was sending.
test("one that is being sent is nobody's to look up for two minutes", async () => {
  const id = await written("being sent");
  const sending = `UPDATE field_write SET state = 'SENDING', requested_at = now() - make_interval(secs => $2), sent_at = NULL, settled_at = NULL
    WHERE id = $1`;
  const writeback = await startWriteback(story.world.config);
  const { lookUps } = fieldWritesOf(writeback);
  await database.query(sending, [id, 60]);
  await lookUps.sweep();
  expect((await receipt(id))?.state).toBe("SENDING");
  await database.query(sending, [id, 121]);
  await lookUps.sweep();
  expect((await receipt(id))?.state).not.toBe("SENDING");
  await writeback.close();
  await settled(id);
});

test("one that the CRM does not hold is FAILED only by a look three minutes after the sending", async () => {
  const id = await written("was not there");
  change("something else");
  await lookUp(id, 1);
  expect(await receipt(id)).toEqual({ state: "UNKNOWN", error_code: "ANSWER_LOST" });
  await lookUp(id, 4);
  expect(await receipt(id)).toEqual({ state: "FAILED", error_code: "ANSWER_LOST" });
  // Seen red: that its field held another value, and that it was to be written again.
  simulator.control.remove("deal", story.ids.DEAL);
  await lookUp(id, 4);
  expect(await receipt(id)).toEqual({ state: "FAILED", error_code: "RECORD_NOT_FOUND" });
  simulator.control.change("deal", story.ids.DEAL, { status: "open", is_deleted: false });
  expect(patches(simulator)).toEqual([]);
});

// Seen red: "Not written: the CRM took the request and holds another value".
test("a text that the CRM has cut is said to be not written neither by its answer nor by a look", async () => {
  const key = simulator.control.addCustomField("deal", { name: "Summary", type: "text" });
  await setMapping(story.service, "DEAL", key);
  simulator.control.changeFieldType("deal", key, "varchar");
  const { writes } = await writeFields(story.service, story.meetingId, [{ entity: "DEAL", value: "a".repeat(300) }]);
  expect(heldIn(simulator, "DEAL", story.ids.DEAL, key)).toBe("a".repeat(255));
  expect(writes?.[0]?.error).toEqual({
    code: "NOT_APPLIED",
    message:
      "The CRM took the request, and the field now holds another value than was sent, maybe a part of it. Look at it in the CRM.",
  });
  const id = await newest();
  await lookUp(id, 4);
  const said = await database.query<{ error_message: string }>("SELECT error_message FROM field_write WHERE id = $1", [
    id,
  ]);
  expect(said[0]?.error_message).toMatch(/^The CRM's answer was lost, and the field holds another value/);
  await story.nominate("varchar");
});

// Seen red: a list for each look, at ten times the price of the record.
test("looks within a minute read the list of fields once", async () => {
  const ids = [await written("the one before"), await written("the one that is there")];
  await listsAreOld(database);
  for (const id of ids) {
    await lookUp(id, 4);
  }
  expect(await Promise.all(ids.map(receipt))).toMatchObject([{ state: "FAILED" }, { state: "WRITTEN" }]);
  expect(looks()).toHaveLength(2);
  expect(simulator.log.of("GET", listPath("DEAL"))).toHaveLength(1);
});

// Seen red: a list for each value that the CRM rejects, whatever its age.
test("a value that the CRM rejects costs no list of fields that is under a minute old", async () => {
  await story.nominate("varchar");
  const match = recordPath("DEAL", story.ids.DEAL);
  simulator.control.fail({ match, method: "PATCH", with: { status: 400 } });
  const reject = async () => {
    const { writes } = await writeFields(story.service, story.meetingId, [{ entity: "DEAL", value: "rejected" }]);
    expect(writes?.[0]?.error?.code).toBe("VALUE_REJECTED");
    return simulator.log.of("GET", listPath("DEAL")).length;
  };
  expect(await reject()).toBe(0);
  await listsAreOld(database);
  expect([await reject(), await reject()]).toEqual([1, 1]);
});

// Seen red: no line of the log said why.
test("the log says why a value was not seen written, with the CRM's correlation id, and nothing of the value", async () => {
  const lines: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
  const writeback = await startWriteback(story.world.config);
  const match = recordPath("DEAL", story.ids.DEAL);
  simulator.control.fail({ match, method: "PATCH", with: { status: 503 } });
  const { meeting, meetingId } = askedNote(story.meetingId, "");
  const values = [{ entity: "DEAL" as const, targetId: null, target: null, value: "the-secret" }];
  const asked = { meeting, meetingId, values, idempotencyKey: "said in the log" };
  const fields = fieldWritesOf({ ...writeback, parts: { ...writeback.parts, logger } });
  expect(await fields.write(await seller(database), asked)).toMatchObject({ value: [{ state: "UNKNOWN" }] });
  await writeback.close();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/"correlationId":"[0-9a-f-]{36}"/);
  expect(lines[0]).not.toContain("the-secret");
});

// Seen red: FAILED after seconds, though the CRM held it a minute later.
test("a worker whose clock is five minutes ahead takes no value for absent that the CRM shows later", async () => {
  const id = await written("comes late");
  change("what was there before");
  await unknown(id, 0, 0);
  const ahead = await startWriteback(story.world.config, () => new Date(Date.now() + 300_000));
  await fieldWritesOf(ahead).lookUps.lookUp({ tenantId: await database.tenantId("acme"), writeId: id });
  await ahead.close();
  expect(await receipt(id)).toEqual({ state: "UNKNOWN", error_code: "ANSWER_LOST" });
  change("comes late");
  await lookUp(id, 1);
  expect(await receipt(id)).toEqual({ state: "WRITTEN", error_code: null });
});

// Planted and seen red: they had what was written in place of what the CRM held by then.
test("the answer to a write that comes late takes nothing newer from the readers", async () => {
  const match = recordPath("DEAL", story.ids.DEAL);
  const release = simulator.control.fail({ match, method: "PATCH", times: 1, with: { kind: "hangAfter" } });
  const writing = writeFields(story.service, story.meetingId, [{ entity: "DEAL", value: "ours" }]);
  await until("it is sent", async () => patches(simulator).length > 0 && story.held("DEAL") === "ours");
  simulator.control.advance(5);
  change("theirs");
  await syncAgain(story.service, database);
  release();
  expect((await writing).writes?.[0]?.state).toBe("WRITTEN");
  const copied = "SELECT custom_fields ->> $1 AS value FROM deal WHERE crm_id = $2";
  expect(await database.query(copied, [story.keyOf("DEAL"), story.ids.DEAL])).toEqual([{ value: "theirs" }]);
});

test("a record that is out of sight proves nothing: the value stays UNKNOWN until it is back", async () => {
  const id = await written("hidden for a while");
  simulator.control.hide("deal", story.ids.DEAL);
  await lookUp(id, 8);
  expect(looks().map(({ status }) => status)).toContain(404);
  expect((await receipt(id))?.state).toBe("UNKNOWN");
  simulator.control.show("deal", story.ids.DEAL);
  await lookUp(id, 8);
  expect(await receipt(id)).toEqual({ state: "WRITTEN", error_code: null });
});

// Seen red: it was read each six hours for ever, and doctor and the metric told of it for good.
test("a record that is out of sight a week later is not read any more, and the receipt says so", async () => {
  const id = await written("gone for good");
  simulator.control.hide("deal", story.ids.DEAL);
  const next = async (daysAgo: number) => {
    const before = looks().length;
    await lookUp(id, daysAgo * 24 * 60, 30);
    expect(looks().length).toBeGreaterThan(before);
    const [row] = await database.query<{ state: string; at: Date | null; error_message: string }>(
      "SELECT state, next_look_up_at AS at, error_message FROM field_write WHERE id = $1",
      [id],
    );
    return row;
  };
  expect((await next(6))?.at).not.toBeNull();
  expect(await next(7)).toMatchObject({ state: "UNKNOWN", at: null });
  expect((await next(7))?.error_message).toContain("a week later the record is gone from the CRM");
  // Planted and seen red: the job that was planned before went on with it.
  const before = looks().length;
  const writeback = await startWriteback(story.world.config);
  await fieldWritesOf(writeback).lookUps.lookUp({ tenantId: await database.tenantId("acme"), writeId: id });
  await writeback.close();
  expect(looks()).toHaveLength(before);
  simulator.control.show("deal", story.ids.DEAL);
});

// Planted and seen red: one that failed was tried anew with each sweep, six times a minute and more.
test("a sweep leaves alone whose job waits, or waits to be tried again, and brings back whose job is gone", async () => {
  const id = await written("waits for its job");
  const [key, job] = [`field_look_up:${id}`, { tenantId: await database.tenantId("acme"), writeId: id }];
  const add = `SELECT graphile_worker.add_job('field_look_up', $1, job_key => $2, run_at => now() + interval '5 minutes')`;
  await database.query(add, [job, key]);
  await unknown(id, 8);
  const isWaiting = async () =>
    (await database.query("SELECT 1 FROM graphile_worker.jobs WHERE key = $1 AND run_at > now()", [key])).length;
  const writeback = await startWriteback(story.world.config);
  const { lookUps } = fieldWritesOf(writeback);
  await lookUps.sweep();
  expect([await isWaiting(), looks()]).toEqual([1, []]);
  await database.query("SELECT graphile_worker.remove_job($1)", [key]);
  await lookUps.sweep();
  expect(await settled(id)).toEqual({ state: "WRITTEN", error_code: null });
  await writeback.close();
});

// Seen red: a stop of four hours used up the early looks, and the first one after it came six hours later.
test("while all calls are stopped a look is put off by a minute, and counts as none", async () => {
  const id = await written("found after the stop");
  const db = database.opened();
  const planned = async () =>
    (
      await database.query<{ looks: number; minutes: number }>(
        `SELECT look_ups AS looks, ceil(extract(epoch FROM next_look_up_at - now()) / 60)::int AS minutes
         FROM field_write WHERE id = $1`,
        [id],
      )
    )[0];
  await stopCrm(db, "Notes go to wrong deals.", new Date());
  try {
    await lookUp(id, 4, 7);
    expect(await planned()).toEqual({ looks: 7, minutes: 1 });
    expect(looks()).toEqual([]);
  } finally {
    await resumeCrm(db, new Date());
  }
  await lookUp(id, 4, 7);
  expect(await receipt(id)).toEqual({ state: "WRITTEN", error_code: null });
});

test("while the CRM is disconnected nothing is asked; after the same company is connected again it is found", async () => {
  const id = await written("waited for");
  await story.service.ask("mutation { disconnect { __typename } }");
  await lookUp(id, 5);
  expect(looks()).toEqual([]);
  expect((await receipt(id))?.state).toBe("UNKNOWN");
  await connect(story.service, simulator);
  await withFreshWorker(() => settled(id));
  expect(await receipt(id)).toEqual({ state: "WRITTEN", error_code: null });
});
