import { accepted, type Outcome, refused } from "../platform/outcome";
import { hashOf } from "./idempotency";
import { newReference, noteHtml } from "./note-html";

export interface WriteNoteInput {
  meetingId: string;
  /** null: the meeting's own, as `targets.ts` chooses. */
  targetId: string | null;
  content: string;
  idempotencyKey: string;
}

/** What is to be sent, and by what it is known again. */
export interface NoteIntent {
  idempotencyKey: string;
  inputHash: string;
  reference: string;
  html: string;
}

const MAX_CHARACTERS = 60_000;
/** The CRM's "about 100,000 characters or 100 KB" (wire facts 6), in the smaller of its readings. */
const MAX_HTML_BYTES = 100_000;

export async function checkNote(input: WriteNoteInput): Promise<Outcome<NoteIntent, "CONTENT_TOO_LONG">> {
  const { meetingId, targetId, content, idempotencyKey } = input;
  const characters = countCharacters(content);
  if (characters > MAX_CHARACTERS) {
    return tooLong(`content has ${characters} characters; at most ${MAX_CHARACTERS} can be written. Shorten it.`);
  }
  const reference = newReference();
  const html = await noteHtml(content, reference);
  const bytes = Buffer.byteLength(html);
  if (bytes > MAX_HTML_BYTES) {
    return tooLong(
      `content becomes ${bytes} bytes of HTML; the CRM takes at most ${MAX_HTML_BYTES}. Shorten it or use less markup.`,
    );
  }
  return accepted({ idempotencyKey, inputHash: hashOf([meetingId, targetId, content]), reference, html });
}

const tooLong = (message: string) => refused("CONTENT_TOO_LONG", message, "content");

/** Characters as people type them, not UTF-16 units: an emoji outside the first plane is one. */
function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
