import { Column, Entity, Index, PrimaryColumn } from "typeorm";

@Entity("note")
@Index("note_by_deal", ["tenantId", "copyId", "dealId", "addTime"])
@Index("note_by_person", ["tenantId", "copyId", "personId", "addTime"])
@Index("note_by_organization", ["tenantId", "copyId", "organizationId", "addTime"])
export class NoteRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  crmId!: number;

  /** HTML as the CRM holds it: never shown unsanitized. */
  @Column("text")
  content!: string;

  @Column("bigint", { nullable: true })
  authorId!: number | null;

  @Column("bigint", { nullable: true })
  dealId!: number | null;

  @Column("bigint", { nullable: true })
  personId!: number | null;

  @Column("bigint", { nullable: true })
  organizationId!: number | null;

  @Column("timestamptz")
  addTime!: Date;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;
}
