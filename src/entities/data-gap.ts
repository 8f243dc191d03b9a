import { Column, Entity } from "typeorm";
import { OfListedRecord } from "./of-list";
import type { GapCode } from "./sync-run";

/** Something that the copy lacks now: of one record (`crmId`), or of a whole resource (0). */
@Entity("data_gap")
export class DataGapRow extends OfListedRecord {
  @Column("text")
  code!: GapCode;

  @Column("text")
  message!: string;

  @Column("timestamptz")
  since!: Date;
}
