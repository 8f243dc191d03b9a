import { noteRecord } from "../../src/crm/parsing/records";
import { HOUR_MS, MINUTE_MS } from "../../src/platform/clock";
import { NoteWrites } from "../../src/writeback/notes";
import { NOTE, settle, type WriteRef } from "../../src/writeback/receipts";
import { useFieldStory } from "../support/field-story";
import { recordPath, setMapping, writeFields } from "../support/fields";
import { askedNote, notesWith, posts, seller, writeNote } from "../support/notes";
import { dataOf, noJobIsDue, until } from "../support/stories";
import { makeStale } from "../support/tokens";
import { fieldWritesOf, useWriteback } from "../support/writeback";

// Seen red with: another company's note taken for the lost one; a note that nobody can read taken for another; a value compared as
// one of the field that is nominated now; a note of a copy that had gone.

const story = useFieldStory();
const { world, simulator, database, service } = story;
/** So late that one complete look is proof. */
const writeback = useWriteback(world, () => new Date(Date.now() + 2 * HOUR_MS));

const LOST = { kind: "lostAfter" } as const;
const failPosts = (fault: Parameters<typeof simulator.control.fail>[0]["with"]) =>
  simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: fault });
/** A page of the record's notes with one of which neither the id nor the text can be read. */
const showUnreadable = () => {
  const body = { success: true, data: [{ id: "x", content: 5 }], additional_data: { pagination: {} } };
  return simulator.control.fail({ match: "/api/v1/notes", method: "GET", with: { status: 200, body } });
};

const look = async ({ lookUp }: { lookUp(write: WriteRef): Promise<void> }, { id }: { id: string }) =>
  lookUp({
    tenantId: await database.tenantId("acme"),
    writeId: Buffer.from(id, "base64url").toString().split(":")[1] ?? "",
  });
const lookForNote = (write: { id: string }) => look({ lookUp: (of) => writeback.lookUps.lookUp(of) }, write);
const stateOf = async ({ id }: { id: string }) => {
  const query = "query ($id: ID!) { node(id: $id) { ... on NoteWrite { state } ... on FieldWrite { state } } }";
  return dataOf(await service.ask<{ node: { state: string } }>(query, { id })).node.state;
};

test("a lost note that can no longer be read is not said to be missing", async () => {
  failPosts(LOST);
  const write = await writeNote(service, { meetingId: story.meetingId });
  const [made] = notesWith(simulator, write.reference);
  simulator.control.change("note", made?.id ?? 0, { add_time: "yesterday" });
  await lookForNote(write);
  expect(await stateOf(write)).toBe("UNKNOWN");
  const ended = () => database.query("SELECT sent_at FROM note_write WHERE reference = $1", [write.reference]);
  const before = await ended();
  simulator.control.change("note", made?.id ?? 0, { add_time: "2026-11-20 12:00:00" });
  await lookForNote(write);
  expect(await stateOf(write)).toBe("WRITTEN");
  expect(await ended()).toEqual(before);
});

// Planted and seen red: it was the copy, and where that was deleted the receipt named a note that was gone.
test("of a lost note that somebody has copied by hand the first one is it", async () => {
  failPosts(LOST);
  const write = await writeNote(service, { meetingId: story.meetingId });
  const [made] = notesWith(simulator, write.reference);
  simulator.control.add("note", { content: made?.content ?? "", deal_id: story.ids.DEAL });
  await lookForNote(write);
  const found = "SELECT crm_note_id AS id FROM note_write WHERE reference = $1";
  expect(await database.query(found, [write.reference])).toEqual([{ id: made?.id }]);
});

test("a look for which there is no token fails no job: the next one is planned", async () => {
  failPosts(LOST);
  const write = await writeNote(service, { meetingId: story.meetingId });
  const calm = simulator.control.fail({ match: "/oauth/token", with: { kind: "throttle" } });
  await makeStale(database, "acme");
  await lookForNote(write);
  expect(await stateOf(write)).toBe("UNKNOWN");
  // By a job of its own: what a sweep finds without one is a minute late.
  const planned = await database.query(
    `SELECT 1 FROM graphile_worker.jobs j JOIN note_write w ON j.key = 'note_look_up:' || w.id
     WHERE w.reference = $1 AND j.run_at > now() + interval '10 seconds'`,
    [write.reference],
  );
  expect(planned).toHaveLength(1);
  calm();
  await lookForNote(write);
  expect(await stateOf(write)).toBe("WRITTEN");
});

test("while one on the record cannot be read at all, no note is said to be missing, and none is sent whose receipt may be lost", async () => {
  failPosts({ status: 500 });
  const write = await writeNote(service, { meetingId: story.meetingId });
  const calm = showUnreadable();
  await lookForNote(write);
  expect(await stateOf(write)).toBe("UNKNOWN");
  simulator.log.clear();
  await database.query(
    "INSERT INTO crm_stop (begun_at, reason, ended_at) VALUES (now(), 'A disk was restored.', now())",
  );
  expect(await writeNote(service, { meetingId: story.meetingId })).toMatchObject({ state: "UNKNOWN" });
  expect(posts(simulator)).toEqual([]);
  await database.query("DELETE FROM crm_stop");
  calm();
  await lookForNote(write);
  expect(await stateOf(write)).toBe("FAILED");
});

const ahead = useWriteback(world, () => new Date(Date.now() + 10 * MINUTE_MS));

// Seen red: four in one second, and by a clock that is ahead it was FAILED before the CRM showed it; who wrote it again had it twice.
test("a look that several sweeps have enqueued at one moment is made once", async () => {
  failPosts({ status: 500 });
  const write = await writeNote(service, { meetingId: story.meetingId });
  await noJobIsDue(database);
  const made = () =>
    database.query<{ id: string; lookUps: number }>(
      `SELECT id, look_ups AS "lookUps" FROM note_write WHERE reference = $1`,
      [write.reference],
    );
  const [{ id: writeId, lookUps } = { id: "", lookUps: 0 }] = await made();
  const found = { tenantId: await database.tenantId("acme"), writeId, lookUps };
  for (let sweeps = 0; sweeps < 5; sweeps += 1) await ahead.lookUps.lookUp(found);
  expect([await stateOf(write), await made()]).toEqual(["UNKNOWN", [{ id: writeId, lookUps: lookUps + 1 }]]);
});

test("a note of another company that carries the reference settles nothing", async () => {
  failPosts(LOST);
  const write = await writeNote(service, { meetingId: story.meetingId });
  const [made] = notesWith(simulator, write.reference);
  const tenantId = await database.tenantId("acme");
  const [live] = await database.query<{ id: number }>("SELECT id FROM synced_copy WHERE state = 'LIVE'");
  const synced = () =>
    writeback.database
      .tenant(tenantId)
      .transaction((scope) =>
        writeback.notes.settleSynced({ ...scope, copyId: Number(live?.id) }, [noteRecord.parse(made)]),
      );
  await database.query("UPDATE synced_copy SET crm_company_id = crm_company_id + 1 WHERE state = 'LIVE'");
  await synced();
  expect(await stateOf(write)).toBe("UNKNOWN");
  await database.query("UPDATE synced_copy SET crm_company_id = crm_company_id - 1 WHERE state = 'LIVE'");
  await synced();
  expect(await stateOf(write)).toBe("WRITTEN");
});

test("a lost value is compared as one of the field that it was written to, whichever is nominated by then", async () => {
  await setMapping(service, "DEAL", story.keyOf("DEAL", "monetary"));
  const match = recordPath("DEAL", story.ids.DEAL);
  const calm = simulator.control.fail({ match, method: "PATCH", with: LOST });
  const value = { value: "1250.50", currency: "EUR" };
  const { writes } = await writeFields(service, story.meetingId, [{ entity: "DEAL", value }]);
  const [write] = writes ?? [];
  if (write?.state !== "UNKNOWN") throw new Error(`the value is ${write?.state}`);
  calm();
  await setMapping(service, "DEAL", story.keyOf("DEAL"));
  await database.query("UPDATE field_mapping SET checked_at = now() + interval '2 hours'");
  const fields = fieldWritesOf(writeback);
  await look({ lookUp: (of) => fields.lookUps.lookUp(of) }, write);
  expect(await stateOf(write)).toBe("WRITTEN");
});

test("who uses a key for another input is told so also where what it was used for cannot be waited for", async () => {
  const release = simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { kind: "hang" } });
  const actor = await seller(database);
  const writing = writeback.notes.write(actor, askedNote(story.meetingId, "one key", "one input"));
  await until("it is sent", async () => posts(simulator).length > 0);
  let finds = 0;
  const away = database.opened({
    observe: (text, run) => {
      if (text.includes("FROM note_write") && finds++ > 0) throw new Error("the database is away");
      return run();
    },
  });
  const others = new NoteWrites({ ...writeback.parts, database: away });
  const answer = await others.write(actor, askedNote(story.meetingId, "one key", "another input"));
  expect(answer).toMatchObject({ ok: false, code: "IDEMPOTENCY_KEY_REUSED" });
  release();
  await writing;
});

test("who wrote a note whose receipt went meanwhile is told so, and who waits for it with its key", async () => {
  const release = failPosts({ kind: "hang" });
  const actor = await seller(database);
  const asked = askedNote(story.meetingId, "gone meanwhile");
  const writing = writeback.notes.write(actor, asked);
  await until("it is sent", async () => posts(simulator).length > 0);
  let finds = 0;
  const watched = database.opened({
    observe: (text, run) => {
      if (text.includes("FROM note_write")) finds += 1;
      return run();
    },
  });
  const waiting = new NoteWrites({ ...writeback.parts, database: watched }).write(actor, asked);
  await until("another waits for it", async () => finds > 2);
  await database.query("DELETE FROM note_write WHERE idempotency_key = 'gone meanwhile'");
  const gone = { ok: false, code: "NOT_CONNECTED", message: expect.stringContaining("Its receipt is gone") };
  expect(await waiting).toMatchObject(gone);
  release();
  expect(await writing).toMatchObject(gone);
  expect(posts(simulator)).toHaveLength(1);
});

// Planted and seen red: it was to be written again.
test("a note that was not found is WRITTEN all the same once its answer comes late and says so", async () => {
  const release = failPosts({ kind: "hangAfter" });
  const writing = writeback.notes.write(await seller(database), askedNote(story.meetingId, "comes late"));
  await until("it is sent", async () => posts(simulator).length > 0);
  const [made] = await database.query<{ id: string }>("SELECT id FROM note_write WHERE idempotency_key = 'comes late'");
  const scope = writeback.database.tenant(await database.tenantId("acme"));
  const failure = { code: "ANSWER_LOST", message: "It is not there." } as const;
  const notFound = { state: "FAILED", failure } as const;
  await scope.transaction((inner) => settle(inner, NOTE, made?.id ?? "", notFound, new Date()));
  release();
  const written = { state: "WRITTEN", errorCode: null, crmNoteId: expect.anything() };
  expect(await writing).toMatchObject({ ok: true, value: written });
});

// Planted and seen red: its readers had it until the next sync.
test("a note that is deleted by the time its answer comes is WRITTEN, and comes into no copy", async () => {
  const note = { id: 999_999, content: "<p>Gone</p>", add_time: "2026-11-20 12:00:00", deal_id: story.ids.DEAL };
  failPosts({ status: 201, body: { success: true, data: { ...note, active_flag: false } } });
  expect(await writeNote(service, { meetingId: story.meetingId })).toMatchObject({ state: "WRITTEN" });
  expect(await database.query("SELECT 1 FROM note WHERE crm_id = 999999")).toEqual([]);
});

test("a note whose answer comes after a disconnect is reported as written, and comes into no copy", async () => {
  const release = failPosts({ kind: "hang" });
  const writing = writeNote(service, { meetingId: story.meetingId });
  await until("it is sent", async () => posts(simulator).length > 0);
  dataOf(await service.ask("mutation { disconnect { __typename } }"));
  await noJobIsDue(database);
  release();
  expect(await writing).toMatchObject({ state: "WRITTEN", target: null });
  expect(await database.query("SELECT crm_id FROM note")).toEqual([]);
});
