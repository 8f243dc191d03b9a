import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import type { MatchedEntity } from "./meeting";
import { OfTenant, TenantRow } from "./tenant";

const FIELD_MAPPING_HEALTHS = ["OK", "MISSING_IN_CRM", "TYPE_CHANGED", "NOT_WRITABLE", "UNKNOWN"] as const;
export type FieldMappingHealth = (typeof FIELD_MAPPING_HEALTHS)[number];

/** The one custom field of an entity that the service may write. It is the tenant's, and holds for one CRM company. */
@Entity("field_mapping")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "field_mapping_tenant_fkey" })
@Check("field_mapping_entity", "entity IN ('DEAL', 'PERSON', 'ORGANIZATION')")
@Check("field_mapping_health", "health IN ('OK', 'MISSING_IN_CRM', 'TYPE_CHANGED', 'NOT_WRITABLE', 'UNKNOWN')")
export class FieldMappingRow extends OfTenant {
  @PrimaryColumn("text")
  entity!: MatchedEntity;

  @Column("bigint")
  crmCompanyId!: number;

  @Column("text")
  fieldKey!: string;

  /** The field's type when it was nominated. */
  @Column("text")
  nominatedType!: string;

  @Column("text")
  nominatedBy!: string;

  @Column("timestamptz")
  nominatedAt!: Date;

  /** As last seen in the CRM, like the two after it. */
  @Column("text")
  fieldName!: string;

  @Column("text")
  fieldType!: string;

  @Column("jsonb")
  options!: { id: number | string; label: string }[];

  @Column("text")
  health!: FieldMappingHealth;

  /** When the CRM's field list was last read for it. */
  @Column("timestamptz")
  checkedAt!: Date;
}

/** SENDING: the request may be on its way. The other three are what a caller is shown. */
export type StoredWriteState = "SENDING" | "WRITTEN" | "FAILED" | "UNKNOWN";

export type StoredWriteErrorCode =
  | "FIELD_NOT_FOUND"
  | "VALUE_REJECTED"
  | "NOT_APPLIED"
  | "RECORD_NOT_FOUND"
  | "FORBIDDEN"
  | "RATE_LIMITED"
  | "CRM_UNAVAILABLE"
  | "NEEDS_REAUTHORIZATION"
  | "CRM_ACCOUNT_CLOSED"
  | "ANSWER_LOST";

/** What the receipts of all writes hold. They stay when the connection and its copy are gone: they are the customer's proof. */
export abstract class WriteReceipt extends OfTenant {
  @PrimaryColumn("uuid")
  id!: string;

  @Column("text")
  idempotencyKey!: string;

  /** Of what the client sent, whole: the same key with another input is another intent, and refused. */
  @Column("text")
  inputHash!: string;

  /** It may have been deleted. */
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

  /** That deal's update time as the copy knew it when the write was asked for, whoever made it. */
  @Column("timestamptz", { nullable: true })
  dealUpdatedBefore!: Date | null;

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

  /** How often an UNKNOWN write was looked up. */
  @Column("integer", { default: 0 })
  lookUps!: number;

  /** When an UNKNOWN write is looked up next. */
  @Column("timestamptz", { nullable: true })
  nextLookUpAt!: Date | null;
}

/** The receipt of one note. */
@Entity("note_write")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "note_write_tenant_fkey" })
@Index("note_write_idempotency_key", ["tenantId", "idempotencyKey"], { unique: true })
@Index("note_write_reference", ["tenantId", "reference"], { unique: true })
@Index("note_write_by_time", ["tenantId", "requestedAt", "id"])
@Index("note_write_by_user", ["tenantId", "requestedBy", "requestedAt", "id"])
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
}

/** The receipt of one field value; those of one mutation share its idempotency key, in the order sent. */
@Entity("field_write")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "field_write_tenant_fkey" })
@Index("field_write_idempotency_key", ["tenantId", "idempotencyKey", "position"], { unique: true })
@Index("field_write_by_time", ["tenantId", "requestedAt", "id"])
@Index("field_write_by_user", ["tenantId", "requestedBy", "requestedAt", "id"])
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

  /** It says something of a person who was erased while it was looked up: it goes with the settlement. */
  @Column("boolean", { default: false })
  valueGoes!: boolean;
}
