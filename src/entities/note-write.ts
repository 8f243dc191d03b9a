import { Check, Column, Entity, ForeignKey, Index } from "typeorm";
import { TenantRow } from "./tenant";
import { WriteReceipt } from "./write-receipt";

/** The receipt of one note. */
@Entity("note_write")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "note_write_tenant_fkey" })
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
export class NoteWriteRow extends WriteReceipt {
  /** The visible line by which the note is found again when its answer was lost. */
  @Column("text")
  reference!: string;

  @Column("bigint", { nullable: true })
  crmNoteId!: number | null;

  @Column("integer", { default: 0 })
  lookUps!: number;

  /** When an UNKNOWN write is looked up next. */
  @Column("timestamptz", { nullable: true })
  nextLookUpAt!: Date | null;
}
