import { Column, Entity, PrimaryColumn } from "typeorm";

@Entity("organization")
export class OrganizationRow {
  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  crmId!: number;

  @Column("text")
  name!: string;

  @Column("bigint", { nullable: true })
  ownerId!: number | null;

  @Column("text", { nullable: true })
  address!: string | null;

  @Column("text", { nullable: true })
  website!: string | null;

  @Column("timestamptz", { nullable: true })
  addTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;

  @Column("jsonb")
  customFields!: Record<string, unknown>;
}
