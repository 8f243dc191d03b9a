// What the CRM keeps of a note's HTML is undocumented; paragraphs survive for certain. This is the strict reading: text in a
// few plain tags, nothing a marker could hide in.

const kept = new Set([
  ...["p", "br", "b", "strong", "i", "em", "u", "s", "ul", "ol", "li", "a", "blockquote", "pre", "code"],
  ...["h1", "h2", "h3", "h4", "h5", "h6"],
]);
/** Gone with all that is in them. */
const dropped = ["script", "style", "iframe", "object", "embed", "template", "noscript", "textarea", "title", "svg"];
const withContent = new RegExp(`<(${dropped.join("|")})\\b[^>]*>[\\s\\S]*?(?:</\\1\\s*>|$)`, "gi");
const comments = /<!--[\s\S]*?(?:-->|$)|<[!?][^>]*(?:>|$)/g;
const tags = /<(\/?)([a-z][a-z0-9]*)((?:"[^"]*"|'[^']*'|[^'">])*)>/gi;
const href = /\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i;

/** Keeps text and the tags above; of attributes only an http, https or mailto address of a link; closes what is open. */
export function sanitisedHtml(html: string): string {
  const source = html.replace(withContent, "").replace(comments, "");
  const open: string[] = [];
  let result = "";
  let position = 0;
  for (const match of source.matchAll(tags)) {
    result += escaped(source.slice(position, match.index));
    position = match.index + match[0].length;
    result += tagText(match[1] === "/", (match[2] ?? "").toLowerCase(), match[3] ?? "", open);
  }
  result += escaped(source.slice(position));
  return result + closing(open, 0);
}

function tagText(isEnd: boolean, name: string, attributes: string, open: string[]): string {
  if (!kept.has(name)) return "";
  if (name === "br") return "<br>";
  if (isEnd) {
    const index = open.lastIndexOf(name);
    return index < 0 ? "" : closing(open, index);
  }
  open.push(name);
  return `<${name}${name === "a" ? linkTarget(attributes) : ""}>`;
}

/** Ends every open tag from the given one on, the innermost first. */
function closing(open: string[], from: number): string {
  return open
    .splice(from)
    .reverse()
    .map((name) => `</${name}>`)
    .join("");
}

function linkTarget(attributes: string): string {
  const match = href.exec(attributes);
  const address = match?.[1] ?? match?.[2] ?? match?.[3] ?? "";
  return /^(https?:|mailto:)/i.test(address) ? ` href="${address.replaceAll('"', "&quot;")}"` : "";
}

/** Text as a browser would write it out again: quotes plain, stray signs as entities. */
function escaped(text: string): string {
  return text
    .replace(/&(?:quot|#34|#x22);/gi, '"')
    .replace(/&(?:apos|#0*39|#x27);/gi, "'")
    .replace(/&(?!(?:[a-z][a-z0-9]*|#\d+|#x[0-9a-f]+);)/gi, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
