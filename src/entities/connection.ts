import { Check, Column, Entity, ForeignKey, PrimaryColumn } from "typeorm";
import { SyncedCopyRow } from "./synced-copy";
import { TenantRow } from "./tenant";

export const CONNECTION_STATES = ["NOT_CONNECTED", "CONNECTED", "NEEDS_REAUTHORIZATION"] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

export const REAUTHORIZATION_REASONS = ["GRANT_REVOKED", "RENEWAL_UNCONFIRMED", "IDENTITY_CHANGED"] as const;
export type ReauthorizationReason = (typeof REAUTHORIZATION_REASONS)[number];

/** What keeps a connected CRM from working for a time. */
export const TROUBLE_CODES = [
  "CRM_UNAVAILABLE",
  "RATE_LIMITED",
  "BUDGET_LOW",
  "CRM_REFUSED",
  "CRM_ACCOUNT_CLOSED",
  "CRM_ANSWER_UNREADABLE",
  "SERVICE_MISCONFIGURED",
] as const;
export type TroubleCode = (typeof TROUBLE_CODES)[number];

/** The tenant's one CRM connection and its state. */
@Entity("connection")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "connection_tenant_fkey" })
@ForeignKey(() => SyncedCopyRow, ["tenantId", "copyId"], ["tenantId", "id"], { name: "connection_copy_fkey" })
@Check("connection_state", "state IN ('NOT_CONNECTED', 'CONNECTED', 'NEEDS_REAUTHORIZATION')")
@Check(
  "connection_reauthorization_reason",
  "reauthorization_reason IN ('GRANT_REVOKED', 'RENEWAL_UNCONFIRMED', 'IDENTITY_CHANGED')",
)
@Check(
  "connection_trouble_whole",
  "num_nulls(trouble_code, trouble_message, trouble_since, trouble_last_seen_at) IN (0, 4)",
)
@Check("connection_has_copy", "(state = 'NOT_CONNECTED') = (copy_id IS NULL)")
export class ConnectionRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @Column("text")
  state!: ConnectionState;

  /** null before anyone connected. */
  @Column("timestamptz", { nullable: true })
  stateChangedAt!: Date | null;

  @Column("bigint", { nullable: true })
  copyId!: number | null;

  @Column("text", { nullable: true })
  boundEmail!: string | null;

  @Column("text", { nullable: true })
  boundUserName!: string | null;

  @Column("text", { nullable: true })
  companyName!: string | null;

  @Column("text", { nullable: true })
  companyDomain!: string | null;

  @Column("timestamptz", { nullable: true })
  connectedAt!: Date | null;

  @Column("text", { nullable: true })
  reauthorizationReason!: ReauthorizationReason | null;

  @Column("text", { nullable: true })
  troubleCode!: TroubleCode | null;

  @Column("text", { nullable: true })
  troubleMessage!: string | null;

  @Column("timestamptz", { nullable: true })
  troubleSince!: Date | null;

  @Column("timestamptz", { nullable: true })
  troubleLastSeenAt!: Date | null;

  /** When the schedule runs next; null where runs are only made by request. */
  @Column("timestamptz", { nullable: true })
  nextSyncAt!: Date | null;
}
