import { showNote } from "../../src/briefing/note-content";

test.each(["b", "div", "blockquote", "ul><li", "table><tr><td"])(
  "a note of the CRM that nests <%s> without end is shown with its text",
  async (tags) => {
    const { html, text, cut } = await showNote(`${`<${tags}>`.repeat(20_000)}the end`);
    expect(text).toContain("the end");
    expect(html.match(/</g)?.length ?? 0).toBeLessThanOrEqual(200);
    expect(cut).toBe(true);
  },
);
