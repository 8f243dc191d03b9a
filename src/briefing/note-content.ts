import { compile } from "html-to-text";
import { safeHtml } from "../platform/safe-html";

/** Compiled once: to read its selectors takes longer than to convert a note. */
const withoutMarkup = compile({
  wordwrap: false,
  selectors: [{ selector: "a", options: { ignoreHref: true } }],
});

/** HTML of the CRM as plain text, without markup; links keep only their words. */
export function plainText(html: string): string {
  return withoutMarkup(safeHtml(html)).trim();
}
