import { Column, Entity, PrimaryColumn } from "typeorm";

@Entity("pipeline")
export class PipelineRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  crmId!: number;

  @Column("text")
  name!: string;

  @Column("integer")
  position!: number;
}

@Entity("stage")
export class StageRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  crmId!: number;

  @Column("text")
  name!: string;

  @Column("integer")
  position!: number;

  @Column("bigint", { nullable: true })
  pipelineId!: number | null;

  @Column("integer", { nullable: true })
  daysToRotten!: number | null;
}
