import type { FieldWriteRow } from "../entities/field-write";
import type { NoteWriteRow } from "../entities/note-write";
import type { CrmEntity } from "../schema/crm-entity";
import {
  FieldWrite,
  NoteWrite,
  type WriteError,
  type WriteErrorCode,
  type WriteLinks,
  WriteState,
} from "../schema/writeback";
import type { OfCompany, WrittenRow } from "../writeback/write-history";
import { encodeId } from "./global-id";

type Receipt = (NoteWriteRow | FieldWriteRow) & OfCompany;

/** One whose answer is still awaited may or may not be in the CRM: to a client that is UNKNOWN. */
const stateOf = ({ state }: Receipt): WriteState => (state === "SENDING" ? WriteState.UNKNOWN : WriteState[state]);

const errorOf = ({ errorCode, errorMessage }: Receipt): WriteError | null =>
  errorCode && { code: errorCode as WriteErrorCode, message: errorMessage ?? "" };

const linksOf = (row: Receipt): WriteLinks => ({
  meeting: row.meetingId,
  entity: row.entity as CrmEntity,
  target: row.of_present_company ? row.targetId : null,
});

export const presentNoteWrite = (row: NoteWriteRow & OfCompany): NoteWrite =>
  Object.assign(new NoteWrite(), {
    id: encodeId("NoteWrite", row.id),
    entity: row.entity as CrmEntity,
    state: stateOf(row),
    crmNoteId: row.crmNoteId === null ? null : String(row.crmNoteId),
    reference: row.reference,
    error: errorOf(row),
    requestedAt: row.requestedAt,
    requestedBy: row.requestedBy,
    settledAt: row.settledAt,
    links: linksOf(row),
  });

export const presentFieldWrite = (row: FieldWriteRow & OfCompany): FieldWrite =>
  Object.assign(new FieldWrite(), {
    id: encodeId("FieldWrite", row.id),
    entity: row.entity as CrmEntity,
    fieldKey: row.fieldKey,
    state: stateOf(row),
    error: errorOf(row),
    requestedAt: row.requestedAt,
    requestedBy: row.requestedBy,
    settledAt: row.settledAt,
    links: linksOf(row),
  });

export const presentWrite = (write: WrittenRow): NoteWrite | FieldWrite =>
  write.kind === "NOTE" ? presentNoteWrite(write.row) : presentFieldWrite(write.row);
