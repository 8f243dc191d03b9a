import { convert } from "html-to-text";
import sanitizeHtml from "sanitize-html";

/** What a note may show: text structure and links out. No styles, images, scripts, forms or frames. */
const SHOWN: sanitizeHtml.IOptions = {
  allowedTags: [
    ...["p", "br", "div", "span", "h1", "h2", "h3", "h4", "blockquote", "pre", "code", "hr"],
    ...["b", "strong", "i", "em", "u", "s", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td"],
  ],
  allowedAttributes: { a: ["href", "rel", "target"] },
  allowedSchemes: ["http", "https", "mailto", "tel"],
  allowProtocolRelative: false,
  transformTags: { a: sanitizeHtml.simpleTransform("a", { rel: "noopener noreferrer", target: "_blank" }) },
};

/** HTML of the CRM, safe to show. */
export function safeHtml(html: string): string {
  return sanitizeHtml(html, SHOWN);
}

/** The same as plain text, without markup; links keep only their words. */
export function plainText(html: string): string {
  return convert(safeHtml(html), {
    wordwrap: false,
    selectors: [{ selector: "a", options: { ignoreHref: true } }],
  }).trim();
}
