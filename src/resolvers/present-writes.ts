import type { FieldWriteRow, NoteWriteRow, WriteReceipt } from "../entities/write-receipt";
import { CrmEntity } from "../schema/crm-entity";
import { FieldWrite, NoteWrite, WriteErrorCode, WriteState } from "../schema/writeback";
import type { OfCompany } from "../writeback/receipts";
import type { WrittenRow } from "../writeback/write-history";
import { encodeId } from "./global-id";

type Receipt = WriteReceipt & OfCompany;

/** What receipts of both kinds show. One whose answer is still awaited may or may not be in the CRM: it is UNKNOWN. */
const receiptOf = (row: Receipt) => ({
  entity: CrmEntity[row.entity],
  state: row.state === "SENDING" ? WriteState.UNKNOWN : WriteState[row.state],
  error: row.errorCode && { code: WriteErrorCode[row.errorCode], message: row.errorMessage ?? "" },
  requestedAt: row.requestedAt,
  requestedBy: row.requestedBy,
  settledAt: row.settledAt,
  links: {
    meeting: row.meetingId,
    entity: CrmEntity[row.entity],
    target: row.of_present_company ? row.targetId : null,
  },
});

export const presentNoteWrite = (row: NoteWriteRow & OfCompany): NoteWrite =>
  Object.assign(new NoteWrite(), {
    id: encodeId("NoteWrite", row.id),
    ...receiptOf(row),
    crmNoteId: row.crmNoteId === null ? null : String(row.crmNoteId),
    reference: row.reference,
  });

export const presentFieldWrite = (row: FieldWriteRow & OfCompany): FieldWrite =>
  Object.assign(new FieldWrite(), { id: encodeId("FieldWrite", row.id), ...receiptOf(row), fieldKey: row.fieldKey });

export const presentWrite = (write: WrittenRow): NoteWrite | FieldWrite =>
  write.kind === "NOTE" ? presentNoteWrite(write.row) : presentFieldWrite(write.row);
