import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import type { MatchedEntity } from "./matched-record";
import { MeetingRow } from "./meeting";
import type { StoredWriteErrorCode, StoredWriteState } from "./write-outcome";

/** The receipt of one note. It stays when the connection and its copy are gone: it is the customer's proof. */
@Entity("note_write")
@ForeignKey(() => MeetingRow, ["tenantId", "meetingId"], ["tenantId", "id"], { name: "note_write_meeting_fkey" })
@Index("note_write_idempotency_key", ["tenantId", "idempotencyKey"], { unique: true })
@Index("note_write_reference", ["tenantId", "reference"], { unique: true })
@Index("note_write_by_time", ["tenantId", "requestedAt", "id"])
@Index("note_write_by_meeting", ["tenantId", "meetingId", "requestedAt", "id"])
@Index("note_write_by_deal", ["tenantId", "dealId", "requestedAt"])
@Index("note_write_by_note", ["tenantId", "crmNoteId"])
@Index("note_write_unsettled", ["tenantId", "id"], { where: "state IN ('SENDING', 'UNKNOWN')" })
@Check("note_write_entity", "entity IN ('DEAL', 'PERSON', 'ORGANIZATION')")
@Check("note_write_state", "state IN ('SENDING', 'WRITTEN', 'FAILED', 'UNKNOWN')")
@Check("note_write_written", "(state = 'WRITTEN') = (crm_note_id IS NOT NULL)")
export class NoteWriteRow {
  @PrimaryColumn("text")
  tenantId!: string;

  @PrimaryColumn("uuid")
  id!: string;

  @Column("text")
  idempotencyKey!: string;

  /** Of what the client sent: the same key with another input is another intent, and refused. */
  @Column("text")
  inputHash!: string;

  @Column("uuid")
  meetingId!: string;

  /** The copy that the match was made on; it may be gone. */
  @Column("bigint")
  copyId!: number;

  @Column("bigint")
  crmCompanyId!: number;

  @Column("text")
  entity!: MatchedEntity;

  @Column("bigint")
  targetId!: number;

  /** The deal whose update time the write moves; null where it is on a person or organization. */
  @Column("bigint", { nullable: true })
  dealId!: number | null;

  /** That deal's update time before this write and those of ours before it. */
  @Column("timestamptz", { nullable: true })
  dealUpdatedBefore!: Date | null;

  /** The visible line by which the note is found again when its answer was lost. */
  @Column("text")
  reference!: string;

  @Column("text")
  state!: StoredWriteState;

  @Column("bigint", { nullable: true })
  crmNoteId!: number | null;

  @Column("text", { nullable: true })
  errorCode!: StoredWriteErrorCode | null;

  @Column("text", { nullable: true })
  errorMessage!: string | null;

  @Column("text")
  requestedBy!: string;

  @Column("timestamptz")
  requestedAt!: Date;

  /** When the sending ended, with or without an answer; null while it goes on, and after a crash. */
  @Column("timestamptz", { nullable: true })
  sentAt!: Date | null;

  @Column("timestamptz", { nullable: true })
  settledAt!: Date | null;

  @Column("integer", { default: 0 })
  lookUps!: number;

  /** When an UNKNOWN write is looked up next. */
  @Column("timestamptz", { nullable: true })
  nextLookUpAt!: Date | null;
}
