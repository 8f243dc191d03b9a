import MarkdownIt, { type Token } from "markdown-it";
import { z } from "zod";
import type { Actor } from "../auth/actor";
import { holdLiveCopy } from "../connections/copies";
import { mayMissReceipts } from "../connections/crm-stops";
import type { KeepOut } from "../connections/keep-out";
import type { CrmApi } from "../crm/api";
import type { CrmNote } from "../crm/parsing/records";
import { notifyOf, WRITE_SETTLED } from "../database/between-processes";
import type { CopyScope, TenantScope } from "../database/database";
import { levelOf } from "../database/errors";
import { jsonRows, upsertPage } from "../database/upsert";
import { NOTE_UPSERT, NoteRow, noteRow } from "../entities/records";
import { NoteWriteRow } from "../entities/writeback";
import { accepted, type Outcome, refused } from "../platform/errors";
import type { Keyring } from "../platform/keyring";
import { isLinkOut, safeHtml } from "../platform/safe-html";
import { inSlice } from "../platform/work";
import { type LookedUp, LookUps } from "./look-ups";
import { certainFailureOf, type Found, inSight, verdictOf, type WriteFailure } from "./outcomes";
import { makeReceipts, NOTE } from "./receipts";
import { type AskedTarget, holdTargets, type TargetsRefusal, targetOf, type UncertainRefusal } from "./targets";
import {
  type BegunWrite,
  callsToWrite,
  hashOf,
  type Intent,
  settleFound,
  type WritebackParts,
  Writing,
  type WritingRefusal,
} from "./writing";

/** What a client asks for, with its ids as sent and as read; an id that names nothing of the kind is null. */
export interface AskedNote {
  meetingId: string;
  meeting: string | null;
  /** null: the meeting's own, as `targets.ts` chooses. */
  targetId: string | null;
  target: AskedTarget;
  content: string;
  idempotencyKey: string;
}

export type WriteNoteRefusal = WritingRefusal | TargetsRefusal | UncertainRefusal | ContentRefusal;
type ContentRefusal = "CONTENT_TOO_LONG" | "INVALID_INPUT";

/** What is to be sent, and by what it is known again. */
interface NoteIntent extends Intent {
  /** Its own, and those that it had under earlier keys of the service. */
  references: readonly [string, ...string[]];
  html: string;
}

const MAX_CHARACTERS = 60_000;
/** The CRM's "about 100,000 characters or 100 KB" (wire facts 6), in the smaller of its readings. */
const MAX_HTML_BYTES = 100_000;

export interface NoteWritesParts extends WritebackParts {
  keepOut: KeepOut;
  keyring: Keyring;
}

/** Writes meeting notes, each at most once (decision 0030), and finds those whose answer was lost. */
export class NoteWrites {
  readonly lookUps: LookUps<NoteWriteRow>;
  readonly #writing: Writing<NoteWriteRow>;

  constructor(private readonly parts: NoteWritesParts) {
    this.#writing = new Writing(NOTE, parts);
    this.lookUps = new LookUps(NOTE, parts, (lookedUp) => findAgain(parts, lookedUp));
  }

  async write(actor: Actor, asked: AskedNote): Promise<Outcome<NoteWriteRow, WriteNoteRefusal>> {
    const written = await this.#writing.write(
      actor,
      () => intentOf(asked, referencesOf(this.parts.keyring, actor.tenant, asked.idempotencyKey)),
      (intent: NoteIntent) => this.#begin(actor, asked, intent),
    );
    return written.ok ? accepted(theOne(written.value)) : written;
  }

  close(): Promise<void> {
    return this.#writing.close();
  }

  /**
   * By the notes of a page that a sync writes in this transaction: what a look-up does not find because its record was
   * merged into another is found there, and without a request.
   */
  async settleSynced(copy: CopyScope, notes: readonly CrmNote[]): Promise<void> {
    const settled = await settleSeen(copy, firstOfEachReference(notes), this.parts.clock());
    // Also from SENDING: its process may be gone, and then nobody is answered.
    await notifyOf(
      copy,
      WRITE_SETTLED,
      settled.map(({ id }) => id),
    );
    for (const { tenantId, id, state } of settled) {
      this.parts.metrics?.crmWrites.inc({ kind: "note", state });
      this.parts.logger.info({ tenantId, writeId: id, state }, "a lost answer was found among the synced notes");
    }
  }

  /** The proof that the target is matched and the receipt, in one transaction. */
  #begin(
    { tenantId, userId }: Actor,
    asked: AskedNote,
    { idempotencyKey, inputHash, references, html }: NoteIntent,
  ): Promise<Outcome<BegunWrite<NoteWriteRow>, TargetsRefusal | UncertainRefusal>> {
    return this.parts.database.tenant(tenantId).transaction(async (scope) => {
      const held = await holdTargets(scope, asked.meeting);
      if (!held.ok) return held;
      const target = targetOf(held.value, null, asked.targetId === null ? undefined : asked.target);
      if (!target.ok) return target;
      const requestedAt = this.parts.clock();
      const shared = { held: held.value, idempotencyKey, inputHash, requestedBy: userId, requestedAt };
      const note = { target: target.value, failure: null, own: [references[0]] };
      const { receipts, areOurs } = await makeReceipts(scope, NOTE, shared, [note]);
      return accepted({ receipts, send: areOurs ? () => this.#send(theOne(receipts), references, html) : null });
    });
  }

  /** The only place that sends a note, and only who has just made the receipt comes here. */
  async #send(receipt: NoteWriteRow, references: readonly string[], html: string): Promise<NoteWriteRow[]> {
    const api = callsToWrite(this.parts, receipt);
    const before = await this.#foundBefore(api, receipt, references);
    return [await settleFound(this.parts, NOTE, receipt, before ?? (await this.#create(api, receipt, html)))];
  }

  /**
   * Where a receipt of the same key may have been lost: a note that it had sent, or UNKNOWN where that cannot be seen.
   * null: it is to be sent.
   */
  async #foundBefore(api: CrmApi, receipt: NoteWriteRow, references: readonly string[]): Promise<Found | null> {
    const { database, clock, logger, keepOut } = this.parts;
    const { tenantId, id: writeId, copyId } = receipt;
    if (!(await mayMissReceipts(database, clock()))) return null;
    const seen = await search(api, receipt, references).catch((err: unknown) => {
      logger[levelOf(err)]({ tenantId, writeId, err }, "a note was not sent: whether it was before could not be seen");
      return null;
    });
    if (seen?.note) {
      logger.warn({ tenantId, writeId }, "a note was not sent again: the CRM has it, and its receipt was lost");
      return written(keepOut, seen.note.id, seen.note, copyId);
    }
    return seen?.complete ? null : { outcome: { state: "UNKNOWN" } };
  }

  async #create(api: CrmApi, { tenantId, id, copyId, entity, targetId }: NoteWriteRow, html: string): Promise<Found> {
    const { keepOut, logger } = this.parts;
    const target = { entity, id: targetId };
    return api.createNote(target, html).then(
      ({ correlationId, ...made }): Found => {
        logger.info({ tenantId, writeId: id, correlationId }, "a note was written to the CRM");
        return written(keepOut, made.id, made.note, copyId);
      },
      async (err: unknown): Promise<Found> => {
        const failure = await inSight(api, target, certainFailureOf(err));
        logger[levelOf(err)]({ tenantId, writeId: id, err, certain: failure !== null }, "a note was not seen written");
        return { outcome: failure ? { state: "FAILED", failure } : { state: "UNKNOWN" } };
      },
    );
  }
}

function theOne(receipts: readonly NoteWriteRow[]): NoteWriteRow {
  const [receipt] = receipts;
  if (!receipt) throw new Error("a note without a receipt");
  return receipt;
}

async function intentOf(
  asked: AskedNote,
  references: NoteIntent["references"],
): Promise<Outcome<NoteIntent, ContentRefusal>> {
  const { meetingId, targetId, content, idempotencyKey } = asked;
  const characters = countCharacters(content);
  if (characters > MAX_CHARACTERS) {
    return tooLong(`content has ${characters} characters; at most ${MAX_CHARACTERS} can be written. Shorten it.`);
  }
  const html = await noteHtml(content, references[0]);
  if (!isSeen(html.slice(0, html.lastIndexOf("\n")))) {
    return refused("INVALID_INPUT", "content must not be empty: nothing of it would be seen in the CRM.", "content");
  }
  const bytes = Buffer.byteLength(html);
  if (bytes > MAX_HTML_BYTES) {
    return tooLong(
      `content becomes ${bytes} bytes of HTML; the CRM takes at most ${MAX_HTML_BYTES}. Shorten it or use less markup.`,
    );
  }
  return accepted({ idempotencyKey, inputHash: hashOf([meetingId, targetId, content]), references, html });
}

const tooLong = (message: string) => refused("CONTENT_TOO_LONG", message, "content");

/** Characters as people type them, not UTF-16 units: an emoji outside the first plane is one. */
function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** The CRM has the note: the tenant's readers see it at once, as a sync would write it. @param note null: only its id is known */
function written(keepOut: KeepOut, crmNoteId: number, note: CrmNote | null, copyId: number): Found {
  const copy = async (scope: TenantScope, now: Date) => {
    if (note === null || note.deleted) return;
    // Before the copy, in the order of who keeps somebody out.
    const kept = await keepOut.hold(scope);
    if (!(await holdLiveCopy(scope, copyId))) return;
    const notes = (await kept?.notes({ ...scope, copyId }, [note])) ?? [note];
    await upsertPage(NoteRow, notes.map(noteRow), NOTE_UPSERT)({ ...scope, copyId }, now);
  };
  return { outcome: { state: "WRITTEN", crmNoteId }, copy };
}

const NOT_FOUND: WriteFailure = {
  code: "ANSWER_LOST",
  message: "The CRM's answer was lost, and the CRM has no such note. Write it again with a new idempotency key.",
};

async function findAgain(
  { keepOut, keyring }: NoteWritesParts,
  { receipt, tenant, copyId, api, begunAt, sentAt }: LookedUp<NoteWriteRow>,
): Promise<Found | null> {
  // One of a lost receipt may have been made before the service's keys were rotated.
  const references = [receipt.reference, ...referencesOf(keyring, tenant, receipt.idempotencyKey)];
  const { note, complete } = await search(api, receipt, references);
  if (note) return written(keepOut, note.id, note, copyId);
  if (verdictOf(sentAt, { begunAt, lookUps: receipt.lookUps, found: false, complete }) === "UNKNOWN") return null;
  // Asked after the look: a record that is merged while it goes on is no longer shown at its end.
  const isShown = await api.isShown({ entity: receipt.entity, id: receipt.targetId });
  return isShown ? { outcome: { state: "FAILED", failure: NOT_FOUND } } : null;
}

/**
 * The notes on the target until ours is found, else all: `add_time` is no order, for an import sets it, and no age says that
 * ours would have come. Somebody may have copied ours by hand: of those on a page the first with its reference is it.
 */
async function search(
  api: CrmApi,
  { entity, targetId }: NoteWriteRow,
  references: readonly string[],
): Promise<{ note: CrmNote | null; complete: boolean }> {
  let note: CrmNote | null = null;
  let complete = true;
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof api.notesOf>> = await api.notesOf({ entity, id: targetId }, { cursor });
    // Newest first, so that the last one found is the first one made.
    note = page.records.findLast((found) => references.includes(referenceOf(found) ?? "")) ?? note;
    complete &&= page.rejected.every(({ payload }) => isAnother(payload, references));
    cursor = page.next;
  } while (note === null && cursor !== null);
  return { note, complete };
}

const withContent = z.object({ content: z.string() });

/** Of a note that cannot be read its content alone may tell that it is not ours. */
function isAnother(payload: unknown, references: readonly string[]): boolean {
  const { data } = withContent.safeParse(payload);
  return data !== undefined && !references.some((reference) => data.content.includes(reference));
}

/**
 * Receipts of the copy's company whose note is shown on a page that a sync writes, on whatever record it is by now. One
 * statement, and none where no note carries a reference. What was thought lost for good is corrected too.
 * @param seen the note with each reference
 */
async function settleSeen(
  { tenantId, copyId, entities }: CopyScope,
  seen: ReadonlyMap<string, number>,
  now: Date,
): Promise<NoteWriteRow[]> {
  if (seen.size === 0) return [];
  return entities(
    NoteWriteRow,
    `UPDATE note_write w SET state = 'WRITTEN', crm_note_id = seen."noteId", error_code = NULL, error_message = NULL,
       sent_at = coalesce(w.sent_at, $4), settled_at = $4, next_look_up_at = NULL
     FROM jsonb_to_recordset($3::jsonb) AS seen (reference text, "noteId" bigint)
     WHERE w.tenant_id = $1 AND w.reference = seen.reference
       AND (w.state IN ('SENDING', 'UNKNOWN') OR w.error_code = 'ANSWER_LOST')
       AND w.crm_company_id = (SELECT s.crm_company_id FROM synced_copy s WHERE s.tenant_id = $1 AND s.id = $2)
     RETURNING w.*`,
    [tenantId, copyId, jsonRows([...seen].map(([reference, noteId]) => ({ reference, noteId }))), now],
  );
}

/** Deeper than anybody writes. The parser would leave out what is deeper. */
const MAX_NESTING = 40;

/**
 * HTML in the text is text: it is escaped, not passed on. Links are written where they stand: three characters that
 * refer to a long address, again and again, would grow into hundreds of megabytes before their length is known.
 */
const markdown = new MarkdownIt({ html: false, maxNesting: MAX_NESTING }).disable(["reference", "image"]);
/** Of an image its words and address are sent, as a link; of a link that would be dropped, all that was typed. */
markdown.validateLink = isLinkOut;
const { normalizeLink } = markdown;
/** What is no link is not written out: addresses may stand in one another, and each would be. */
const addressOut = (href: string) => (isLinkOut(href) ? normalizeLink(href) : "");
markdown.normalizeLink = addressOut;

/** Crockford's base 32: no letter that is taken for a digit. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** 50 bits: nobody can put a guess into the CRM before the note is there. */
const REFERENCE_DIGITS = 10;
const REFERENCE_BEGINS = "CRM-";

/**
 * The name by which a note is found again when its answer was lost, or its receipt: the same whenever the key comes, and whatever
 * number a restored backup gives a tenant that it lacks. Behind the first those from before the service's keys were rotated.
 */
function referencesOf(keyring: Keyring, tenant: string, idempotencyKey: string): NoteIntent["references"] {
  const [own, ...earlier] = keyring.tagsOf(["note_reference", tenant, idempotencyKey]).map(referenceFrom);
  if (!own) throw new Error("a keyring without a key");
  return [own, ...earlier];
}

const referenceFrom = (tag: Buffer): string =>
  REFERENCE_BEGINS + [...tag.subarray(0, REFERENCE_DIGITS)].map((byte) => DIGITS[byte % DIGITS.length]).join("");

/** The note as it is sent. The reference is visible text, because the CRM may drop anything else. */
export async function noteHtml(content: string, reference: string): Promise<string> {
  // JSON cannot carry half of a surrogate pair to everybody, and markdown-it sees to NUL. It takes a lone CR for a line's end.
  const wellFormed = content.replace(/\p{Surrogate}/gu, "\ufffd").replace(/\r\n?/g, "\n");
  const rendered = await inSlice(content.length, () => render(wellFormed));
  const safe = rendered === null ? null : await safeHtml(rendered);
  return `${safe === null || safe.cut ? asTyped(wellFormed) : safe.html.trim()}\n<p>Ref. ${reference}</p>`;
}

/** The parser takes time by the lines for each level and column. Notes have far fewer. */
const MAX_LINES = 5_000;
const MAX_MARKS = 10_000;
/** Each address is taken apart and put together anew. */
const MAX_LINKS = 2_000;
/** A table is as wide as its first line, whatever the others hold. */
const MAX_CELLS = 10_000;

/** null where the Markdown is denser or deeper than anybody writes. */
function render(content: string): string | null {
  const lines = content.split("\n");
  const columns = lines.reduce((most, line) => Math.max(most, count(line, /\|/g)), 0);
  const isDense =
    lines.length > MAX_LINES ||
    columns * lines.length > MAX_CELLS ||
    count(content, /\]\(/g) > MAX_LINKS ||
    count(content, /[*_~`<>&|\\]/g) > MAX_MARKS;
  if (isDense) return null;
  const env: { isDense?: boolean } = {};
  const tokens = markdown.parse(content, env);
  if (env.isDense || tokens.some(({ level }) => level >= MAX_NESTING - 1)) return null;
  return markdown.renderer.render(tokens, markdown.options, env);
}

const count = (text: string, mark: RegExp) => text.match(mark)?.length ?? 0;

/** The end of a bracket that is not closed soon is looked for as far as its paragraph goes: half a million steps take 20 ms. */
const MAX_STEPS = 500_000;
/** Code, and an address within `<>`, may take the end for themselves. */
const OPEN_BRACKET = /\[(?![^[\]`<]{0,200}\])/g;
const stepsOf = ({ type, content }: Token) =>
  type === "inline" ? count(content.replace(/\\./gs, ""), OPEN_BRACKET) * content.length : 0;

markdown.core.ruler.before("inline", "brackets", (state) => {
  if (state.tokens.reduce((steps, token) => steps + stepsOf(token), 0) <= MAX_STEPS) return;
  state.env.isDense = true;
  state.tokens = [];
});

/** Every character of it, its marks among them. */
const asTyped = (content: string) =>
  `<p>${markdown.utils.escapeHtml(content.replaceAll("\0", "\ufffd")).trim().replaceAll("\n", "<br />\n")}</p>`;

/** Of a heading, link or list without words nothing is, nor of characters without a shape; but a numbered list's numbers. */
const isSeen = (html: string) => /<ol|[^\s\p{Cc}\p{Z}\p{DI}]/u.test(html.replace(/<(?!ol)[^>]*>/g, ""));

const REFERENCES = new RegExp(`\\b${REFERENCE_BEGINS}[${DIGITS}]{${REFERENCE_DIGITS}}\\b`, "g");

/** The reference of a note in the CRM: its last one, because what is written above may quote others. */
export function referenceIn(html: string): string | null {
  // Most notes of a CRM are not ours, and megabytes of them are looked at in one turn.
  if (!html.includes(REFERENCE_BEGINS)) return null;
  return html.match(REFERENCES)?.at(-1) ?? null;
}

const referenceOf = ({ content, ending }: CrmNote) => referenceIn(content + ending);

/** The id of the first note with each reference; few pages have any. */
function firstOfEachReference(notes: readonly CrmNote[]): Map<string, number> {
  const first = new Map<string, number>();
  for (const note of notes) {
    const reference = referenceOf(note);
    if (reference && note.id < (first.get(reference) ?? Number.POSITIVE_INFINITY)) first.set(reference, note.id);
  }
  return first;
}
