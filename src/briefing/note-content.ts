import { compile } from "html-to-text";
import { cutText } from "../platform/cut";
import { MAX_SHOWN, type SafeHtml } from "../platform/safe-html";

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

/** Safe HTML with its plain text, without markup; links keep only their words. */
export function withText({ html, cut }: SafeHtml): ShownNote {
  const text = withoutMarkup(html).trim();
  return { html, text: cutText(text, MAX_SHOWN), cut: cut || text.length > MAX_SHOWN };
}
