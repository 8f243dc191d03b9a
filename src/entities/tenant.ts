import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";

/** Of a number that is drawn, as the schema builder reads it back. */
export const DRAWN = { default: () => "(floor((random() * '140737488355328')))" };

/** Of an id that is the microsecond at which it was given, and chance: a count would be one over all tenants. */
const GIVEN_IN_TURN = {
  default: () =>
    "(encode((int8send(((date_part('epoch', clock_timestamp()) * (1000000)))) || substr(uuid_send(gen_random_uuid()), 9)), 'hex'))",
};

/** Who a tenant is: the id that leads the key of all its rows, and what the identity provider calls it. */
@Entity("tenant")
@Index("tenant_external_id", ["externalId"], { unique: true })
export class TenantRow {
  @PrimaryColumn("bigint", DRAWN)
  id!: number;

  @Column("text")
  externalId!: string;
}

/** A tenant's row. The row policies compare its id with the one that the session is set to. */
export abstract class OfTenant {
  @PrimaryColumn("bigint")
  tenantId!: number;
}

/** A row of one synced copy. */
export abstract class OfCopy extends OfTenant {
  @PrimaryColumn("bigint")
  copyId!: number;
}

/** A record of the CRM, as one copy holds it. */
export abstract class OfRecord extends OfCopy {
  @PrimaryColumn("bigint")
  crmId!: number;
}

/** The reasons of silence of which a tenant may set the days, or the times of CLOSE_DATE_PUSHED. */
export type ThresholdCode =
  | "NO_RECENT_ACTIVITY"
  | "GHOSTED"
  | "NEVER_REPLIED"
  | "NO_NEXT_STEP"
  | "NEXT_STEP_OVERDUE"
  | "STALLED_IN_STAGE"
  | "CLOSE_DATE_PASSED"
  | "CLOSE_DATE_PUSHED";

/** A tenant's own days for a reason of silence. */
export interface OwnThreshold {
  /** Of all deals, of those of a pipeline, or of those in a stage. */
  scope: "ALL" | "PIPELINE" | "STAGE";
  /** The pipeline or stage; 0 for all. */
  crmId: number;
  code: ThresholdCode;
  days: number;
}

/** How a tenant wants silence to be judged. It is the tenant's, and outlives its connections. */
@Entity("quiet_settings")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "quiet_settings_tenant_fkey" })
export class QuietSettingsRow extends OfTenant {
  /** Whose pipelines and stages are meant: with another company's copy those thresholds mean nothing. */
  @Column("bigint")
  crmCompanyId!: number;

  /** null: that of the user who authorized. */
  @Column("text", { nullable: true })
  timeZone!: string | null;

  @Column("boolean")
  businessDays!: boolean;

  /** Kinds of activities in which the buyer has a part, beside the CRM's own. */
  @Column("text", { array: true })
  twoWayTypes!: string[];

  @Column("jsonb")
  thresholds!: OwnThreshold[];

  @Column("text")
  setBy!: string;

  @Column("timestamptz")
  setAt!: Date;
}

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
  "MEETING_CANCELLED",
  "MEETING_DELETED",
  "QUIET_SETTINGS_SET",
  "POLICY_REFUSED",
  "KEYS_ROTATED",
  "CRM_PROBED",
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
  @PrimaryColumn("uuid", GIVEN_IN_TURN)
  id!: string;

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

  /** Of what was changed: a key, a number of the CRM, or settings as JSON. null: nothing. */
  @Column("text", { nullable: true })
  was!: string | null;

  @Column("text", { nullable: true })
  became!: string | null;
}

/** The tenant's own key, by which addresses that are kept out are known, sealed under the keys of the service. */
@Entity("kept_out_key")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "kept_out_key_tenant_fkey" })
export class KeptOutKeyRow extends OfTenant {
  @Column("bytea")
  sealedKey!: Buffer;
}

/** An address of a person who was erased, and is not to come back: its hash under the tenant's key. */
@Entity("kept_out_address")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "kept_out_address_tenant_fkey" })
@Index("kept_out_address_by_first", ["tenantId", "firstHash"])
export class KeptOutAddressRow extends OfTenant {
  @PrimaryColumn("text")
  hash!: string;

  /** The same for all addresses of one person, who is let in with all of them. */
  @Column("text")
  firstHash!: string;

  @Column("timestamptz")
  since!: Date;
}

/** A person of the CRM who has such an address, and so has no row of his own: what hangs on him is known by this. */
@Entity("kept_out_person")
export class KeptOutPersonRow extends OfRecord {
  @PrimaryColumn("text")
  hash!: string;
}
