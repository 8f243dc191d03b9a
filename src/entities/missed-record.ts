import { Column, Entity } from "typeorm";
import { OfListedRecord } from "./of-list";

/** A matched record that the CRM did not show when it was asked for by its id. */
@Entity("missed_record")
export class MissedRecordRow extends OfListedRecord {
  @Column("timestamptz")
  missedAt!: Date;
}
