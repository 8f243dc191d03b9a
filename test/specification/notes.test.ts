import { askNote, notesWith, posts, SHOWN_WRITE, type ShownWrite, writeNote } from "../support/notes";
import { dataOf, recordMeeting, until } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: a target taken without its match; an input that is not compared; every receipt shown to members;
// receipts purged with the copy; another member in the request's body.

const { world, simulator, database, service } = useService({ deals: 50, connected: ["acme", "other"] });
beforeEach(() => world.beginAnew());

const receipts = () => database.query("SELECT 1 FROM note_write");
const MATCHED = `query ($id: ID!) { meeting(id: $id) { match { deal { id } persons { id } organizations { id } candidates { deal { id } } } } }`;

interface Matched {
  deal: { id: string } | null;
  persons: { id: string }[];
  organizations: { id: string }[];
  candidates: { deal: { id: string } }[];
}

async function matched(meetingId: string, as = {}): Promise<Matched> {
  const data = dataOf(await service.ask<{ meeting: { match: Matched } }>(MATCHED, { id: meetingId }, as));
  return data.meeting.match;
}

test("a note lands on the meeting's deal, written by the authorizing user, and is readable here at once", async () => {
  const { email, dealId, ownerId } = simulator.company.stories.singleDeal;
  const meeting = await recordMeeting(service, [email]);
  const write = await writeNote(service, { meetingId: meeting.id, content: "# Summary\n\nThey *like* it." });
  expect(write).toMatchObject({ entity: "DEAL", state: "WRITTEN", error: null, requestedBy: "anna" });
  expect(write.target?.__typename).toBe("Deal");
  expect(write.meeting).toEqual({ id: meeting.id, title: "Next steps" });

  const [note, ...others] = notesWith(simulator, write.reference);
  expect(others).toEqual([]);
  expect(note).toMatchObject({ id: Number(write.crmNoteId), deal_id: dealId, user_id: ownerId });
  expect(note?.content).toBe(`<h1>Summary</h1>\n<p>They <em>like</em> it.</p>\n<p>Ref. ${write.reference}</p>`);
  // One parent and no author: the CRM fills in the deal's person and organization, and who the token belongs to.
  expect(posts(simulator).map(({ body }) => Object.keys(body as object).sort())).toEqual([["content", "deal_id"]]);

  const query = "query ($id: ID!) { node(id: $id) { ... on Deal { recentNotes(first: 1) { crmId text } } } }";
  const { node } = dataOf(await service.ask<{ node: { recentNotes: object[] } }>(query, { id: write.target?.id }));
  expect(node.recentNotes).toMatchObject([{ crmId: write.crmNoteId }]);
});

test("two notes of one operation are each answered with what the deal shows then", async () => {
  const meetingId = await ours();
  const mutation = `mutation ($one: WriteNoteInput!, $two: WriteNoteInput!) { one: writeNote(input: $one) { ...W } two: writeNote(input: $two) { ...W } }
    fragment W on WriteNoteSuccess { write { target { ... on Deal { recentNotes(first: 1) { text } } } } }`;
  const input = (content: string) => ({ meetingId, content, idempotencyKey: `together-${content}` });
  const data = dataOf(await service.ask(mutation, { one: input("One"), two: input("Two") }));
  const newest = (content: string) => ({
    write: { target: { recentNotes: [{ text: expect.stringContaining(content) }] } },
  });
  expect(data).toEqual({ one: newest("One"), two: newest("Two") });
});

test("a note lands where the client says", async () => {
  const { severalDeals, singleDeal } = simulator.company.stories;
  const undecided = await recordMeeting(service, [severalDeals.email]);
  const { deal, persons } = await matched(undecided.id);
  expect(deal).toBeNull();
  const onPerson = await writeNote(service, { meetingId: undecided.id, targetId: persons[0]?.id });
  expect(onPerson).toMatchObject({ entity: "PERSON", state: "WRITTEN", target: { __typename: "Person" } });
  expect(notesWith(simulator, onPerson.reference)).toMatchObject([{ person_id: severalDeals.personId, deal_id: null }]);

  const meeting = await recordMeeting(service, [singleDeal.email]);
  const { organizations } = await matched(meeting.id);
  const asked = await writeNote(service, { meetingId: meeting.id, targetId: organizations[0]?.id });
  expect(asked).toMatchObject({ entity: "ORGANIZATION", target: organizations[0] });
  expect(notesWith(simulator, asked.reference)).toMatchObject([{ org_id: singleDeal.orgId, deal_id: null }]);
});

test("an organization that is known by its domain only is written on where it is named", async () => {
  const { email, orgId } = simulator.company.stories.singleDeal;
  const meeting = await recordMeeting(service, [`somebody.new@${email.split("@")[1]}`]);
  const { deal, persons, organizations } = await matched(meeting.id);
  expect([deal, persons]).toEqual([null, []]);
  expect(organizations).toHaveLength(1);
  const write = await writeNote(service, { meetingId: meeting.id, targetId: organizations[0]?.id });
  expect(write).toMatchObject({ entity: "ORGANIZATION", state: "WRITTEN", target: organizations[0] });
  expect(notesWith(simulator, write.reference)).toMatchObject([{ org_id: orgId, deal_id: null, person_id: null }]);
});

const UNMATCHED = "TARGET_NOT_MATCHED";
const UNUSED = "00000000-0000-4000-8000-000000000000";
const idOf = (...parts: (string | number)[]) => Buffer.from(parts.join(":")).toString("base64url");
const ours = async () => (await recordMeeting(service, [simulator.company.stories.singleDeal.email])).id;
const undecided = async () => (await recordMeeting(service, [simulator.company.stories.severalDeals.email])).id;
const nobody = async () => (await recordMeeting(service, ["nobody@unknown.example"])).id;

async function inCopy(type: string, crmId: number, tenant = "acme"): Promise<string> {
  const [row] = await database.query<{ copy_id: number }>(
    "SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = $1)",
    [tenant],
  );
  return idOf(type, row?.copy_id ?? 0, crmId);
}

async function dealOfAnother(): Promise<string> {
  const meeting = await recordMeeting(service, [simulator.company.stories.ghosted.email]);
  const { deal, candidates } = await matched(meeting.id);
  return deal?.id ?? candidates[0]?.deal.id ?? "";
}

async function theirs(): Promise<{ meetingId: string; dealId: string }> {
  const as = { tenant: "other" };
  const meeting = await recordMeeting(service, [simulator.company.stories.singleDeal.email], {}, as);
  return { meetingId: meeting.id, dealId: (await matched(meeting.id, as)).deal?.id ?? "" };
}

async function unmatchedDeal(): Promise<string> {
  const [row] = await database.query<{ crm_id: number }>(
    `SELECT d.crm_id FROM deal d JOIN connection c ON c.tenant_id = d.tenant_id AND c.copy_id = d.copy_id
     WHERE c.tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme') AND NOT EXISTS (
       SELECT 1 FROM matched_record m WHERE m.tenant_id = d.tenant_id AND m.copy_id = d.copy_id AND m.entity = 'DEAL' AND m.crm_id = d.crm_id) LIMIT 1`,
  );
  return inCopy("Deal", row?.crm_id ?? 0);
}

async function deletedDeal(): Promise<{ meetingId: string; targetId: string }> {
  const { email, dealId } = simulator.company.stories.noParticipants;
  const meeting = await recordMeeting(service, [email]);
  // As a sync removes it, with the match still as it was.
  await database.query(
    "DELETE FROM deal d USING connection c WHERE d.tenant_id = c.tenant_id AND d.copy_id = c.copy_id AND d.crm_id = $1",
    [dealId],
  );
  return { meetingId: meeting.id, targetId: await inCopy("Deal", dealId) };
}

test.each<[string, () => Promise<{ meetingId: string; targetId?: string }>, string]>([
  ["a meeting that does not exist", async () => ({ meetingId: idOf("Meeting", UNUSED) }), "MEETING_NOT_FOUND"],
  ["an id that is no meeting's", async () => ({ meetingId: idOf("SyncRun", UNUSED) }), "MEETING_NOT_FOUND"],
  ["a malformed meeting id", async () => ({ meetingId: "not an id" }), "MEETING_NOT_FOUND"],
  ["another tenant's meeting", async () => ({ meetingId: (await theirs()).meetingId }), "MEETING_NOT_FOUND"],
  ["another meeting's deal", async () => ({ meetingId: await ours(), targetId: await dealOfAnother() }), UNMATCHED],
  ["another tenant's deal", async () => ({ meetingId: await ours(), targetId: (await theirs()).dealId }), UNMATCHED],
  [
    "an unmatched deal of the copy",
    async () => ({ meetingId: await ours(), targetId: await unmatchedDeal() }),
    UNMATCHED,
  ],
  ["an unknown deal", async () => ({ meetingId: await ours(), targetId: await inCopy("Deal", 99_999_999) }), UNMATCHED],
  ["a meeting as the target", async () => ({ meetingId: await ours(), targetId: await ours() }), UNMATCHED],
  ["a malformed target", async () => ({ meetingId: await ours(), targetId: "Deal:1" }), UNMATCHED],
  ["a negative id", async () => ({ meetingId: await ours(), targetId: await inCopy("Deal", -1) }), UNMATCHED],
  [
    "an id beyond all numbers",
    async () => ({ meetingId: await ours(), targetId: await inCopy("Deal", 1e300) }),
    UNMATCHED,
  ],
  ["a deal that is deleted by now", deletedDeal, UNMATCHED],
  ["nothing certain", async () => ({ meetingId: await nobody() }), UNMATCHED],
  ["one of two deals", async () => ({ meetingId: await undecided() }), "NEEDS_CHOICE"],
])("%s is refused without a request and without a receipt", async (_, input, code) => {
  const asked = await input();
  simulator.log.clear();
  const before = await receipts();
  const answer = await askNote(service, asked);
  expect(answer).toMatchObject({ code, field: code === "MEETING_NOT_FOUND" ? "meetingId" : "targetId" });
  expect(simulator.log.all()).toEqual([]);
  expect(await receipts()).toEqual(before);
});

test.each([
  ["an empty content", { content: " \n" }, "INVALID_INPUT", "content"],
  ["an empty key", { idempotencyKey: " " }, "INVALID_INPUT", "idempotencyKey"],
  ["a key of 201 characters", { idempotencyKey: "k".repeat(201) }, "INVALID_INPUT", "idempotencyKey"],
  ["a key with NUL", { idempotencyKey: "a\0b" }, "INVALID_INPUT", "idempotencyKey"],
  ["60,001 characters", { content: "x".repeat(60_001) }, "CONTENT_TOO_LONG", "content"],
  ["60,001 emoji", { content: "🎉".repeat(60_001) }, "CONTENT_TOO_LONG", "content"],
  ["more than 100,000 bytes of HTML", { content: "🎉".repeat(30_000) }, "CONTENT_TOO_LONG", "content"],
  ["markup that grows beyond it", { content: "* a\n".repeat(15_000) }, "CONTENT_TOO_LONG", "content"],
])("%s is refused with a message that says what to do", async (_, input, code, field) => {
  const answer = await askNote(service, { meetingId: await ours(), ...input });
  expect(answer).toMatchObject({ code, field });
  expect(answer.message?.length).toBeGreaterThan(20);
  expect(posts(simulator)).toEqual([]);
});

test("60,000 characters are written whole", async () => {
  const write = await writeNote(service, { meetingId: await ours(), content: "x".repeat(60_000) });
  expect(notesWith(simulator, write.reference)[0]?.content).toContain("x".repeat(60_000));
});

test("any role writes, on a plan that includes the CRM", async () => {
  const meetingId = await ours();
  const member = { role: "member", sub: "max" };
  expect(await writeNote(service, { meetingId }, member)).toMatchObject({ state: "WRITTEN", requestedBy: "max" });
  simulator.log.clear();
  expect(await askNote(service, { meetingId }, { plan: "basic" })).toMatchObject({ code: "NOT_ALLOWED_ON_PLAN" });
  expect(simulator.log.all()).toEqual([]);
});

test("the same key with the same input is the same write, with another input it is refused", async () => {
  const input = { meetingId: await ours(), content: "Once", idempotencyKey: "once" };
  const first = await writeNote(service, input);
  expect(await writeNote(service, input)).toEqual(first);
  // Whoever asks, and whatever has become of the match since.
  await database.query("DELETE FROM matched_record WHERE entity = 'DEAL'");
  const later = await writeNote(service, input, { sub: "max", role: "member" });
  expect(later).toEqual({ ...first, target: null });
  for (const other of [{ content: "Twice" }, { targetId: await inCopy("Deal", 1) }, { meetingId: await ours() }]) {
    expect(await askNote(service, { ...input, ...other })).toMatchObject({ code: "IDEMPOTENCY_KEY_REUSED" });
  }
  expect(
    await writeNote(service, { ...input, meetingId: (await theirs()).meetingId }, { tenant: "other" }),
  ).toMatchObject({
    state: "WRITTEN",
  });
  expect(posts(simulator)).toHaveLength(2);
});

// Seen red: NOT_ALLOWED_ON_PLAN, as if nothing had been written; with another key it was a second note.
test("what was written before the plan lapsed is told to who asks again by its key, and nothing else is", async () => {
  const input = { meetingId: await ours(), content: "Before", idempotencyKey: "before" };
  const first = await writeNote(service, input);
  simulator.log.clear();
  const lapsed = { plan: "basic" };
  expect(await writeNote(service, input, lapsed)).toEqual(first);
  for (const other of [{ content: "After" }, { content: "x".repeat(60_001) }, { idempotencyKey: "after" }])
    expect(await askNote(service, { ...input, ...other }, lapsed)).toMatchObject({ code: "NOT_ALLOWED_ON_PLAN" });
  expect(simulator.log.all()).toEqual([]);
});

const WRITES = `query ($first: Int, $after: String, $meetingId: ID, $idempotencyKey: String) {
  crmWrites(first: $first, after: $after, meetingId: $meetingId, idempotencyKey: $idempotencyKey) {
    nodes { __typename ... on NoteWrite { ${SHOWN_WRITE} } } pageInfo { hasNextPage endCursor } } }`;

interface Writes {
  nodes: ShownWrite[];
  pageInfo: { hasNextPage: boolean; endCursor: string };
}

const writes = async (variables = {}, as = {}) =>
  dataOf(await service.ask<{ crmWrites: Writes }>(WRITES, variables, as)).crmWrites;

test("every write is listed, newest first, for owners and admins; a member sees its own", async () => {
  const meetingId = await ours();
  const made: string[] = [];
  for (const sub of ["max", "mia", "max"]) {
    const { id } = await writeNote(service, { meetingId }, { role: "member", sub });
    made.unshift(id);
  }
  const ids = (page: Writes) => page.nodes.map(({ id }) => id);
  expect(ids(await writes({ meetingId }))).toEqual(made);
  expect(ids(await writes({ meetingId }, { role: "member", sub: "max" }))).toEqual([made[0], made[2]]);
  expect(ids(await writes({ meetingId }, { tenant: "other" }))).toEqual([]);
  expect(ids(await writes({ meetingId: "not an id" }))).toEqual([]);

  const first = await writes({ meetingId, first: 2 });
  expect(first.pageInfo.hasNextPage).toBe(true);
  const rest = await writes({ meetingId, first: 2, after: first.pageInfo.endCursor });
  expect([...ids(first), ...ids(rest)]).toEqual(made);
  expect(rest.pageInfo.hasNextPage).toBe(false);

  const node = async (as: object) =>
    dataOf(await service.ask<{ node: object | null }>("query ($id: ID!) { node(id: $id) { id } }", { id: made[1] }, as))
      .node;
  expect(await node({})).toEqual({ id: made[1] });
  expect(await node({ role: "member", sub: "mia" })).toEqual({ id: made[1] });
  for (const as of [{ role: "member", sub: "max" }, { tenant: "other" }]) expect(await node(as)).toBeNull();
});

test("who lost an answer finds the write by its key: its own only, whatever the role, and also while it is being sent", async () => {
  const meetingId = await ours();
  const idempotencyKey = "lost on the way";
  const max = { role: "member", sub: "max" };
  const find = async (as: object, key: string = idempotencyKey) =>
    (await writes({ idempotencyKey: key }, as)).nodes.map(({ id, state }) => [id, state]);
  expect(await find(max)).toEqual([]);

  simulator.control.fail({ match: "/api/v1/notes", method: "POST", times: 1, with: { kind: "delay", ms: 1_000 } });
  const writing = writeNote(service, { meetingId, idempotencyKey }, max);
  const [[id, state] = []] = await until("the receipt shows", async () => {
    const found = await find(max);
    return found.length > 0 && found;
  });
  expect(state).toBe("UNKNOWN");
  expect(await writing).toMatchObject({ id, state: "WRITTEN" });

  expect(await find(max)).toEqual([[id, "WRITTEN"]]);
  for (const as of [{ role: "owner" }, { role: "member", sub: "mia" }, { ...max, tenant: "other" }]) {
    expect(await find(as)).toEqual([]);
  }
  expect(await find(max, `${idempotencyKey} `)).toEqual([]);
  for (const key of ["", "\0", "\ud800", "k".repeat(1_000)]) expect(await find(max, key)).toEqual([]);
  const other = (await writes({ meetingId: await ours(), idempotencyKey }, max)).nodes;
  expect(other).toEqual([]);
});

test("after a disconnect the receipts stay, without their targets, and nothing is written", async () => {
  const as = { tenant: "other" };
  const { meetingId } = await theirs();
  const write = await writeNote(service, { meetingId }, as);
  await service.ask("mutation { disconnect { __typename } }", {}, as);
  await until("the copy is purged", async () => {
    const copies = await database.query(
      "SELECT 1 FROM synced_copy WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'other')",
    );
    return copies.length === 0;
  });
  simulator.log.clear();
  const [newest] = (await writes({}, as)).nodes;
  expect(newest).toEqual({ ...write, __typename: "NoteWrite", target: null });
  expect(await askNote(service, { meetingId }, as)).toMatchObject({ code: "NOT_CONNECTED" });
  expect(simulator.log.all()).toEqual([]);
  expect(notesWith(simulator, write.reference)).toHaveLength(1);
});
