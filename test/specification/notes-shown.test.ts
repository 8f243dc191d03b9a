import { dataOf, recordMeeting, syncEnds, until } from "../support/stories";
import { useService } from "../support/world";

let deal: string;
let dealId: number;

const { simulator, database, service } = useService({ deals: 10, connected: ["acme"] });
beforeAll(async () => {
  const story = simulator.company.stories.singleDeal;
  dealId = story.dealId;
  const { id } = await recordMeeting(service, [story.email]);
  const query = "query ($id: ID!) { meeting(id: $id) { match { deal { id } } } }";
  const { meeting } = dataOf(await service.ask<{ meeting: { match: { deal: { id: string } } } }>(query, { id }));
  deal = meeting.match.deal.id;
});

interface ShownNote {
  crmId: string;
  html: string;
  text: string;
  truncated: boolean;
  crmUrl: string | null;
}

async function notes(first = 50): Promise<ShownNote[]> {
  const query = `query ($id: ID!, $first: Int!) { node(id: $id) { ... on Deal {
    recentNotes(first: $first) { crmId html text truncated crmUrl } } } }`;
  const { node } = dataOf(await service.ask<{ node: { recentNotes: ShownNote[] } }>(query, { id: deal, first }));
  return node.recentNotes;
}

async function noteOf(id: number): Promise<ShownNote> {
  const found = (await notes()).find(({ crmId }) => crmId === String(id));
  if (!found) throw new Error(`note ${id} is not shown`);
  return found;
}

interface KeptRow {
  crm_id: number;
  content: string;
  truncated: boolean;
  shown_html: string | null;
  shown_rules: number | null;
}

const rowsOf = (ids: readonly number[]) =>
  database.query<KeptRow>(
    `SELECT crm_id, content, truncated, shown_html, shown_rules FROM note WHERE crm_id = ANY ($1)
       AND copy_id = (SELECT copy_id FROM connection WHERE tenant_id = (SELECT id FROM tenant WHERE external_id = 'acme')) ORDER BY crm_id`,
    [ids],
  );

const areKept = (ids: readonly number[]) =>
  until("the notes are kept as shown", async () => (await rowsOf(ids)).every((row) => row.shown_rules !== null));

const SYNC = "mutation { requestSync { __typename ... on Refusal { code message } } }";
async function sync(): Promise<void> {
  dataOf(await service.ask(SYNC));
  expect(await syncEnds(service)).toMatchObject({ state: "SUCCEEDED" });
}

/** So long that it is kept as it is shown. */
const long = (content: string) => `${content}<!--${"-".repeat(2_000)}-->`;
const add = (content: string) => simulator.control.add("note", { deal_id: dealId, content });

// A note of megabytes that is kept whole makes a process stand still.
test("notes of megabytes and of open tags are kept cut, shown with their words, and say so", async () => {
  const [large, open, dense, short] = [
    add(`<p>Begin</p>${"<b>".repeat(1_000_000)}`),
    add(`${"<b>".repeat(33_000)}Deep`),
    add(`Rows ${"<br>".repeat(24_000)}`),
    add("<p>Fine &amp; short</p>"),
  ];
  await sync();
  expect((await rowsOf([large, open])).map((row) => [row.content.length <= 100_000, row.truncated])).toEqual([
    [true, true],
    [true, false],
  ]);
  expect(await noteOf(large)).toMatchObject({ text: "Begin", truncated: true });
  expect(await noteOf(open)).toMatchObject({ html: "Deep", text: "Deep", truncated: true });
  expect(await noteOf(dense)).toMatchObject({ text: "Rows", truncated: true });
  expect(await noteOf(short)).toMatchObject({
    html: "<p>Fine &amp; short</p>",
    text: "Fine & short",
    truncated: false,
    crmUrl: `https://northwind-sales.pipedrive.com/deal/${dealId}`,
  });
});

// Seen red with the rules' number left out of the comparison, and with a page that leaves what was kept.
test("what a note is shown as is made by its first reader, kept in its row, and made anew after a change", async () => {
  const id = add(long("<p>First</p>"));
  await sync();
  expect(await rowsOf([id])).toMatchObject([{ shown_rules: null, shown_html: null }]);
  expect((await noteOf(id)).html).toBe("<p>First</p>");
  await areKept([id]);
  // A mark in what is kept shows that the next reader is given it.
  await database.query("UPDATE note SET shown_html = '<p>Kept</p>' WHERE crm_id = $1", [id]);
  expect((await noteOf(id)).html).toBe("<p>Kept</p>");
  await database.query("UPDATE note SET shown_rules = 0 WHERE crm_id = $1", [id]);
  expect((await noteOf(id)).html).toBe("<p>First</p>");
  await until("it is made anew", async () => (await rowsOf([id]))[0]?.shown_html === "<p>First</p>");
  simulator.control.change("note", id, { content: long("<p>Second</p>") });
  await sync();
  expect(await rowsOf([id])).toMatchObject([{ content: long("<p>Second</p>"), shown_rules: null, shown_html: null }]);
  expect((await noteOf(id)).html).toBe("<p>Second</p>");
});

test("nothing is written for a short note: to make it again takes less", async () => {
  const [short, longer] = [add("<p>Short <script>alert(1)</script></p>"), add(long("<p>Longer</p>"))];
  await sync();
  for (const _ of ["made", "at hand"]) expect((await noteOf(short)).html).toBe("<p>Short </p>");
  await noteOf(longer);
  await areKept([longer]);
  expect(await rowsOf([short])).toMatchObject([{ shown_rules: null, shown_html: null }]);
  simulator.control.change("note", short, { content: "<p>Shorter</p>" });
  await sync();
  expect((await noteOf(short)).html).toBe("<p>Shorter</p>");
});

// Seen red with the row's version left out of the statement.
test("a note that changes between its reading and its keeping is not kept as what it was", async () => {
  const [changed, other] = [add(long("<p>Before</p>")), add(long("<p>Other</p>"))];
  await sync();
  expect((await noteOf(changed)).html).toBe("<p>Before</p>");
  await database.query("UPDATE note SET content = $2 WHERE crm_id = $1", [changed, long("<p>After</p>")]);
  await areKept([other]);
  expect(await rowsOf([changed])).toMatchObject([{ shown_rules: null, shown_html: null }]);
  expect((await noteOf(changed)).html).toBe("<p>After</p>");
  await areKept([changed]);
  expect(await rowsOf([changed])).toMatchObject([{ shown_html: "<p>After</p>" }]);
});

test("a row that another session holds is passed by, and another copy's note of the same number is left alone", async () => {
  const [held, free] = [add(long("<p>Held</p>")), add(long("<p>Free</p>"))];
  await sync();
  await database.query(
    `INSERT INTO note (tenant_id, copy_id, crm_id, content, add_time)
     SELECT id, 424242, $1, '<p>Theirs</p>', now() FROM tenant WHERE external_id = 'acme'`,
    [free],
  );
  const tenantId = await database.tenantId("acme");
  await database.dataSource.transaction(async (session) => {
    await session.query("SELECT 1 FROM note WHERE tenant_id = $1 AND crm_id = $2 FOR UPDATE", [tenantId, held]);
    await notes();
    await areKept([free]);
  });
  expect(await rowsOf([held])).toMatchObject([{ shown_rules: null }]);
  const theirs = await database.query("SELECT shown_html FROM note WHERE copy_id = 424242");
  expect(theirs).toEqual([{ shown_html: null }]);
});

test("of notes that are more than an answer may hold, the older ones are shown by their beginning, and say so", async () => {
  const content = `<p>${"Long. ".repeat(16_000)}</p>`;
  for (let note = 0; note < 50; note += 1) add(content);
  await sync();
  const lengths = async () => (await notes()).map(({ html, truncated }) => [html.length > 90_000, truncated]);
  for (const shown of [await lengths(), await lengths()]) {
    expect(shown.filter(([isWhole]) => isWhole).length).toBeGreaterThanOrEqual(8);
    expect(shown.filter(([isWhole, truncated]) => isWhole === truncated)).toEqual([]);
    expect(shown.at(-1)).toEqual([false, true]);
  }
});
