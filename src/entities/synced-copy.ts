import { Check, Column, Entity, ForeignKey, Generated, Index, PrimaryColumn } from "typeorm";
import { TenantRow } from "./tenant";

/** Our copy of one CRM user's view of one CRM company. */
@Entity("synced_copy")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "synced_copy_tenant_fkey" })
@Index("synced_copy_one_live", ["tenantId"], { unique: true, where: "state = 'LIVE'" })
@Check("synced_copy_state", "state IN ('LIVE', 'RETIRED')")
export class SyncedCopyRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  @Generated("increment")
  id!: number;

  @Column("bigint")
  crmCompanyId!: number;

  @Column("bigint")
  crmUserId!: number;

  /** That user's, as the CRM named it last. */
  @Column("text", { default: "UTC" })
  timeZone!: string;

  @Column("text")
  state!: "LIVE" | "RETIRED";

  @Column("timestamptz")
  createdAt!: Date;

  /** Up to which ended run the tenant's meetings have been matched against this copy; null: not yet. */
  @Column("timestamptz", { nullable: true })
  rematchedAt!: Date | null;

  /** While meetings are matched again: how many have been looked at, and of how many; null: none are. */
  @Column("integer", { nullable: true })
  rematchDone!: number | null;

  @Column("integer", { nullable: true })
  rematchTotal!: number | null;

  /** When the last day's part of the matched records was asked for by their ids; null: not yet. */
  @Column("timestamptz", { nullable: true })
  probedAt!: Date | null;

  /** Up to which the present round of that has come: resource and id; null: between two rounds. */
  @Column("text", { nullable: true })
  probeCursor!: string | null;

  /** When participants were last asked again in turn; null: not yet. */
  @Column("timestamptz", { nullable: true })
  askedAgainAt!: Date | null;

  /** Deals whose one participant the CRM named and that was the deal's person. */
  @Column("integer", { default: 0 })
  loneParticipantsConfirmed!: number;

  /** Once somebody else was: from then on every deal is asked. */
  @Column("boolean", { default: false })
  loneParticipantsRefuted!: boolean;
}
