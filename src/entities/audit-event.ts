import { Check, Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from "typeorm";
import { OfTenant, TenantRow } from "./tenant";

export const AUDIT_ACTIONS = [
  "CONSENT_STARTED",
  "CONSENT_COMPLETED",
  "CONSENT_REJECTED",
  "CONNECTED",
  "REAUTHORIZED",
  "NEEDS_REAUTHORIZATION",
  "DISCONNECTED",
  "FIELD_MAPPING_SET",
  "FIELD_MAPPING_CLEARED",
  "SYNC_REQUESTED",
  "DEAL_CHOSEN",
  "DEAL_SNOOZED",
  "MEETING_DELETED",
  "QUIET_SETTINGS_SET",
  "POLICY_REFUSED",
  "KEYS_ROTATED",
  "PERSON_EXPORTED",
  "PERSON_ERASED",
  "PERSON_KEPT_OUT",
  "PERSON_LET_IN",
  "TENANT_ERASED",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Who did what and what came of it; never a secret, a text or a record. */
@Entity("audit_event")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "audit_event_tenant_fkey" })
@Index("audit_event_by_instant", ["tenantId", "at", "id"])
@Index("audit_event_by_age", ["at"])
@Check("audit_event_action", `action IN (${AUDIT_ACTIONS.map((action) => `'${action}'`).join(", ")})`)
export class AuditEventRow extends OfTenant {
  /** In the order in which events of one instant came. */
  @PrimaryGeneratedColumn("identity", { type: "bigint" })
  id!: number;

  @Column("timestamptz")
  at!: Date;

  @Column("text")
  action!: AuditAction;

  /** Whether it was refused. */
  @Column("boolean")
  refused!: boolean;

  /** The code of a refusal or a reason. */
  @Column("text", { nullable: true })
  code!: string | null;

  /** What it was about: an operation, an entity, or the id of a meeting or run of this service. */
  @Column("text", { nullable: true })
  subject!: string | null;

  /** null: the service by itself. */
  @Column("text", { nullable: true })
  userId!: string | null;

  @Column("text", { nullable: true })
  role!: string | null;
}
