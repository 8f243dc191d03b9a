import { Column, Entity, Index } from "typeorm";
import { OfRecord } from "./tenant";

@Entity("activity")
@Index("activity_by_deal", ["tenantId", "copyId", "dealId", "happenedAt"])
@Index("activity_by_person", ["tenantId", "copyId", "personId", "happenedAt"])
@Index("activity_by_organization", ["tenantId", "copyId", "organizationId", "happenedAt"])
export class ActivityRow extends OfRecord {
  @Column("text")
  subject!: string;

  @Column("text")
  type!: string;

  @Column("bigint", { nullable: true })
  ownerId!: number | null;

  @Column("bigint", { nullable: true })
  dealId!: number | null;

  @Column("bigint", { nullable: true })
  personId!: number | null;

  @Column("bigint", { nullable: true })
  organizationId!: number | null;

  @Column("bigint", { array: true })
  participantIds!: number[];

  /** With a time of day where the CRM has one, else the start of the day in UTC. */
  @Column("timestamptz", { nullable: true })
  dueAt!: Date | null;

  @Column("boolean")
  dueHasTime!: boolean;

  @Column("boolean")
  done!: boolean;

  @Column("timestamptz", { nullable: true })
  doneAt!: Date | null;

  /** When a done activity took place: due, else done, else added; null while it is not done. */
  @Column("timestamptz", { nullable: true })
  happenedAt!: Date | null;

  @Column("timestamptz", { nullable: true })
  addTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;
}
