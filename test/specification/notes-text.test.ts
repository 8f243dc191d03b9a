import { noteHtml } from "../../src/writeback/notes";
import { askNote, notesWith, posts, writeNote } from "../support/notes";
import { dataOf, recordMeeting } from "../support/stories";
import { useService } from "../support/world";

// Seen red with: HTML of the text passed on, and nothing sanitized.

let meetingId: string;

const { simulator, service } = useService({ deals: 10, connected: ["acme"] });
beforeAll(async () => {
  meetingId = (await recordMeeting(service, [simulator.company.stories.singleDeal.email])).id;
});

const LINK = 'rel="noopener noreferrer" target="_blank"';

/** What is typed, and what is sent of it, the reference line aside. */
test.each([
  ["a script", "<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"],
  ["an event handler", "<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>"],
  ["a script link", "[click](javascript:alert(1))", "<p>[click](javascript:alert(1))</p>"],
  ["a hidden script link", "[click](java&#115;cript:alert(1))", "<p>[click](javascript:alert(1))</p>"],
  ["a data link", "[click](data:text/html;base64,PHNjcmlwdD4=)", "<p>[click](data:text/html;base64,PHNjcmlwdD4=)</p>"],
  [
    "an image",
    "![track](https://evil.example/pixel.png)",
    `<p>!<a href="https://evil.example/pixel.png" ${LINK}>track</a></p>`,
  ],
  ["a link into the CRM's own site", "[x](/settings) [y](//evil.example)", "<p>[x](/settings) [y](//evil.example)</p>"],
  ["a link to another program", "[Teams](msteams:/l/meetup)", "<p>[Teams](msteams:/l/meetup)</p>"],
  ["a small heading", "###### a\nb", "<h6>a</h6>\n<p>b</p>"],
  [
    "a link",
    "[site](https://example.com/?a=1&b=2)",
    `<p><a href="https://example.com/?a=1&amp;b=2" ${LINK}>site</a></p>`,
  ],
  [
    "a quote that breaks out",
    '[x](https://e.example/"onmouseover="alert(1))',
    `<p><a href="https://e.example/%22onmouseover=%22alert(1)" ${LINK}>x</a></p>`,
  ],
  [
    "a link by reference, of which a few characters could grow into megabytes,",
    "[a]: https://example.com/\n\n[a] [a]",
    "<p>[a]: https://example.com/</p>\n<p>[a] [a]</p>",
  ],
  ["entities", "Fish & Chips &lt;b&gt; &amp; &copy;", "<p>Fish &amp; Chips &lt;b&gt; &amp; ©</p>"],
  ["a comment", "<!-- Ref. CRM-0000000000 -->x", "<p>&lt;!-- Ref. CRM-0000000000 --&gt;x</p>"],
  ["emoji and right-to-left", "👩‍👩‍👧 עברית العربية \u202eevil", "<p>👩‍👩‍👧 עברית العربية \u202eevil</p>"],
  ["half a surrogate pair", "a\ud800b", "<p>a\ufffdb</p>"],
  ["NUL", "a\0b", "<p>a\ufffdb</p>"],
  [
    "nested Markdown",
    "> > - **a _b `c`_**",
    "<blockquote>\n<blockquote>\n<ul>\n<li><strong>a <em>b <code>c</code></em></strong></li>\n</ul>\n</blockquote>\n</blockquote>",
  ],
  [
    "a table with styles",
    "|a|\n|:-:|\n|b|",
    "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>b</td>\n</tr>\n</tbody>\n</table>",
  ],
])("%s is sent as harmless HTML, and is harmless when it is read again", async (_, content, html) => {
  simulator.log.clear();
  const write = await writeNote(service, { meetingId, content });
  const [sent = ""] = posts(simulator).map(({ body }) => (body as { content: string }).content);
  expect(sent).toBe(`${html}\n<p>Ref. ${write.reference}</p>`);
  expect(sent).toBe(await noteHtml(content, write.reference));
  const [stored] = notesWith(simulator, write.reference);
  for (const text of [sent, stored?.content ?? ""]) {
    expect(text).not.toMatch(/<(script|img|iframe|svg|style|form|input|object)|<[^>]*\son\w+\s*=|href="(?!https?:)/i);
  }
  const query = "query ($id: ID!) { node(id: $id) { ... on Deal { recentNotes(first: 1) { html crmId } } } }";
  const { node } = dataOf(
    await service.ask<{ node: { recentNotes: { html: string; crmId: string }[] } }>(query, { id: write.target?.id }),
  );
  expect(node.recentNotes[0]?.crmId).toBe(write.crmNoteId);
  expect(node.recentNotes[0]?.html).toContain(write.reference);
});

// Seen red: an empty note in the CRM, which cannot be taken back.
test.each([
  "#",
  "[](https://a.example)",
  "\u200b",
  "&nbsp;&#8203;",
  "---",
  "- \n- ",
  "> \u2060",
  "\u3164",
  "|\u200b|\n|-|",
])("%j, of which nothing would be seen, is refused as an empty note is", async (content) => {
  simulator.log.clear();
  expect(await askNote(service, { meetingId, content })).toMatchObject({
    code: "INVALID_INPUT",
    message: "content must not be empty: nothing of it would be seen in the CRM.",
    field: "content",
  });
  expect(simulator.log.all()).toEqual([]);
});

test.each(["!", "👍", "\u0301", "`.`", "[a](https://a.example)", "2025."])("%j is a note", async (content) => {
  expect(await writeNote(service, { meetingId, content })).toMatchObject({ state: "WRITTEN" });
});

test.each([
  ["quotes", ">".repeat(60_000)],
  ["brackets", "[".repeat(60_000)],
  ["emphasis", "*a _b ".repeat(10_000)],
  ["lists in lists", "- ".repeat(30_000)],
  [
    "backticks",
    Array.from({ length: 340 }, (_, length) => "`".repeat(length))
      .join(" ")
      .slice(0, 60_000),
  ],
])("60,000 characters of nested %s neither hang nor break anything", async (_, content) => {
  expect(await noteHtml(content, "CRM-X")).toMatch(/\n<p>Ref\. CRM-X<\/p>$/);
});

// Seen red: all of it sent as it was typed, `**` and `##` too.
test.each(["\n", "\n\n"])("a transcript of 700 lines that end with %j is formatted", async (end) => {
  const line = `[00:12:31] **Anna:** [x], see [00:02](https://a.example/?t=2)${end}`;
  const html = await noteHtml(`## Transcript\n\n${line.repeat(700)}`, "CRM-X");
  expect(html).toMatch(/^<h2>Transcript<\/h2>\n<p>\[00:12:31\] <strong>Anna:<\/strong> \[x\], see <a href=/);
  expect(html.match(/<\/strong>/g)).toHaveLength(700);
});

// Seen red: the address of each was written out, half a second of one turn.
test("of links in the addresses of links that lead nowhere nothing is written out", async () => {
  const content = `${"[a](js:".repeat(32)}${"é".repeat(59_000)}${")".repeat(32)}`;
  const before = process.cpuUsage();
  expect(await noteHtml(content, "CRM-X")).toBe(`<p>${content}</p>\n<p>Ref. CRM-X</p>`);
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(250_000);
});

// Seen red: as one line it was formatted, in 140 ms of one turn.
test("a line may end with a carriage return alone", async () => {
  const content = `${"a\n".repeat(20_000)}the **end**`;
  expect(await noteHtml(content.replaceAll("\n", "\r"), "CRM-X")).toBe(await noteHtml(content, "CRM-X"));
});
