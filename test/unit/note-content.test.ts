import { plainText } from "../../src/briefing/note-content";
import { safeHtml } from "../../src/platform/safe-html";

test.each(["b", "div", "blockquote", "ul><li", "table><tr><td"])(
  "a note of the CRM that nests <%s> without end is shown with its text",
  (tags) => {
    const html = `<${tags}>`.repeat(20_000);
    expect(plainText(`${html}the end`)).toContain("the end");
    expect(safeHtml(`${html}the end`).match(/</g)?.length).toBeLessThanOrEqual(200);
  },
);
