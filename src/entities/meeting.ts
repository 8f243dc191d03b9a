import { Column, Entity, Index, PrimaryColumn } from "typeorm";

@Entity("meeting")
@Index("meeting_external_id", ["tenantId", "externalId"], { unique: true })
@Index("meeting_by_start", ["tenantId", "startsAt", "id"])
export class MeetingRow {
  @PrimaryColumn("text")
  tenantId!: string;

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
}
