import { randomUUID } from "node:crypto";
import type { ObjectType } from "typeorm";
import { z } from "zod";
import { notifyOf, WRITE_SETTLED } from "../database/between-processes";
import type { TenantScope } from "../database/database";
import { enqueueJob, type JobKind } from "../database/jobs";
import { FieldWriteRow, NoteWriteRow, type StoredWriteState, type WriteReceipt } from "../entities/writeback";
import { DAY_MS, SECOND_MS } from "../platform/clock";
import { ServiceError } from "../platform/errors";
import { LOOKS_BEFORE_PROOF, pauseBefore, sentenceOf, type WriteFailure, type WriteOutcome } from "./outcomes";
import type { MeetingTargets, Target } from "./targets";

/** `lookUps`: of a look, how many came before it. */
const WRITE_REF = z.object({ tenantId: z.number(), writeId: z.uuid(), lookUps: z.int().optional() });
export type WriteRef = z.infer<typeof WRITE_REF>;

const lookUpJob = (name: string): JobKind<WriteRef> => ({
  name,
  payload: WRITE_REF,
  subjectOf: ({ writeId }) => writeId,
});

/** What differs between the receipts of notes and those of field values; all else is one way for both. */
export interface WriteKind<Row extends WriteReceipt> {
  /** As metrics have it. */
  name: "note" | "field";
  /** As the audit has it. */
  operation: "writeNote" | "writeFields";
  table: "note_write" | "field_write";
  row: ObjectType<Row>;
  /** The columns of this kind alone, as SQL; a new receipt has their values in this order. */
  ownColumns: string;
  /** The columns that hold one receipt for each write of an idempotency key, as SQL. */
  oneForEach: string;
  lookUpJob: JobKind<WriteRef>;
  /** After the last look that could be made within this after the sending, or else the first one later, there is none. */
  lookedForMs: number;
  /** What a receipt says while it is UNKNOWN. */
  lookedFor: string;
  /** From where it becomes WRITTEN, besides SENDING. */
  writtenFrom: readonly StoredWriteState[];
}

export const NOTE: WriteKind<NoteWriteRow> = {
  name: "note",
  operation: "writeNote",
  table: "note_write",
  row: NoteWriteRow,
  ownColumns: "reference",
  oneForEach: "tenant_id, idempotency_key",
  lookUpJob: lookUpJob("note_look_up"),
  // What a day of looks could not settle none will: from then on only a synced note can, and nobody's tokens are spent.
  lookedForMs: DAY_MS,
  lookedFor:
    "The CRM's answer was lost, so the note may or may not be there. It is looked for in the CRM by its last line for " +
    "a day at least, then among the notes that syncs read, and never sent again; while the CRM is disconnected or needs re-authorization, that waits for the same company.",
  // A note that was seen is there, whatever was thought before.
  writtenFrom: ["UNKNOWN", "FAILED"],
};

export const FIELD: WriteKind<FieldWriteRow> = {
  name: "field",
  operation: "writeFields",
  table: "field_write",
  row: FieldWriteRow,
  ownColumns: "position, field_key, value",
  oneForEach: "tenant_id, idempotency_key, position",
  lookUpJob: lookUpJob("field_look_up"),
  // A record that can be read settles it. One that nobody was shown for a week will hardly be there again, and no sync settles a value.
  lookedForMs: 7 * DAY_MS,
  lookedFor:
    "The CRM's answer was lost, so the value may or may not be there. The record is read again to find out, and nothing " +
    "is sent; while the CRM is disconnected or needs re-authorization, that waits for the same company.",
  writtenFrom: ["UNKNOWN"],
};

/** The tenant was erased meanwhile, with its receipts. */
export class ReceiptGoneError extends ServiceError {
  readonly code = "RECEIPT_GONE";
}

/** The receipts of an idempotency key, in the order sent; none where the key is new. */
export function findReceipts<Row extends WriteReceipt>(
  { tenantId, entities }: TenantScope,
  { row, table, oneForEach }: WriteKind<Row>,
  idempotencyKey: string,
): Promise<Row[]> {
  const sql = `SELECT * FROM ${table} WHERE tenant_id = $1 AND idempotency_key = $2 ORDER BY ${oneForEach}`;
  return entities(row, sql, [tenantId, idempotencyKey]);
}

/** What all receipts of one call share. */
export interface NewReceipts {
  held: MeetingTargets;
  idempotencyKey: string;
  inputHash: string;
  requestedBy: string;
  requestedAt: Date;
}

export interface NewReceipt {
  target: Target;
  /** Why it is not to be sent; null: it is. */
  failure: WriteFailure | null;
  /** Values of the kind's own columns. */
  own: readonly unknown[];
}

/**
 * Receipts in state SENDING, or FAILED for what is not to be sent.
 * @returns the key's receipts, and whether they are these: only who has made them may send
 */
export async function makeReceipts<Row extends WriteReceipt>(
  scope: TenantScope,
  kind: WriteKind<Row>,
  shared: NewReceipts,
  each: readonly NewReceipt[],
): Promise<{ receipts: Row[]; areOurs: boolean }> {
  const receipts: Row[] = [];
  for (const one of each) {
    const receipt = await insertReceipt(scope, kind, shared, one);
    // The first one is the key's: who has it has them all.
    if (!receipt) {
      const theirs = await findReceipts(scope, kind, shared.idempotencyKey);
      if (theirs.length === 0) throw new Error("a receipt that stood in the way is missing");
      return { receipts: theirs, areOurs: false };
    }
    receipts.push(receipt);
  }
  return { receipts, areOurs: true };
}

/** null where the key has one by now, whoever made it. Made at the same moment it may be met by its reference first, so no index is named. */
async function insertReceipt<Row extends WriteReceipt>(
  { tenantId, entities }: TenantScope,
  { row, table, ownColumns }: WriteKind<Row>,
  { held, idempotencyKey, inputHash, requestedBy, requestedAt }: NewReceipts,
  { target, failure, own }: NewReceipt,
): Promise<Row | null> {
  const dealId = target.entity === "DEAL" ? target.id : null;
  const of = [tenantId, held.copyId, held.crmCompanyId, dealId, randomUUID(), idempotencyKey, inputHash];
  const on = [held.meetingId, target.entity, target.id];
  const state = [failure ? "FAILED" : "SENDING", failure?.code ?? null, failure && sentenceOf(failure)];
  const shared = [of, on, state, requestedBy, requestedAt, failure && requestedAt].flat();
  const ownParameters = own.map((_, position) => `$${shared.length + position + 1}`).join(", ");
  const [made] = await entities(
    row,
    `INSERT INTO ${table} (tenant_id, copy_id, crm_company_id, deal_id, deal_updated_before, id, idempotency_key,
       input_hash, meeting_id, entity, target_id, state, error_code, error_message, requested_by, requested_at,
       sent_at, settled_at, ${ownColumns})
     SELECT $1, $2, $3, $4::bigint, (SELECT d.update_time FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = $4),
       $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::timestamptz, $16::timestamptz, $16::timestamptz, ${ownParameters}
     ON CONFLICT DO NOTHING RETURNING *`,
    [...shared, ...own],
  );
  return made ?? null;
}

/** Nobody gives an answer up sooner, to ask by the key. What takes longer is told, and whoever still waits hears it twice. */
const ANSWERED_WITHIN_MS = 2 * SECOND_MS;

/**
 * The only settlement: notes what became of a write, where that is not known yet. One that is UNKNOWN is looked up later,
 * and never sent; who asked for it is told when it becomes known.
 * @returns what the receipt is now
 */
export async function settle<Row extends WriteReceipt>(
  scope: TenantScope,
  kind: WriteKind<Row>,
  id: string,
  outcome: WriteOutcome,
  now: Date,
): Promise<Row> {
  const { tenantId, entities } = scope;
  const { state } = outcome;
  const isUnknown = state === "UNKNOWN";
  const failure = state === "FAILED" ? outcome.failure : null;
  const code = isUnknown ? "ANSWER_LOST" : (failure?.code ?? null);
  const message = isUnknown ? kind.lookedFor : failure && sentenceOf(failure);
  const nextLookUpAt = isUnknown ? new Date(now.getTime() + pauseBefore(0)) : null;
  const settledAt = isUnknown ? null : now;
  const crmNoteId = state === "WRITTEN" ? (outcome.crmNoteId ?? null) : null;
  const isNote = kind.table === "note_write";
  const changeFrom = (from: readonly StoredWriteState[]) =>
    entities(
      kind.row,
      `UPDATE ${kind.table} SET state = $3, error_code = $4, error_message = $5, sent_at = coalesce(sent_at, $6),
         settled_at = $7, next_look_up_at = $8, ${isNote ? "crm_note_id = $10" : VALUE}
       WHERE tenant_id = $1 AND id = $2 AND state = ANY ($9) RETURNING *`,
      [tenantId, id, state, code, message, now, settledAt, nextLookUpAt, from, ...(isNote ? [crmNoteId] : [])],
    );
  let [changed] = await changeFrom(["SENDING"]);
  // From SENDING, whoever sent it is answered; later, or where it may have been shown as UNKNOWN, who asked for it is told.
  let isTold = changed !== undefined && now.getTime() >= changed.requestedAt.getTime() + ANSWERED_WITHIN_MS;
  if (!changed && !isUnknown) {
    [changed] = await changeFrom(state === "WRITTEN" ? kind.writtenFrom : ["UNKNOWN"]);
    isTold = changed !== undefined;
  }
  if (isTold && !isUnknown) await notifyOf(scope, WRITE_SETTLED, [id]);
  const [receipt] = changed
    ? [changed]
    : await entities(kind.row, `SELECT * FROM ${kind.table} WHERE tenant_id = $1 AND id = $2`, [tenantId, id]);
  if (!receipt) throw new ReceiptGoneError(`Receipt ${id} was made and is not there.`);
  if (changed && isUnknown) await enqueueLookUp(scope, kind, { writeId: id, lookUps: receipt.lookUps }, pauseBefore(0));
  return receipt;
}

/** $7: when it was settled. */
const VALUE = "value = CASE WHEN value_goes AND $7::timestamptz IS NOT NULL THEN NULL ELSE value END";

export function enqueueLookUp<Row extends WriteReceipt>(
  scope: TenantScope,
  { lookUpJob }: WriteKind<Row>,
  { writeId, lookUps }: Omit<WriteRef, "tenantId">,
  waitMs = 0,
): Promise<void> {
  const place = (lookUps ?? 0) > LOOKS_BEFORE_PROOF ? "LATE" : "IN_TURN"; // Asked in vain more often, a CRM may take half a minute each time.
  return enqueueJob(scope, lookUpJob, { tenantId: scope.tenantId, writeId, lookUps }, waitMs, place);
}
