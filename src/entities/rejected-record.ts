import { Column, Entity, Index, PrimaryColumn } from "typeorm";
import { OfList } from "./of-list";

/** A record that could not be read, kept aside with the reason. */
@Entity("rejected_record")
@Index("rejected_record_of_deal", { synchronize: false })
export class RejectedRecordRow extends OfList {
  @PrimaryColumn("text")
  recordKey!: string;

  @Column("text")
  reason!: string;

  @Column("jsonb")
  payload!: unknown;

  /** When the CRM first showed it in a form that cannot be read. */
  @Column("timestamptz")
  since!: Date;

  @Column("timestamptz")
  seenAt!: Date;
}
