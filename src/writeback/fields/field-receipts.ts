import { randomUUID } from "node:crypto";
import type { TenantScope } from "../../database/database";
import { enqueueJob, type JobKind } from "../../database/jobs";
import { FieldWriteRow } from "../../entities/field-write";
import type { StoredWriteState } from "../../entities/write-outcome";
import { WRITE_REF, type WriteRef } from "../unsettled";
import { sentenceOf } from "../write-failure";
import type { FieldsIntent } from "./field-input";
import type { FieldsPlan, PlannedField } from "./field-plan";
import { nextLook } from "./look-plan";
import type { FieldOutcome } from "./record-batch";

export const FIELD_LOOK_UP: JobKind<WriteRef> = {
  name: "field_look_up",
  payload: WRITE_REF,
  subjectOf: ({ writeId }) => writeId,
};

/** The receipts of one mutation, in the order sent; none where the key is new. */
export function findReceipts({ tenantId, typed }: TenantScope, idempotencyKey: string): Promise<FieldWriteRow[]> {
  return typed((orm) => orm.find(FieldWriteRow, { where: { tenantId, idempotencyKey }, order: { position: "ASC" } }));
}

export interface NewReceipts extends FieldsPlan {
  intent: FieldsIntent;
  requestedBy: string;
  requestedAt: Date;
}

/** Receipts in state SENDING, or FAILED for what is not to be sent; null where the key has some by now. */
export async function insertReceipts(scope: TenantScope, made: NewReceipts): Promise<FieldWriteRow[] | null> {
  const receipts: FieldWriteRow[] = [];
  for (const [position, field] of made.fields.entries()) {
    const receipt = await insertReceipt(scope, made, field, position);
    // The first one is the key's: who has it has them all.
    if (!receipt) return null;
    receipts.push(receipt);
  }
  return receipts;
}

async function insertReceipt(
  { tenantId, entities }: TenantScope,
  { held, intent, requestedBy, requestedAt }: NewReceipts,
  { target, key, value, failure }: PlannedField,
  position: number,
): Promise<FieldWriteRow | null> {
  const dealId = target.entity === "DEAL" ? target.id : null;
  const [row] = await entities<FieldWriteRow>(
    FieldWriteRow,
    `INSERT INTO field_write (tenant_id, copy_id, crm_company_id, deal_id, deal_updated_before, id, idempotency_key,
       position, input_hash, meeting_id, entity, target_id, field_key, value, state, error_code, error_message,
       requested_by, requested_at, sent_at, settled_at)
     SELECT $1, $2, $3, $4::bigint, (SELECT d.update_time FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = $4), $5, $6, $7, $8, $9, $10, $11, $12, $13::jsonb, $14, $15, $16,
       $17, $18::timestamptz, $19::timestamptz, $19::timestamptz
     ON CONFLICT (tenant_id, idempotency_key, position) DO NOTHING RETURNING *`,
    [
      ...[tenantId, held.copyId, held.crmCompanyId, dealId, randomUUID(), intent.idempotencyKey, position],
      ...[intent.inputHash, held.meetingId, target.entity, target.id, key, JSON.stringify(value)],
      ...[failure ? "FAILED" : "SENDING", failure?.code ?? null, failure && sentenceOf(failure)],
      ...[requestedBy, requestedAt, failure && requestedAt],
    ],
  );
  return row ?? null;
}

const LOOKED_AT =
  "The CRM's answer was lost, so the value may or may not be there. The record is read again to find out, and nothing " +
  "is sent; while the CRM is disconnected or needs re-authorization, that waits for the same company.";

/** Notes what became of a value; an UNKNOWN one is looked at later. @returns what the receipt is now */
export async function settle(scope: TenantScope, id: string, outcome: FieldOutcome, now: Date): Promise<FieldWriteRow> {
  if (outcome.state === "UNKNOWN") return leaveUnknown(scope, id, now);
  const failure = outcome.state === "FAILED" ? outcome.failure : null;
  return update(scope, id, ["SENDING", "UNKNOWN"], {
    ...{ state: outcome.state, errorCode: failure?.code ?? null, errorMessage: failure && sentenceOf(failure) },
    ...{ sentAt: now, settledAt: now },
  });
}

export async function leaveUnknown(scope: TenantScope, id: string, now: Date): Promise<FieldWriteRow> {
  const left = await update(scope, id, ["SENDING"], {
    ...{ state: "UNKNOWN", errorCode: "ANSWER_LOST", errorMessage: LOOKED_AT, sentAt: now, settledAt: null },
  });
  if (left.state === "UNKNOWN") await enqueueLook(scope, id, nextLook(left.sentAt ?? now, now));
  return left;
}

export function enqueueLook(scope: TenantScope, writeId: string, runAt: Date): Promise<void> {
  return enqueueJob(scope, FIELD_LOOK_UP, { tenantId: scope.tenantId, writeId }, runAt);
}

interface Settlement extends Pick<FieldWriteRow, "errorCode" | "errorMessage" | "settledAt"> {
  state: StoredWriteState;
  sentAt: Date;
}

async function update(
  { tenantId, entities, typed }: TenantScope,
  id: string,
  from: readonly StoredWriteState[],
  { state, errorCode, errorMessage, sentAt, settledAt }: Settlement,
): Promise<FieldWriteRow> {
  const [row] = await entities<FieldWriteRow>(
    FieldWriteRow,
    `UPDATE field_write SET state = $3, error_code = $4, error_message = $5, sent_at = coalesce(sent_at, $6),
       settled_at = $7
     WHERE tenant_id = $1 AND id = $2 AND state = ANY ($8) RETURNING *`,
    [tenantId, id, state, errorCode, errorMessage, sentAt, settledAt, from],
  );
  return row ?? typed((orm) => orm.findOneByOrFail(FieldWriteRow, { tenantId, id }));
}
