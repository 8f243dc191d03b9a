import { CrmApi } from "../crm/api";
import type { CrmNote } from "../crm/parsing/records";
import type { CopyScope, TenantScope } from "../database/database";
import { hasLiveJob } from "../database/jobs";
import { NoteWriteRow } from "../entities/note-write";
import { MINUTE_MS } from "../platform/clock";
import { forEachLogged } from "../platform/periodic";
import { nextLookUp, verdictOf } from "./look-up-plan";
import { referenceIn } from "./note-html";
import { enqueueLookUp, leaveUnknown, NOTE_LOOK_UP, settleFailed, settleSeen, settleWritten } from "./note-receipts";
import { isOfTheCrm, leaveAbandoned, MOST_AT_ONCE, WHILE_CONNECTED, type WriteRef } from "./unsettled";
import type { WritebackParts } from "./writeback-parts";

/** A job that is so late has gone with the worker that took it, or waited for a connection that is back now. */
const OVERDUE_MS = MINUTE_MS;

const OVERDUE = `
  WITH unknown AS MATERIALIZED (
    SELECT w.tenant_id, w.id, w.next_look_up_at FROM note_write w ${WHILE_CONNECTED}
    WHERE w.state = 'UNKNOWN' AND w.next_look_up_at < $1
  )
  SELECT tenant_id AS "tenantId", id AS "writeId" FROM unknown
  WHERE NOT ${hasLiveJob(NOTE_LOOK_UP, "unknown.id", "$1")} ORDER BY next_look_up_at LIMIT ${MOST_AT_ONCE}`;

const NOT_FOUND = {
  code: "ANSWER_LOST",
  message: "the CRM's answer was lost, and the CRM has no such note. Write it again with a new idempotency key.",
} as const;

/** Finds out what became of notes whose answer was lost (decision 0030), by reading the CRM and never by sending again. */
export class NoteLookUps {
  constructor(private readonly parts: WritebackParts) {}

  /** Sendings whose process is gone become UNKNOWN, and look-ups whose job is gone get another. */
  async sweep(): Promise<void> {
    const { database, clock, logger } = this.parts;
    const now = clock();
    await leaveAbandoned(this.parts, "note", leaveUnknown, now);
    const overdue = await database.acrossTenants<WriteRef>(OVERDUE, [new Date(now.getTime() - OVERDUE_MS)], {
      tenantId: "number",
      writeId: "text",
    });
    await forEachLogged(
      overdue,
      ({ tenantId, writeId }) => enqueueLookUp(database.tenant(tenantId), writeId, now),
      logger,
    );
  }

  /** Looks once. The next look-up is planned before this one begins, so a crash in between loses none. */
  async lookUp({ tenantId, writeId }: WriteRef): Promise<void> {
    const { database, clock, logger } = this.parts;
    const planned = await database.tenant(tenantId).transaction((scope) => this.#plan(scope, writeId));
    if (!planned) return;
    const { copyId, receipt } = planned;
    try {
      const begunAt = clock();
      const api = this.#apiOf(tenantId, copyId);
      const { note, complete } = await search(api, receipt);
      const verdict = verdictOf(receipt.sentAt ?? begunAt, { begunAt, foundId: note?.id ?? null, complete });
      if (verdict === "UNKNOWN") return;
      // Asked after the look: a record that is merged while it goes on is no longer shown at its end.
      if (verdict === "ABSENT" && !(await api.isShown({ entity: receipt.entity, id: receipt.targetId }))) return;
      const settled = await database
        .tenant(tenantId)
        .transaction((scope) =>
          note
            ? settleWritten(scope, writeId, { id: note.id, note, copyId }, clock())
            : settleFailed(scope, writeId, NOT_FOUND, clock()),
        );
      this.#tell(settled, "a lost answer was looked up");
    } catch (error) {
      if (!isOfTheCrm(error)) throw error;
      logger.warn({ tenantId, writeId, err: error }, "a look-up failed; the next one is planned");
    }
  }

  /**
   * By the notes of a page that a sync writes in this transaction: what a look-up does not find because its record was
   * merged into another is found there, and without a request.
   */
  async settleSynced(copy: CopyScope, notes: readonly CrmNote[]): Promise<void> {
    const settled = await settleSeen(copy, firstOfEachReference(notes), this.parts.clock());
    for (const receipt of settled) this.#tell(receipt, "a lost answer was found among the synced notes");
  }

  #tell({ tenantId, id, state }: NoteWriteRow, how: string): void {
    this.parts.metrics?.crmWrites.inc({ kind: "note", state });
    this.parts.logger.info({ tenantId, writeId: id, state }, how);
  }

  #apiOf(tenantId: number, copyId: number): CrmApi {
    const { http, crmBaseUrl, tokensOf, purseOf } = this.parts;
    const purse = purseOf?.(tenantId, copyId);
    return new CrmApi({ http, baseUrl: crmBaseUrl, tokens: tokensOf(tenantId, copyId), purse });
  }

  /** null where there is nothing to look up, or nobody to ask: then a sweep comes back to it. */
  async #plan(scope: TenantScope, writeId: string) {
    const { tenantId, rows, entities } = scope;
    const [found] = await entities<NoteWriteRow, { looking_copy_id: number }>(
      NoteWriteRow,
      `SELECT w.*, s.id AS looking_copy_id FROM note_write w ${WHILE_CONNECTED}
       WHERE w.tenant_id = $1 AND w.id = $2 AND w.state = 'UNKNOWN' FOR UPDATE OF w`,
      [tenantId, writeId],
    );
    if (!found) return null;
    const { looking_copy_id: copyId, ...receipt } = found;
    const now = this.parts.clock();
    const next = nextLookUp(receipt.sentAt ?? now, now, receipt.lookUps + 1);
    await rows("UPDATE note_write SET look_ups = look_ups + 1, next_look_up_at = $3 WHERE tenant_id = $1 AND id = $2", [
      tenantId,
      writeId,
      next,
    ]);
    if (next) await enqueueLookUp(scope, writeId, next);
    return { copyId, receipt };
  }
}

/** Every note on the target. Somebody may have copied ours by hand: the first with its reference is it. */
async function search(
  api: CrmApi,
  { entity, targetId, reference }: NoteWriteRow,
): Promise<{ note: CrmNote | null; complete: boolean }> {
  let note: CrmNote | null = null;
  let complete = true;
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof api.notesOf>> = await api.notesOf({ entity, id: targetId }, { cursor });
    // Newest first, so that the last one found is the first one made.
    note = page.records.findLast((found) => referenceOf(found) === reference) ?? note;
    complete &&= page.rejected.length === 0;
    cursor = page.next;
  } while (cursor !== null);
  return { note, complete };
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
