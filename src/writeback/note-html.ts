import { randomBytes } from "node:crypto";
import MarkdownIt from "markdown-it";
import { safeHtml } from "../platform/safe-html";

/**
 * HTML in the text is text: it is escaped, not passed on. Links are written where they stand: three characters that
 * refer to a long address, again and again, would grow into hundreds of megabytes before their length is known.
 */
const markdown = new MarkdownIt({ html: false }).disable("reference");

/** Crockford's base 32: no letter that is taken for a digit. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** 50 bits: nobody can put a guess into the CRM before the note is there. */
const REFERENCE_DIGITS = 10;

/** The name by which a note is found again when its answer was lost. */
export function newReference(): string {
  const digits = [...randomBytes(REFERENCE_DIGITS)].map((byte) => DIGITS[byte % DIGITS.length]);
  return `CRM-${digits.join("")}`;
}

/** The note as it is sent. The reference is visible text, because the CRM may drop anything else. */
export function noteHtml(content: string, reference: string): string {
  // JSON cannot carry half of a surrogate pair to everybody, and markdown-it sees to NUL.
  const wellFormed = content.replace(/\p{Surrogate}/gu, "\ufffd");
  return `${safeHtml(markdown.render(wellFormed)).trim()}\n<p>Ref. ${reference}</p>`;
}

const REFERENCES = new RegExp(`\\bCRM-[${DIGITS}]{${REFERENCE_DIGITS}}\\b`, "g");

/** The reference of a note in the CRM: its last one, because what is written above may quote others. */
export function referenceIn(html: string): string | null {
  return html.match(REFERENCES)?.at(-1) ?? null;
}
