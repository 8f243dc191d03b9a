import { Column, Entity, PrimaryColumn } from "typeorm";
import type { GapCode, SyncResource } from "./sync-run";

/** Something that the copy lacks now: of one record (`crmId`), or of a whole resource (0). */
@Entity("data_gap")
export class DataGapRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("text")
  resource!: SyncResource;

  @PrimaryColumn("bigint")
  crmId!: number;

  @Column("text")
  code!: GapCode;

  @Column("text")
  message!: string;

  @Column("timestamptz")
  since!: Date;
}
