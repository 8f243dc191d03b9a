import { convert } from "html-to-text";
import { safeHtml } from "../platform/safe-html";

/** HTML of the CRM as plain text, without markup; links keep only their words. */
export function plainText(html: string): string {
  return convert(safeHtml(html), {
    wordwrap: false,
    selectors: [{ selector: "a", options: { ignoreHref: true } }],
  }).trim();
}
