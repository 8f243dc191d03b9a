import sanitizeHtml from "sanitize-html";

/** What a note may hold: text structure and links out. No styles, images, scripts, forms or frames. */
const ALLOWED: sanitizeHtml.IOptions = {
  // Deeper tags go and their text stays: whoever reads the tree calls itself for each level.
  nestingLimit: 100,
  allowedTags: [
    ...["p", "br", "div", "span", "h1", "h2", "h3", "h4", "blockquote", "pre", "code", "hr"],
    ...["b", "strong", "i", "em", "u", "s", "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td"],
  ],
  allowedAttributes: { a: ["href", "rel", "target"] },
  allowedSchemes: ["http", "https", "mailto", "tel"],
  allowProtocolRelative: false,
  transformTags: { a: sanitizeHtml.simpleTransform("a", { rel: "noopener noreferrer", target: "_blank" }) },
};

/** HTML of anybody, safe to show: the one table for what is read from the CRM and what is written to it. */
export function safeHtml(html: string): string {
  return sanitizeHtml(html, ALLOWED);
}
