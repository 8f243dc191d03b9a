import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import type { MatchedEntity } from "./matched-record";
import { MeetingRow } from "./meeting";
import type { StoredWriteErrorCode, StoredWriteState } from "./write-outcome";

/** The receipt of one field value; those of one mutation share its idempotency key, in the order sent. */
@Entity("field_write")
@ForeignKey(() => MeetingRow, ["tenantId", "meetingId"], ["tenantId", "id"], { name: "field_write_meeting_fkey" })
@Index("field_write_idempotency_key", ["tenantId", "idempotencyKey", "position"], { unique: true })
@Index("field_write_by_time", ["tenantId", "requestedAt", "id"])
@Index("field_write_by_meeting", ["tenantId", "meetingId", "requestedAt", "id"])
@Index("field_write_by_deal", ["tenantId", "dealId", "requestedAt"])
@Index("field_write_unsettled", ["tenantId", "id"], { where: "state IN ('SENDING', 'UNKNOWN')" })
@Check("field_write_entity", "entity IN ('DEAL', 'PERSON', 'ORGANIZATION')")
@Check("field_write_state", "state IN ('SENDING', 'WRITTEN', 'FAILED', 'UNKNOWN')")
export class FieldWriteRow {
  @PrimaryColumn("text")
  tenantId!: string;

  @PrimaryColumn("uuid")
  id!: string;

  @Column("text")
  idempotencyKey!: string;

  @Column("integer")
  position!: number;

  /** Of the whole mutation's input. */
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

  @Column("text")
  fieldKey!: string;

  /** As it is sent; null clears the field. */
  @Column("jsonb", { nullable: true })
  value!: unknown;

  @Column("text")
  state!: StoredWriteState;

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
}
