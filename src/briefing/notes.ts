import { LRUCache } from "lru-cache";
import { LAST_LINE, LAST_LINE_LETTERS } from "../connections/copies";
import type { CopyScope, Database } from "../database/database";
import type { Ids } from "../database/rows";
import { jsonRows } from "../database/upsert";
import { SECOND_MS } from "../platform/clock";
import { messageOf } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { cutHtml, HTML_RULES, type ShownNote, showNote } from "../platform/safe-html";

/**
 * Bytes of notes that one read gives out, as safe HTML and as text, of which neither is mostly longer than the content:
 * to read and to write them as JSON takes 10 ms. Notes that come after that are shown by their beginning.
 */
const MAX_READ_BYTES = 2_000_000;
/** UTF-16 units of such a beginning. */
const BEGINNING = 500;
/** Characters of notes that take less to make than a statement that keeps them; what was made last is at hand. */
const SHORT = 2_000;
const MOST_AT_HAND = 1_000;
/** The notes of the levels of an operation, and of what is asked at the same time, are kept by one statement. */
const KEEP_AFTER_MS = 200;
/** Characters that wait to be kept: 20 ms to write as JSON. What is not kept is made again by the next reader. */
const MAX_WAITING = 4_000_000;
const STOPS_WITHIN_MS = 5 * SECOND_MS;

/** A note's content, or what was kept of it, which then is not null. */
interface StoredNote {
  crm_id: number;
  /** Which state of the row this is. */
  version: string;
  /** The CRM's note is longer than what is kept of it. */
  truncated: boolean;
  whole: boolean;
  content: string | null;
  html: string | null;
  text: string | null;
  cut: boolean | null;
}

interface Kept extends ShownNote {
  id: number;
  version: string;
}

interface Waiting {
  tenantId: number;
  notes: Map<number, Kept>;
}

/**
 * Notes as they are shown. Their safe HTML and text are made by the first reader, in slices, and those of longer notes kept in
 * the note's row after the answer: never in a page's transaction, and never for another state of the row.
 */
export class ShownNotes {
  /** By copy. */
  #waiting = new Map<number, Waiting>();
  #characters = 0;
  #timer: NodeJS.Timeout | undefined;
  #keeping: Promise<void> = Promise.resolve();
  /** By content, of which alone they are made. */
  readonly #short = new LRUCache<string, ShownNote>({ max: MOST_AT_HAND });

  constructor(
    private readonly database: Database,
    private readonly logger: Logger,
  ) {}

  /** Of notes that the caller has found readable; those that are gone meanwhile are left out. */
  async read(copy: CopyScope, ids: Ids): Promise<Map<number, ShownNote>> {
    const stored = await readStored(copy, ids);
    return new Map(await Promise.all(stored.map(async (note) => [note.crm_id, await this.#show(copy, note)] as const)));
  }

  async #show(copy: CopyScope, { content, whole, truncated, ...note }: StoredNote): Promise<ShownNote> {
    const { html, text, cut } = note;
    const kept = { html: html ?? "", text: text ?? "", cut: cut ?? false };
    const made = content === null ? kept : await this.#make(whole ? content : cutHtml(content, BEGINNING));
    if (content !== null && content.length > SHORT && whole)
      this.#keepLater(copy, { ...made, id: note.crm_id, version: note.version });
    return { ...made, cut: made.cut || truncated || !whole };
  }

  async #make(content: string): Promise<ShownNote> {
    if (content.length > SHORT) return showNote(content);
    const made = this.#short.get(content) ?? (await showNote(content));
    this.#short.set(content, made);
    return made;
  }

  /** What waits is kept now, or given up. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#keepNow();
    const patience = new Promise<void>((resolve) => void setTimeout(resolve, STOPS_WITHIN_MS).unref());
    await Promise.race([this.#keeping, patience]);
  }

  #keepLater({ tenantId, copyId }: CopyScope, note: Kept): void {
    const characters = note.html.length + note.text.length;
    if (this.#characters + characters > MAX_WAITING) return;
    this.#characters += characters;
    const waiting = this.#waiting.get(copyId) ?? { tenantId, notes: new Map<number, Kept>() };
    waiting.notes.set(note.id, note);
    this.#waiting.set(copyId, waiting);
    this.#timer ??= setTimeout(() => this.#keepNow(), KEEP_AFTER_MS);
  }

  #keepNow(): void {
    const waiting = this.#waiting;
    this.#waiting = new Map();
    this.#characters = 0;
    this.#timer = undefined;
    for (const [copyId, { tenantId, notes }] of waiting) {
      this.#keeping = this.#keeping
        .then(() => keep(this.database, tenantId, copyId, [...notes.values()]))
        .catch((error: unknown) => {
          this.logger.warn({ tenantId, copyId, why: messageOf(error) }, "notes as shown were not kept: made again");
        });
    }
  }
}

/** The content only where nothing is kept of it by today's rules, and only its beginning once the answer is full. */
function readStored({ tenantId, copyId, rows }: CopyScope, ids: Ids): Promise<StoredNote[]> {
  return rows<StoredNote>(
    `SELECT crm_id, version, truncated, whole,
       CASE WHEN NOT whole THEN left(content, $5 + 1) WHEN NOT is_kept THEN content END AS content,
       CASE WHEN whole AND is_kept THEN shown_html END AS html, CASE WHEN whole AND is_kept THEN shown_text END AS text,
       CASE WHEN whole AND is_kept THEN shown_cut END AS cut
     FROM (
       SELECT sized.*, sum(bytes) OVER (ORDER BY place) <= $6 AS whole FROM (
         SELECT t.*, t.xmin::text AS version, asked.place, t.shown_rules IS NOT DISTINCT FROM $4::int AS is_kept,
           CASE WHEN t.shown_rules = $4 THEN octet_length(t.shown_html) + octet_length(t.shown_text)
             ELSE 2 * octet_length(t.content) END AS bytes
         FROM unnest($3::bigint[]) WITH ORDINALITY AS asked (id, place)
         JOIN note t ON t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = asked.id
       ) sized
     ) read ORDER BY place`,
    [tenantId, copyId, ids, HTML_RULES, BEGINNING, MAX_READ_BYTES],
    {
      crm_id: "number",
      version: "text",
      truncated: "flag",
      whole: "flag",
      content: "text",
      html: "text",
      text: "text",
      cut: "flag",
    },
  );
}

/** A row that has moved on since it was read is passed by, and so is one that somebody holds: nobody waits for this. */
async function keep(database: Database, tenantId: number, copyId: number, notes: readonly Kept[]): Promise<void> {
  await database.tenant(tenantId).rows(
    `WITH made AS (
       SELECT r.* FROM jsonb_to_recordset($3::jsonb) AS r (id bigint, version text, html text, "text" text, cut boolean)
     ), free AS (
       SELECT t.crm_id FROM note t JOIN made ON t.crm_id = made.id AND t.xmin::text = made.version
       WHERE t.tenant_id = $1 AND t.copy_id = $2 FOR NO KEY UPDATE OF t SKIP LOCKED
     )
     UPDATE note t SET shown_html = made.html, shown_text = made.text, shown_cut = made.cut, shown_rules = $4
     FROM made JOIN free ON free.crm_id = made.id WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = made.id`,
    [tenantId, copyId, jsonRows(notes), HTML_RULES],
  );
}

/** SQL: the CRM company of the copy; read once in a statement. */
const COMPANY =
  "(SELECT our_copy.crm_company_id FROM synced_copy our_copy WHERE our_copy.tenant_id = $1 AND our_copy.id = $2)";

/**
 * SQL: whether a note of the copy was written by this service. Its receipt has the CRM's id of it; while the answer is
 * awaited or lost, the receipt's reference inside the note shows it; and where another tenant of the company wrote it, whose
 * receipts nobody sees here, its last line. Notes are compared within one CRM company, whose ids they are.
 * @param note a row of `note`; $1 is the tenant, $2 the copy
 */
export const isOurNote = (note: string) => {
  const receipts = `note_write w WHERE w.tenant_id = $1 AND w.crm_company_id = ${COMPANY}`;
  // With OFFSET each is looked up by its id: without it all of the tenant's receipts were read, for a note or two.
  return `(EXISTS (SELECT 1 FROM ${receipts} AND w.crm_note_id = ${note}.crm_id OFFSET 0)
    OR EXISTS (SELECT 1 FROM ${receipts} AND w.state IN ('SENDING', 'UNKNOWN')
      AND strpos(${note}.content, w.reference) > 0)
    OR right(${note}.content, ${LAST_LINE_LETTERS}) ~ '${LAST_LINE}')`;
};
