import { Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import { TenantRow } from "./tenant";

@Entity("meeting")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "meeting_tenant_fkey" })
@Index("meeting_external_id", ["tenantId", "externalId"], { unique: true })
@Index("meeting_by_start", ["tenantId", "startsAt", "id"])
@Index("meeting_taking_place", ["tenantId", "startsAt", "id"], { where: "cancelled_at IS NULL" })
@Index("meeting_by_owner", { synchronize: false })
@Index("meeting_to_refresh", ["startsAt"], { where: "refreshed_at IS NULL" })
export class MeetingRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("uuid")
  id!: string;

  @Column("text")
  externalId!: string;

  @Column("text")
  title!: string;

  @Column("timestamptz")
  startsAt!: Date;

  @Column("timestamptz", { nullable: true })
  endsAt!: Date | null;

  @Column("text")
  ownerEmail!: string;

  @Column("text")
  recordedBy!: string;

  @Column("timestamptz")
  recordedAt!: Date;

  /** When it was said that it does not take place; recording it again revives it. */
  @Column("timestamptz", { nullable: true })
  cancelledAt!: Date | null;

  /** When what it is about was last brought up to date for its sake, as it begins soon; null: not yet. */
  @Column("timestamptz", { nullable: true })
  refreshedAt!: Date | null;
}
