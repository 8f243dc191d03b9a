import { pino } from "pino";
import type { Fault } from "../../simulator";
import { CrmApi } from "../../src/crm/api";
import type { TokenSource } from "../../src/crm/calls";
import { freePort } from "../../src/database/embedded/programs";
import { createMetrics } from "../../src/platform/metrics";
import { NoteWrites } from "../../src/writeback/notes";
import type { WritebackParts } from "../../src/writeback/writing";
import { isAround } from "../support/database";
import { askedNote, notesWith, posts, seller, writeNote } from "../support/notes";
import type { Service } from "../support/service";
import { connect, dataOf, recordMeeting, until } from "../support/stories";
import { makeStale } from "../support/tokens";
import { useCrm } from "../support/world";
import { useWriteback } from "../support/writeback";

// Seen red with: a note sent again after any failure; only the first page looked through; a note that quotes the reference
// taken for the lost one.

let service: Service;
let meetingId: string;
let aheadMs = 0;
/** Both sides' clock. */
const clock = () => new Date(Date.now() + aheadMs);

const { world, simulator, database } = useCrm({ deals: 10, clock });
const writeback = useWriteback(world, clock);
beforeAll(async () => {
  service = await world.startService({ connected: ["acme"] });
  meetingId = (await recordMeeting(service, [simulator.company.stories.singleDeal.email])).id;
});
beforeEach(() => world.beginAnew());

const failPosts = (fault: Fault, times = 1) =>
  simulator.control.fail({ match: "/api/v1/notes", method: "POST", times, with: fault });

test.each<[string, Fault, string, string | null, number]>([
  ["a refusal of the text", { status: 400 }, "FAILED", "VALUE_REJECTED", 0],
  ["a closed account", { status: 402 }, "FAILED", "CRM_ACCOUNT_CLOSED", 0],
  ["a missing permission", { status: 403 }, "FAILED", "FORBIDDEN", 0],
  ["a record that is gone", { status: 404 }, "FAILED", "RECORD_NOT_FOUND", 0],
  ["a used-up limit", { kind: "throttle" }, "FAILED", "RATE_LIMITED", 0],
  ["a fault before the effect", { status: 500 }, "UNKNOWN", "ANSWER_LOST", 0],
  ["a fault after the effect", { kind: "failAfter", status: 503 }, "UNKNOWN", "ANSWER_LOST", 1],
  ["a time-out of the CRM after the effect", { kind: "failAfter", status: 408 }, "UNKNOWN", "ANSWER_LOST", 1],
  ["a conflict with another request", { kind: "failAfter", status: 409 }, "UNKNOWN", "ANSWER_LOST", 1],
  ["a proxy's page", { kind: "html" }, "UNKNOWN", "ANSWER_LOST", 0],
  ["a proxy's page under 401", { kind: "html", status: 401 }, "UNKNOWN", "ANSWER_LOST", 0],
  ["a reset before the effect", { kind: "reset" }, "UNKNOWN", "ANSWER_LOST", 0],
  ["a reset after the effect", { kind: "lostAfter" }, "UNKNOWN", "ANSWER_LOST", 1],
  ["half an answer", { kind: "cut" }, "UNKNOWN", "ANSWER_LOST", 1],
  ["an answer that is no JSON", { kind: "garbage" }, "UNKNOWN", "ANSWER_LOST", 0],
  ["an empty answer", { kind: "null" }, "UNKNOWN", "ANSWER_LOST", 0],
  [
    "another answer under 200",
    { status: 200, body: { success: true, data: { id: "x" } } },
    "UNKNOWN",
    "ANSWER_LOST",
    0,
  ],
  ["a slow answer", { kind: "delay", ms: 300 }, "WRITTEN", null, 1],
])("%s: one request, and the receipt says what is known", async (_, fault, state, code, notes) => {
  failPosts(fault);
  const write = await writeNote(service, { meetingId });
  expect(write).toMatchObject({ state, error: code && { code } });
  expect(posts(simulator)).toHaveLength(1);
  expect(notesWith(simulator, write.reference)).toHaveLength(notes);
});

// Seen red: VALUE_REJECTED, "Change it ...", which never helps.
test("a note to a deal that was archived is refused for the record, after one look, and not for the text", async () => {
  const { dealId } = simulator.company.stories.singleDeal;
  simulator.control.archive(dealId);
  const write = await writeNote(service, { meetingId });
  expect(write).toMatchObject({ state: "FAILED", error: { code: "RECORD_NOT_FOUND" } });
  expect(write.error?.message).toContain("archived or deleted in the CRM");
  expect(simulator.log.all().map(({ method, path }) => `${method} ${path}`)).toEqual([
    "POST /api/v1/notes",
    "GET /api/v2/deals",
  ]);
  simulator.control.fail({ match: "/api/v2/deals", times: 9, with: { status: 503 } });
  expect((await writeNote(service, { meetingId })).error?.code).toBe("VALUE_REJECTED");
  simulator.control.clearFaults();
  simulator.control.change("deal", dealId, { is_archived: false });
});

test("a refused token is renewed once and the note sent once more: the first request had certainly no effect", async () => {
  failPosts({ status: 401, body: { success: false, error: "unauthorized access", errorCode: 401 } });
  const write = await writeNote(service, { meetingId });
  expect(write.state).toBe("WRITTEN");
  expect(posts(simulator)).toHaveLength(2);
  expect(notesWith(simulator, write.reference)).toHaveLength(1);
  simulator.log.clear();
  failPosts({ status: 401 }, 9);
  expect(await writeNote(service, { meetingId })).toMatchObject({
    state: "FAILED",
    error: { code: "NEEDS_REAUTHORIZATION" },
  });
  expect(posts(simulator)).toHaveLength(2);
});

// Seen red: once the token was an hour old, "The access token could not be renewed for now. Try again later", which never helps.
test.each<[string, Fault, string, string]>([
  ["a company's closed account", { status: 402 }, "CRM_ACCOUNT_CLOSED", "Settle that with the CRM."],
  ["a missing permission", { status: 403 }, "FORBIDDEN", "Ask the CRM's admin."],
  ["a used-up limit", { kind: "throttle" }, "RATE_LIMITED", "request limit is used up"],
])("%s is told as one also where the token has to be renewed first", async (_, fault, code, message) => {
  await makeStale(database, "acme");
  simulator.control.fail({ match: "/api/v1/users/me", times: 1, with: fault });
  const { state, error } = await writeNote(service, { meetingId });
  expect([state, error?.code]).toEqual(["FAILED", code]);
  expect(error?.message).toContain(message);
  expect(posts(simulator)).toEqual([]);
});

/** Writes with one part replaced. */
const writeWith = async (change: Partial<WritebackParts>, key: string) => {
  const answer = await new NoteWrites({ ...writeback.parts, ...change }).write(
    await seller(database),
    askedNote(meetingId, key),
  );
  return answer.ok ? answer.value : answer;
};

test("a CRM that cannot be reached certainly has no note", async () => {
  const crmBaseUrl = `http://127.0.0.1:${await freePort()}`;
  expect(await writeWith({ crmBaseUrl }, "no-crm")).toMatchObject({ state: "FAILED", errorCode: "CRM_UNAVAILABLE" });
});

test("a token that comes later than a minute is not used", async () => {
  const slow = (source: TokenSource): TokenSource => ({
    ...source,
    current: async () => {
      aheadMs += 61_000;
      return source.current();
    },
  });
  const { tokensOf } = writeback.parts;
  const late = await writeWith({ tokensOf: (...of) => slow(tokensOf(...of)) }, "late-token");
  expect(late).toMatchObject({ state: "FAILED", errorCode: "CRM_UNAVAILABLE" });
  expect(posts(simulator)).toEqual([]);
});

test("neither logs, nor jobs, nor the receipt hold the text, and the log names the CRM's correlation id", async () => {
  const lines: string[] = [];
  const logger = pino({ level: "trace" }, { write: (line) => void lines.push(line) });
  const metrics = createMetrics();
  const text = "the-secret-of-the-buyer";
  await writeWith({ logger, metrics }, `${text}-1`);
  failPosts({ kind: "failAfter", status: 502 });
  await writeWith({ logger, metrics }, `${text}-2`);
  const correlated = lines.filter((line) => /"correlationId":"[0-9a-f-]{36}"/.test(line));
  expect(correlated).toHaveLength(2);
  const jobs = await database.query("SELECT * FROM graphile_worker._private_jobs");
  const receipts = await database.query("SELECT to_jsonb(w) - 'idempotency_key' AS receipt FROM note_write w");
  expect(JSON.stringify([lines, jobs, receipts])).not.toContain(text);
  const counted = (await metrics.crmWrites.get()).values.map(({ labels, value }) => ({ ...labels, value }));
  expect(counted).toEqual([
    { kind: "note", state: "WRITTEN", value: 1 },
    { kind: "note", state: "UNKNOWN", value: 1 },
  ]);
});

const stateOf = async (id: string) => {
  const query = "query ($id: ID!) { node(id: $id) { ... on NoteWrite { state crmNoteId error { code message } } } }";
  const { node } = dataOf(
    await service.ask<{ node: { state: string; crmNoteId: string | null; error: { message: string } | null } }>(query, {
      id,
    }),
  );
  return node;
};

test("a worker looks a lost answer up by itself, and the note is readable here", async () => {
  // The queue goes by the database's clock.
  aheadMs = 0;
  failPosts({ kind: "lostAfter" });
  const write = await writeNote(service, { meetingId });
  expect(write.state).toBe("UNKNOWN");
  const found = await until("the note is found", async () => {
    const node = await stateOf(write.id);
    return node.state === "UNKNOWN" ? null : node;
  });
  expect(found).toMatchObject({ state: "WRITTEN", error: null });
  const copied = () => database.query("SELECT 1 FROM note WHERE crm_id = $1", [found.crmNoteId]);
  // It comes a moment behind the receipt.
  await until("it is copied", async () => (await copied()).length === 1);
  expect(posts(simulator)).toHaveLength(1);
});

/** Lets time pass as far as a worker would notice: the sweep, and every look-up at once. */
async function pass(ms: number): Promise<void> {
  aheadMs += ms;
  await writeback.lookUps.sweep();
  for (const { id } of await database.query<{ id: string }>("SELECT id FROM note_write WHERE state = 'UNKNOWN'")) {
    await writeback.lookUps.lookUp({ tenantId: await database.tenantId("acme"), writeId: id });
  }
}

test("a lost note is found behind pages of newer ones, and not taken for one that quotes its reference", async () => {
  const { dealId } = simulator.company.stories.singleDeal;
  await service.stop();
  service = await world.startService({ roles: ["api"] });
  failPosts({ kind: "lostAfter" });
  const there = await writeNote(service, { meetingId });
  failPosts({ kind: "reset" });
  const notThere = await writeNote(service, { meetingId });
  failPosts({ kind: "lostAfter" });
  const quoting = await writeNote(service, {
    meetingId,
    content: `Ref. ${there.reference}\n\nRef. ${notThere.reference}`,
  });
  for (let note = 0; note < 1_100; note += 1) simulator.control.add("note", { deal_id: dealId });
  await pass(10_000);
  const [first] = notesWith(simulator, there.reference);
  expect(await stateOf(there.id)).toMatchObject({ state: "WRITTEN", crmNoteId: String(first?.id) });
  expect(await stateOf(quoting.id)).toMatchObject({
    state: "WRITTEN",
    crmNoteId: String(notesWith(simulator, quoting.reference)[0]?.id),
  });
  expect(await stateOf(notThere.id)).toMatchObject({ state: "UNKNOWN" });
  for (const pause of [25_000, 60_000, 95_000]) await pass(pause);
  expect(await stateOf(notThere.id)).toMatchObject({ state: "FAILED", error: { code: "ANSWER_LOST" } });
  expect(posts(simulator)).toHaveLength(3);
});

// Seen red: each page of the record's notes was read, at 20 tokens.
test("a lost note that is found on the first page costs one request, however many older ones there are", async () => {
  expect(simulator.company.notes.size).toBeGreaterThan(1_100);
  failPosts({ kind: "lostAfter" });
  const write = await writeNote(service, { meetingId });
  await pass(10_000);
  expect(await stateOf(write.id)).toMatchObject({ state: "WRITTEN" });
  expect(simulator.log.of("GET", "/api/v1/notes")).toHaveLength(1);
});

/** The notes of the CRM as a sync reads them, a page a transaction. */
async function readAllNotes(): Promise<void> {
  const tenantId = await database.tenantId("acme");
  const [live] = await database.query<{ id: number }>("SELECT id FROM synced_copy WHERE state = 'LIVE'");
  const copyId = live?.id ?? 0;
  const { http, crmBaseUrl, tokensOf } = writeback.parts;
  const api = new CrmApi({ http, baseUrl: crmBaseUrl, tokens: tokensOf(tenantId, copyId) });
  for (let cursor: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof api.notes>> = await api.notes({ cursor });
    const scope = writeback.database.tenant(tenantId);
    await scope.transaction((held) => writeback.notes.settleSynced({ ...held, copyId }, page.records));
    if (page.next === null) return;
    cursor = page.next;
  }
}

test("a note whose deal was merged into another is never said to be missing, and found where it is by the next sync", async () => {
  const { dealId } = simulator.company.stories.singleDeal;
  failPosts({ kind: "lostAfter" });
  const moved = await writeNote(service, { meetingId });
  failPosts({ kind: "reset" });
  const lost = await writeNote(service, { meetingId });
  const [note] = notesWith(simulator, moved.reference);
  const survivor = simulator.control.add("deal");
  simulator.control.change("note", note?.id ?? 0, { deal_id: survivor });
  simulator.control.hide("deal", dealId);
  await pass(10_000);
  await pass(400_000);
  expect(await stateOf(moved.id)).toMatchObject({ state: "UNKNOWN", crmNoteId: null });
  expect(await stateOf(lost.id)).toMatchObject({ state: "UNKNOWN" });

  await readAllNotes();
  expect(await stateOf(moved.id)).toEqual({ state: "WRITTEN", crmNoteId: String(note?.id), error: null });
  expect(await stateOf(lost.id)).toMatchObject({ state: "UNKNOWN" });
  expect(posts(simulator)).toHaveLength(2);
  simulator.control.show("deal", dealId);
});

const planned = async (reference: string) =>
  (
    await database.query<{ at: Date | null }>("SELECT next_look_up_at AS at FROM note_write WHERE reference = $1", [
      reference,
    ])
  )[0]?.at;
/** Each look at its time, until none is planned or so many were made. */
async function lookToTheEnd(reference: string, most = 100): Promise<number> {
  let looks = 0;
  for (let at = await planned(reference); at && looks < most; at = await planned(reference)) {
    await pass(Math.max(0, at.getTime() - clock().getTime()));
    looks += 1;
  }
  return looks;
}

test("look-ups end after a day, and what no look could settle stays UNKNOWN without a request", async () => {
  failPosts({ kind: "lostAfter" });
  const write = await writeNote(service, { meetingId });
  const { dealId } = simulator.company.stories.singleDeal;
  const [note] = notesWith(simulator, write.reference);
  simulator.control.change("note", note?.id ?? 0, { deal_id: dealId + 1 });
  simulator.control.hide("deal", dealId);
  expect(await lookToTheEnd(write.reference)).toBeLessThan(20);
  const past = clock().getTime() - new Date(write.requestedAt).getTime();
  expect(past).toBeLessThanOrEqual(24 * 3_600_000);
  simulator.control.show("deal", dealId);
  simulator.log.clear();
  // A look that was planned before the last one has ended comes for nothing.
  await pass(2 * 24 * 3_600_000);
  const jobs = await database.query(
    "SELECT 1 FROM graphile_worker.jobs WHERE task_identifier = 'note_look_up' AND run_at > now() + interval '2 days'",
  );
  expect([jobs, simulator.log.all()]).toEqual([[], []]);
  expect(await stateOf(write.id)).toMatchObject({ state: "UNKNOWN", error: { code: "ANSWER_LOST" } });
  await readAllNotes();
  expect(await stateOf(write.id)).toMatchObject({ state: "WRITTEN", error: null });
});

// Seen red: no look was planned after a day, and the note stayed UNKNOWN for ever.
test("after an outage of days the first look that can be made finds the note", async () => {
  failPosts({ kind: "lostAfter" });
  const write = await writeNote(service, { meetingId });
  simulator.control.fail({ match: "/api/v1/notes", method: "GET", with: { status: 402 } });
  await lookToTheEnd(write.reference, 20);
  expect(clock().getTime() - new Date(write.requestedAt).getTime()).toBeGreaterThan(48 * 3_600_000);
  expect(await stateOf(write.id)).toMatchObject({ state: "UNKNOWN" });
  simulator.control.clearFaults();
  await lookToTheEnd(write.reference, 1);
  expect(await stateOf(write.id)).toMatchObject({ state: "WRITTEN" });
});

// Seen red: UNKNOWN for ever.
test("another note on the record that cannot be read keeps no absence from being proven", async () => {
  const { dealId } = simulator.company.stories.singleDeal;
  const odd = simulator.control.add("note", { deal_id: dealId, add_time: "yesterday" });
  failPosts({ status: 500 });
  const write = await writeNote(service, { meetingId });
  await lookToTheEnd(write.reference, 6);
  expect(await stateOf(write.id)).toMatchObject({ state: "FAILED", error: { code: "ANSWER_LOST" } });
  simulator.control.remove("note", odd);
});

test("a page of notes without a reference of ours costs no statement", async () => {
  const tenantId = await database.tenantId("acme");
  let statements = 0;
  const counted = database.opened({
    observe: (text, run) => {
      if (!isAround(text)) statements += 1;
      return run();
    },
  });
  const note = {
    id: 1,
    userId: 1,
    dealId: 1,
    personId: null,
    organizationId: null,
    truncated: false,
    ending: "",
    addTime: "2026-11-20T12:00:00Z",
    updateTime: null,
    deleted: false,
  };
  const copy = { ...counted.tenant(tenantId), copyId: 1 };
  await writeback.notes.settleSynced(copy, [{ ...note, content: "<p>CRM-system</p>" }]);
  expect(statements).toBe(0);
  await writeback.notes.settleSynced(
    copy,
    Array.from({ length: 500 }, (_, id) => ({ ...note, id, content: "Ref. CRM-0123456789" })),
  );
  expect(statements).toBe(1);
});

test("while nobody is authorized a lost answer stays UNKNOWN and says so; the same company's return settles it", async () => {
  const { ownerId } = simulator.company.stories.singleDeal;
  failPosts({ kind: "lostAfter" });
  const write = await writeNote(service, { meetingId });
  simulator.control.revoke(ownerId);
  await pass(10_000);
  const looks = () => database.query("SELECT look_ups FROM note_write WHERE reference = $1", [write.reference]);
  const made = await looks();
  for (const ms of [300_000, 3_600_000]) await pass(ms);
  expect(await stateOf(write.id)).toMatchObject({ state: "UNKNOWN" });
  expect((await stateOf(write.id)).error?.message).toContain("needs re-authorization");
  // Planted and seen red: looks that nobody could make counted, and the first one afterwards came hours later.
  expect(await looks()).toEqual(made);

  await service.ask("mutation { disconnect { __typename } }");
  simulator.log.clear();
  await pass(3_600_000);
  expect(simulator.log.all()).toEqual([]);
  expect(await stateOf(write.id)).toMatchObject({ state: "UNKNOWN" });

  await connect(service, simulator);
  await database.query("UPDATE synced_copy SET crm_company_id = crm_company_id + 1 WHERE state = 'LIVE'");
  await pass(3_600_000);
  expect(await stateOf(write.id)).toMatchObject({ state: "UNKNOWN" });
  await database.query("UPDATE synced_copy SET crm_company_id = crm_company_id - 1 WHERE state = 'LIVE'");
  await pass(60_000);
  expect(await stateOf(write.id)).toMatchObject({ state: "WRITTEN", error: null });
  expect(posts(simulator)).toEqual([]);
});
