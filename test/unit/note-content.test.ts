import { withText } from "../../src/briefing/note-content";
import { safeHtml } from "../../src/platform/safe-html";

test.each(["b", "div", "blockquote", "ul><li", "table><tr><td"])(
  "a note of the CRM that nests <%s> without end is shown with its text",
  (tags) => {
    const safe = safeHtml(`${`<${tags}>`.repeat(20_000)}the end`);
    expect(withText(safe).text).toContain("the end");
    expect(safe.html.match(/</g)?.length ?? 0).toBeLessThanOrEqual(200);
    expect(safe.cut).toBe(true);
  },
);
