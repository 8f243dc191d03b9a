import * as v1 from "pipedrive/v1";
import { clientWith, connect, type Reply, useClient, type WireRecord } from "./client";
import { hasShape, shapes } from "./wire-shapes";

const { simulator, client, clock, authorize } = useClient({ deals: 20 });
beforeEach(() => clock.advance(60));

const story = () => simulator.company.stories.singleDeal;
const admin = () => [...simulator.company.users.values()].find((user) => user.is_admin === 1)?.id ?? 0;
const seller = () => [...simulator.company.users.keys()][2] ?? 0;
const post = (body: object): Promise<Reply<{ data: WireRecord }>> => client.send("POST", "/api/v1/notes", body);

test("the official client writes a note that its reads then find", async () => {
  const api = new v1.NotesApi(
    new v1.Configuration({ accessToken: client.accessToken, basePath: `${simulator.url}/api/v1` }),
  );
  const { dealId: deal_id, noteId } = story();
  const { data } = await api.addNote({ AddNoteRequest: { content: "<p>Agreed</p>", deal_id } });
  hasShape([data ?? {}], shapes.note);
  const listed = await api.getNotes({ deal_id, sort: "add_time DESC" });
  expect(listed.data?.map((note) => note.id)).toEqual([data?.id, noteId]);
  expect(listed.data?.[0]).toEqual(data);
  expect((await api.getNote({ id: data?.id ?? 0 })).data).toEqual(data);
});

test("a note with the deal alone answers 201 with the deal's person and organization, and moves the deal", async () => {
  const { dealId, personId, orgId, ownerId, noteId } = story();
  const { status, body } = await post({ content: "<p>Agreed</p>", deal_id: dealId });
  expect(status).toBe(201);
  expect(body.data).toMatchObject({
    content: "<p>Agreed</p>",
    deal_id: dealId,
    person_id: personId,
    org_id: orgId,
    user_id: ownerId,
    add_time: "2026-11-20 10:01:00",
    update_time: "2026-11-20 10:01:00",
    active_flag: true,
    pinned_to_deal_flag: false,
    person: { name: "Marta Lindqvist" },
    user: { is_you: true },
  });
  expect(body.data.id).toBeGreaterThan(noteId);
  for (const [entity, id] of [
    ["deal", dealId] as const,
    ["person", personId] as const,
    ["organization", orgId] as const,
  ])
    expect(simulator.control.notesOf(entity, id).map((note) => note.id)).toContain(body.data.id);
  expect((await client.one(`/api/v2/deals/${dealId}`)).update_time).toBe("2026-11-20T10:01:00Z");
});

test("what is sent with a person beside the deal stays as it is sent", async () => {
  const { dealId, participantIds } = story();
  const { body } = await post({ content: "x", deal_id: dealId, person_id: participantIds[1] });
  expect(body.data).toMatchObject({ deal_id: dealId, person_id: participantIds[1], org_id: null });
});

test("flags are numbers in the request and booleans in the answer; the time may be set", async () => {
  const { personId } = story();
  const note = { content: "x", person_id: personId, pinned_to_person_flag: 1, add_time: "2020-02-29 23:59:59" };
  expect((await post(note)).body.data).toMatchObject({ pinned_to_person_flag: true, add_time: "2020-02-29 23:59:59" });
});

test("only an admin may name another author", async () => {
  const note = { content: "x", deal_id: story().dealId, user_id: seller() };
  expect(await post(note)).toMatchObject({
    status: 403,
    body: { success: false, error: "You do not have permissions to do this." },
  });
  await authorize(admin());
  expect((await post(note)).body.data).toMatchObject({ user_id: seller() });
  expect((await post({ ...note, user_id: 5 })).status).toBe(404);
});

describe("what is refused with 400, and leaves nothing behind", () => {
  const uuid = "adf21080-0e10-11eb-879b-05d71fb426ec";
  test.each<[string, (dealId: number) => unknown]>([
    ["no content", (deal_id) => ({ deal_id })],
    ["blank content", (deal_id) => ({ deal_id, content: " \n" })],
    ["content that is no text", (deal_id) => ({ deal_id, content: 5 })],
    ["content over 100 KB", (deal_id) => ({ deal_id, content: "é".repeat(50_001) })],
    ["no parent", () => ({ content: "x" })],
    ["a parent that is null", () => ({ content: "x", deal_id: null })],
    ["an id as text", (deal_id) => ({ content: "x", deal_id: String(deal_id) })],
    ["a broken id", () => ({ content: "x", deal_id: 1.5 })],
    ["a lead that is no UUID", () => ({ content: "x", lead_id: "12" })],
    ["an unknown member", (deal_id) => ({ content: "x", deal_id, title: "y" })],
    ["a flag as a boolean", (deal_id) => ({ content: "x", deal_id, pinned_to_deal_flag: true })],
    ["a flag without its id", (deal_id) => ({ content: "x", deal_id, pinned_to_person_flag: 1 })],
    ["a time in the other version's form", (deal_id) => ({ content: "x", deal_id, add_time: "2026-01-01T00:00:00Z" })],
    ["a time that does not exist", (deal_id) => ({ content: "x", deal_id, add_time: "2026-02-30 00:00:00" })],
    ["an author as text", (deal_id) => ({ content: "x", deal_id, user_id: "7" })],
    ["a list", () => []],
    ["null", () => null],
    ["a pin on a lead without a lead", (deal_id) => ({ content: "x", deal_id, pinned_to_lead_flag: 1 })],
  ])("%s", async (_name, body) => {
    const before = simulator.company.notes.size;
    const { status, body: refusal } = await client.send("POST", "/api/v1/notes", body(story().dealId));
    expect(status).toBe(400);
    expect(refusal).toEqual({
      success: false,
      error: expect.any(String),
      error_info: expect.any(String),
      data: null,
      additional_data: null,
    });
    expect(simulator.company.notes.size).toBe(before);
  });

  test("a lead, a project and a task that this company does not have are not found", async () => {
    for (const parent of [{ lead_id: uuid }, { project_id: 1 }, { task_id: 1 }])
      expect((await post({ content: "x", ...parent })).status).toBe(404);
  });

  test("exactly 100 KB is taken", async () => {
    const { status, body } = await post({ content: "é".repeat(50_000), deal_id: story().dealId });
    expect(status).toBe(201);
    expect(body.data.content).toHaveLength(50_000);
  });

  test("a body that is not JSON, and one that does not say so", async () => {
    const send = (type: string, body: string) =>
      fetch(`${simulator.url}/api/v1/notes`, {
        method: "POST",
        headers: { authorization: `Bearer ${client.accessToken}`, "content-type": type },
        body,
      });
    expect((await send("application/json", "{")).status).toBe(400);
    expect((await send("text/plain", '{"content":"x","deal_id":1}')).status).toBe(415);
  });
});

test("a parent that is unknown, hidden, of another's eyes only, in the bin or archived is refused", async () => {
  const { dealId, personId, orgId } = story();
  const statusOf = async (parent: object) => (await post({ content: "x", ...parent })).status;
  expect(await statusOf({ deal_id: 999_999 })).toBe(404);
  simulator.control.hide("deal", dealId);
  expect(await statusOf({ deal_id: dealId })).toBe(404);
  simulator.control.show("deal", dealId);
  simulator.control.change("organization", orgId, { owner_id: seller(), visible_to: 1 });
  expect(await statusOf({ org_id: orgId })).toBe(404);
  simulator.control.remove("person", personId);
  expect(await post({ content: "x", person_id: personId })).toMatchObject({
    status: 400,
    body: { code: "ERR_PERSON_DELETED" },
  });
  simulator.control.archive(dealId);
  expect(await statusOf({ deal_id: dealId })).toBe(400);
  simulator.control.remove("deal", dealId);
  expect(await post({ content: "x", deal_id: dealId })).toMatchObject({
    status: 400,
    body: { code: "ERR_DEAL_DELETED" },
  });
});

test("a note needs a token, and costs ten of the day's budget", async () => {
  expect((await clientWith(simulator, "wrong").send("POST", "/api/v1/notes", {})).status).toBe(401);
  const left = ({ headers }: Reply) => Number(headers.get("x-daily-ratelimit-token-remaining"));
  const before = left(await post({ content: "x", deal_id: story().dealId }));
  expect(before - left(await client.get("/api/v1/users/me"))).toBe(10);
});

test.each([
  ["<P Class='x' onclick=evil()>a<BR/>b</P>", "<p>a<br>b</p>"],
  ["<ul><li><b>1</b><li>2</ul>", "<ul><li><b>1</b><li>2</li></li></ul>"],
  ["a<script>alert('<p>')</script>b<style>p{}</style><!-- marker -->c", "abc"],
  ["<script>never closed", ""],
  ["<table><tr><td>x</td></tr></table><span data-ref='7'>y</span>", "xy"],
  ["<a href='https://x.example/?a=1&b=2' target=_blank>l</a>", '<a href="https://x.example/?a=1&b=2">l</a>'],
  ["<a href='javascript:evil()'>l</a>", "<a>l</a>"],
  ["1 < 2 & 3 > 2 &amp; &lt;b&gt; &nbsp;", "1 &lt; 2 &amp; 3 &gt; 2 &amp; &lt;b&gt; &nbsp;"],
  ["say &quot;it&#39;s&quot;", 'say "it\'s"'],
  ["<h2>T</h2><p><i>open", "<h2>T</h2><p><i>open</i></p>"],
  ["</p>stray</b>", "stray"],
])("%j is kept as %j", async (content, kept) => {
  const { body } = await post({ content, deal_id: story().dealId });
  expect(body.data.content).toBe(kept);
});

test("the log shows the body of a write, and no secret of a token request", async () => {
  simulator.log.clear();
  const note = { content: "x", deal_id: story().dealId };
  await post(note);
  expect(simulator.log.of("POST", "/api/v1/notes")).toMatchObject([{ status: 201, body: note }]);
  await connect(simulator);
  const [exchange] = simulator.log.of("POST", "/oauth/token");
  expect(exchange?.body).toEqual({
    grant_type: "authorization_code",
    code: "[hidden]",
    redirect_uri: simulator.redirectUrl,
  });
});
