import { compile } from "html-to-text";
import { cutText } from "../platform/cut";
import { MAX_SHOWN, safeHtml } from "../platform/safe-html";
import { inSlice } from "../platform/work";

/** A note as it is shown. */
export interface ShownNote {
  html: string;
  text: string;
  /** Less than the HTML that it was made of. */
  cut: boolean;
}

/** Compiled once: to read its selectors takes longer than to convert a note. */
const withoutMarkup = compile({
  wordwrap: false,
  selectors: [{ selector: "a", options: { ignoreHref: true } }],
});

/** HTML of the CRM, safe, and its plain text without markup; links keep only their words. */
export async function showNote(content: string): Promise<ShownNote> {
  const { html, cut } = await safeHtml(content);
  const text = await inSlice(html.length, () => withoutMarkup(html).trim());
  return { html, text: cutText(text, MAX_SHOWN), cut: cut || text.length > MAX_SHOWN };
}
