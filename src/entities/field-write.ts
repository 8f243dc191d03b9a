import { Check, Column, Entity, ForeignKey, Index } from "typeorm";
import { TenantRow } from "./tenant";
import { WriteReceipt } from "./write-receipt";

/** The receipt of one field value; those of one mutation share its idempotency key, in the order sent. */
@Entity("field_write")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "field_write_tenant_fkey" })
@Index("field_write_idempotency_key", ["tenantId", "idempotencyKey", "position"], { unique: true })
@Index("field_write_by_time", ["tenantId", "requestedAt", "id"])
@Index("field_write_by_meeting", ["tenantId", "meetingId", "requestedAt", "id"])
@Index("field_write_by_deal", ["tenantId", "dealId", "requestedAt"])
@Index("field_write_unsettled", ["tenantId", "id"], { where: "state IN ('SENDING', 'UNKNOWN')" })
@Check("field_write_entity", "entity IN ('DEAL', 'PERSON', 'ORGANIZATION')")
@Check("field_write_state", "state IN ('SENDING', 'WRITTEN', 'FAILED', 'UNKNOWN')")
export class FieldWriteRow extends WriteReceipt {
  @Column("integer")
  position!: number;

  @Column("text")
  fieldKey!: string;

  /** As it is sent; null clears the field. */
  @Column("jsonb", { nullable: true })
  value!: unknown;
}
