import { randomUUID } from "node:crypto";
import { holdLiveCopy } from "../connections/copies";
import type { CrmNote } from "../crm/parsing/records";
import type { CopyScope, TenantScope } from "../database/database";
import { enqueueJob, type JobKind } from "../database/jobs";
import { jsonRows, upsertPage } from "../database/upsert";
import { NOTE_UPSERT, NoteRow, noteRow } from "../entities/note";
import { NoteWriteRow } from "../entities/note-write";
import type { StoredWriteState } from "../entities/write-outcome";
import { nextLookUp } from "./look-up-plan";
import type { NoteIntent } from "./note-input";
import type { MeetingTargets, Target } from "./targets";
import { WRITE_REF, type WriteRef } from "./unsettled";
import { sentenceOf, type WriteFailure } from "./write-failure";

export const NOTE_LOOK_UP: JobKind<WriteRef> = {
  name: "note_look_up",
  payload: WRITE_REF,
  subjectOf: ({ writeId }) => writeId,
};

/** The receipt of an idempotency key; null where the key is new. */
export function findReceipt({ tenantId, typed }: TenantScope, idempotencyKey: string): Promise<NoteWriteRow | null> {
  return typed((orm) => orm.findOneBy(NoteWriteRow, { tenantId, idempotencyKey }));
}

export function readReceipt({ tenantId, typed }: TenantScope, id: string): Promise<NoteWriteRow> {
  return typed((orm) => orm.findOneByOrFail(NoteWriteRow, { tenantId, id }));
}

export interface NewReceipt {
  held: MeetingTargets;
  target: Target;
  intent: NoteIntent;
  requestedBy: string;
  requestedAt: Date;
}

/** A receipt in state SENDING; null where the key has one by now, whoever made it. */
export async function insertReceipt(
  { tenantId, entities }: TenantScope,
  { held, target, intent, requestedBy, requestedAt }: NewReceipt,
): Promise<NoteWriteRow | null> {
  const dealId = target.entity === "DEAL" ? target.id : null;
  const [row] = await entities<NoteWriteRow>(
    NoteWriteRow,
    `INSERT INTO note_write (tenant_id, copy_id, crm_company_id, deal_id, deal_updated_before, id, idempotency_key,
       input_hash, meeting_id, entity, target_id, reference, state, requested_by, requested_at)
     SELECT $1, $2, $3, $4::bigint, (SELECT d.update_time FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = $4), $5, $6, $7, $8, $9, $10, $11, 'SENDING', $12, $13::timestamptz
     ON CONFLICT (tenant_id, idempotency_key) DO NOTHING RETURNING *`,
    [
      ...[tenantId, held.copyId, held.crmCompanyId, dealId, randomUUID(), intent.idempotencyKey, intent.inputHash],
      ...[held.meetingId, target.entity, target.id, intent.reference, requestedBy, requestedAt],
    ],
  );
  return row ?? null;
}

/** The note as the CRM holds it, seen through the connection of a copy; `note` is null where it said only the id. */
export interface SeenNote {
  id: number;
  note: CrmNote | null;
  copyId: number;
}

/** The CRM has the note: that is the truth whatever was thought before, and the tenant's readers see it at once. */
export async function settleWritten(scope: TenantScope, id: string, seen: SeenNote, now: Date): Promise<NoteWriteRow> {
  const settled = await settle(scope, id, ["SENDING", "UNKNOWN", "FAILED"], {
    ...{ state: "WRITTEN", crmNoteId: seen.id, errorCode: null, errorMessage: null },
    ...{ sentAt: now, settledAt: now, nextLookUpAt: null },
  });
  if (seen.note && (await holdLiveCopy(scope, seen.copyId)))
    await copyNote({ ...scope, copyId: seen.copyId }, seen.note);
  return settled;
}

/**
 * Receipts of the copy's company whose note is shown on a page that a sync writes, on whatever record it is by now. One
 * statement, and none where no note carries a reference. What was thought lost for good is corrected too.
 * @param seen the note with each reference
 */
export async function settleSeen(
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

/** The CRM certainly has no such note. */
export function settleFailed(scope: TenantScope, id: string, failure: WriteFailure, now: Date): Promise<NoteWriteRow> {
  return settle(scope, id, ["SENDING", "UNKNOWN"], {
    ...{ state: "FAILED", crmNoteId: null, errorCode: failure.code, errorMessage: sentenceOf(failure) },
    ...{ sentAt: now, settledAt: now, nextLookUpAt: null },
  });
}

/** The answer is lost: from now on the note is only looked for. */
export async function leaveUnknown(scope: TenantScope, id: string, now: Date): Promise<NoteWriteRow> {
  const nextLookUpAt = nextLookUp(now, now, 0);
  const left = await settle(scope, id, ["SENDING"], {
    ...{ state: "UNKNOWN", crmNoteId: null, errorCode: "ANSWER_LOST", errorMessage: LOOKED_FOR },
    ...{ sentAt: now, settledAt: null, nextLookUpAt },
  });
  if (left.state === "UNKNOWN" && nextLookUpAt) await enqueueLookUp(scope, id, nextLookUpAt);
  return left;
}

const LOOKED_FOR =
  "The CRM's answer was lost, so the note may or may not be there. It is looked for in the CRM by its last line for " +
  "a day, then among the notes that syncs read, and never sent again; while the CRM is disconnected or needs re-authorization, that waits for the same company.";

export function enqueueLookUp(scope: TenantScope, writeId: string, runAt: Date): Promise<void> {
  return enqueueJob(scope, NOTE_LOOK_UP, { tenantId: scope.tenantId, writeId }, runAt);
}

interface Settlement {
  state: StoredWriteState;
  crmNoteId: number | null;
  errorCode: NoteWriteRow["errorCode"];
  errorMessage: string | null;
  sentAt: Date;
  settledAt: Date | null;
  nextLookUpAt: Date | null;
}

/** Changes a receipt that is in one of these states, and leaves any other as it is. @returns what it is now */
async function settle(
  scope: TenantScope,
  id: string,
  from: readonly StoredWriteState[],
  to: Settlement,
): Promise<NoteWriteRow> {
  const { tenantId, entities } = scope;
  const [row] = await entities<NoteWriteRow>(
    NoteWriteRow,
    `UPDATE note_write SET state = $3, crm_note_id = $4, error_code = $5, error_message = $6,
       sent_at = coalesce(sent_at, $7), settled_at = $8, next_look_up_at = $9
     WHERE tenant_id = $1 AND id = $2 AND state = ANY ($10) RETURNING *`,
    [
      ...[tenantId, id, to.state, to.crmNoteId, to.errorCode, to.errorMessage],
      ...[to.sentAt, to.settledAt, to.nextLookUpAt, from],
    ],
  );
  return row ?? readReceipt(scope, id);
}

/** As a sync would write it; the newest of both stays. The caller's transaction holds the live copy. */
async function copyNote(copy: CopyScope, note: CrmNote): Promise<void> {
  if (!note.deleted) await upsertPage(copy, NoteRow, [noteRow(note)], NOTE_UPSERT);
}
