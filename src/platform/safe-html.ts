import { compile } from "html-to-text";
import sanitizeHtml from "sanitize-html";
import { inSlice } from "./work";

/** At most so many UTF-16 units of a text, without half a character at the end. */
export function cutText(text: string, limit: number): string {
  return text.length > limit ? text.slice(0, limit).replace(/[\ud800-\udbff]$/, "") : text;
}

/** The beginning of a tag or an entity whose end was cut off; such an entity would name another character. */
const TORN_END = /(?:<[^<>]*|&#?\w{0,64})$/;

/** The same for HTML: no torn tag or entity at the end. Elements may stay open, as they may in anybody's HTML. */
export function cutHtml(html: string, limit: number): string {
  return html.length > limit ? cutText(html, limit).replace(TORN_END, "") : html;
}

/** Larger by one with each change of what is made of the same HTML: what was kept of older rules is made anew. */
export const HTML_RULES = 4;

interface SafeHtml {
  html: string;
  /** Less than was given: only its words, or not all of them. */
  cut: boolean;
}
/** A note as it is shown. */
export type ShownNote = SafeHtml & { text: string };

const LINK_OUT = /^\s*(?:https?:\/\/|mailto:|tel:)/i;
/** Any other leads to some place of whoever shows the note, the CRM's site or the product's; `https:logout` does, too. */
export const isLinkOut = (href: string): boolean => LINK_OUT.test(href);

/** Elements that a note may hold: text structure and links out. No styles, images, scripts, forms or frames. */
const ALLOWED: sanitizeHtml.IOptions = {
  // Deeper tags go and their text stays: whoever reads the tree calls itself for each level.
  nestingLimit: 100,
  allowedTags:
    "p br div span h1 h2 h3 h4 h5 h6 blockquote pre code hr b strong i em u s ul ol li a table thead tbody tr th td".split(
      " ",
    ),
  allowedAttributes: { a: ["href", "rel", "target"], ol: ["start"] },
  allowedSchemes: ["http", "https", "mailto", "tel"],
  allowProtocolRelative: false,
  transformTags: {
    a: (tagName, { href = "" }) => ({
      tagName,
      attribs: { ...(isLinkOut(href) && { href }), rel: "noopener noreferrer", target: "_blank" },
    }),
    // "2." goes on where a paragraph stands between two points, and "2025." is a year that somebody wrote.
    ol: (tagName, { start = "" }) => ({ tagName, attribs: { ...(/^\d{1,9}$/.test(start) && { start }) } }),
  },
};

/** Tags open at once. The parser takes time by the square of them; a long thread of replies has some dozens. */
const MAX_DEPTH = 250;
/**
 * Work that one HTML may make without a stop: a tag is 1, and so is each line by which a quote or list is deep eight
 * times, because its text gets a mark for each. Ordinary notes of 100 KB have some thousands; ten thousand take 30 ms.
 */
const MAX_WORK = 10_000;
const INDENTED_BY = 1 / 8;
const INDENTING = new Set(["blockquote", "ul", "ol"]);
/** A rule becomes a line of forty dashes. */
const RULE_WORK = 4;
/** A text ends at each tag, entity or `<`: 40,000 texts take 15 ms. */
const TEXT_WORK = 1 / 4;
/** Each `&`, and each `<` that begins no tag, is a text of its own; so many are looked at where only the words are shown. */
const MAX_MARKS = 40_000;
/** UTF-16 units of safe HTML, and of its text: escaped, 100,000 may become five times as many. */
export const MAX_SHOWN = 250_000;

/**
 * HTML of anybody, safe to show: the one table for what is read from the CRM and what is written to it. The time it
 * takes grows with the length alone: markup that is deeper or denser than anybody writes is shown as its words.
 */
export async function safeHtml(html: string): Promise<SafeHtml> {
  const safe = await inSlice(html.length, () => withinWork(html));
  if (safe !== null && safe.length <= MAX_SHOWN) return { html: safe, cut: false };
  return inSlice(html.length, () => ({ html: cutHtml(wordsOf(withinMarks(html)), MAX_SHOWN), cut: true }));
}

/** Compiled once: to read its selectors takes longer than to convert a note. */
const withoutMarkup = compile({ wordwrap: false, selectors: [{ selector: "a", options: { ignoreHref: true } }] });

/** HTML of the CRM, safe, and its plain text without markup; links keep only their words. */
export async function showNote(content: string): Promise<ShownNote> {
  const { html, cut } = await safeHtml(content);
  const text = await inSlice(html.length, () => withoutMarkup(html).trim());
  return { html, text: cutText(text, MAX_SHOWN), cut: cut || text.length > MAX_SHOWN };
}

class TooMuchWork extends Error {}

/** null where it would take too long: the sanitizer is stopped there. */
function withinWork(html: string): string | null {
  let [depth, indent, work] = [0, 0, 0];
  const spend = (more: number) => {
    work += more;
    if (work > MAX_WORK || depth > MAX_DEPTH) throw new TooMuchWork();
  };
  try {
    return sanitizeHtml(html, {
      ...ALLOWED,
      onOpenTag(name) {
        depth += 1;
        if (INDENTING.has(name)) indent += 1;
        spend(1 + (name === "hr" ? RULE_WORK : 0) + indent * INDENTED_BY);
      },
      onCloseTag(name) {
        depth -= 1;
        if (INDENTING.has(name)) indent -= 1;
      },
      textFilter(text) {
        spend(TEXT_WORK + (indent > 0 ? linesOf(text) * indent * INDENTED_BY : 0));
        return text;
      },
    });
  } catch (error) {
    if (error instanceof TooMuchWork) return null;
    throw error;
  }
}

function linesOf(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

/** The place from which on it has too many. */
function withinMarks(html: string): string {
  let marks = 0;
  for (const { index } of html.matchAll(/<(?![a-z/])|&/gi)) {
    marks += 1;
    if (marks > MAX_MARKS) return html.slice(0, index);
  }
  return html;
}

const TAG = /<(\/?)([a-z][^\s>/]*)(>?)/gi;
/** The sanitizer drops these elements with all that they hold, which is no text of the note. */
const NO_TEXT = new Set(["script", "style", "textarea", "option", "xmp"]);
const LINES = new Set("p br div h1 h2 h3 h4 h5 h6 blockquote pre hr li table tr".split(" "));
const MAX_LINES = 2_000;

/** Each tag becomes one that nests nothing: a line break, or the end or the beginning of an image, which is dropped. */
function wordsOf(html: string): string {
  let lines = 0;
  const flat = html.replace(TAG, (tag: string, end: string, written: string, closed: string) => {
    const name = written.toLowerCase();
    if (NO_TEXT.has(name)) return tag;
    if (end || !LINES.has(name) || lines >= MAX_LINES) return closed ? "</img>" : "<img";
    lines += 1;
    return `<br${closed}`;
  });
  return sanitizeHtml(flat, ALLOWED).replace(/(?:<br \/>\s*){3,}/g, "<br /><br />");
}
