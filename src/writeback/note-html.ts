import { randomBytes } from "node:crypto";
import MarkdownIt from "markdown-it";
import type { CrmNote } from "../crm/parsing/records";
import { safeHtml } from "../platform/safe-html";
import { inSlice } from "../platform/work";

/** Deeper than anybody writes. The parser would leave out what is deeper. */
const MAX_NESTING = 40;

/**
 * HTML in the text is text: it is escaped, not passed on. Links are written where they stand: three characters that
 * refer to a long address, again and again, would grow into hundreds of megabytes before their length is known.
 */
const markdown = new MarkdownIt({ html: false, maxNesting: MAX_NESTING }).disable("reference");

/** Crockford's base 32: no letter that is taken for a digit. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** 50 bits: nobody can put a guess into the CRM before the note is there. */
const REFERENCE_DIGITS = 10;
const REFERENCE_BEGINS = "CRM-";

/** The name by which a note is found again when its answer was lost. */
export function newReference(): string {
  const digits = [...randomBytes(REFERENCE_DIGITS)].map((byte) => DIGITS[byte % DIGITS.length]);
  return `${REFERENCE_BEGINS}${digits.join("")}`;
}

/** The note as it is sent. The reference is visible text, because the CRM may drop anything else. */
export async function noteHtml(content: string, reference: string): Promise<string> {
  // JSON cannot carry half of a surrogate pair to everybody, and markdown-it sees to NUL.
  const wellFormed = content.replace(/\p{Surrogate}/gu, "\ufffd");
  const rendered = await inSlice(content.length, () => render(wellFormed));
  const safe = rendered === null ? null : await safeHtml(rendered);
  return `${safe === null || safe.cut ? asTyped(wellFormed) : safe.html.trim()}\n<p>Ref. ${reference}</p>`;
}

/** The parser takes time by the square of brackets, and by the lines for each level and column. Notes have far fewer. */
const MAX_LINES = 5_000;
const MAX_BRACKETS = 500;
const MAX_MARKS = 10_000;
/** A table is as wide as its first line, whatever the others hold. */
const MAX_CELLS = 10_000;

/** null where the Markdown is denser or deeper than anybody writes. */
function render(content: string): string | null {
  const lines = content.split("\n");
  const columns = lines.reduce((most, line) => Math.max(most, count(line, /\|/g)), 0);
  const isDense =
    lines.length > MAX_LINES ||
    columns * lines.length > MAX_CELLS ||
    count(content, /\[/g) > MAX_BRACKETS ||
    count(content, /[*_~`<>&|\\]/g) > MAX_MARKS;
  if (isDense) return null;
  const env = {};
  const tokens = markdown.parse(content, env);
  if (tokens.some(({ level }) => level >= MAX_NESTING - 1)) return null;
  return markdown.renderer.render(tokens, markdown.options, env);
}

const count = (text: string, mark: RegExp) => text.match(mark)?.length ?? 0;

/** Every character of it, its marks among them. */
const asTyped = (content: string) =>
  `<p>${markdown.utils.escapeHtml(content.replaceAll("\0", "\ufffd")).trim().replaceAll("\n", "<br />\n")}</p>`;

const REFERENCES = new RegExp(`\\b${REFERENCE_BEGINS}[${DIGITS}]{${REFERENCE_DIGITS}}\\b`, "g");

/** The reference of a note in the CRM: its last one, because what is written above may quote others. */
export function referenceIn(html: string): string | null {
  // Most notes of a CRM are not ours, and megabytes of them are looked at in one turn.
  if (!html.includes(REFERENCE_BEGINS)) return null;
  return html.match(REFERENCES)?.at(-1) ?? null;
}

export const referenceOf = ({ content, ending }: CrmNote) => referenceIn(content + ending);

/** The id of the first note with each reference; few pages have any. */
export function firstOfEachReference(notes: readonly CrmNote[]): Map<string, number> {
  const first = new Map<string, number>();
  for (const note of notes) {
    const reference = referenceOf(note);
    if (reference && note.id < (first.get(reference) ?? Number.POSITIVE_INFINITY)) first.set(reference, note.id);
  }
  return first;
}
