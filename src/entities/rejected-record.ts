import { Column, Entity, PrimaryColumn } from "typeorm";
import type { SyncResource } from "./sync-run";

/** A record that could not be read, kept aside with the reason. */
@Entity("rejected_record")
export class RejectedRecordRow {
  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("text")
  resource!: SyncResource;

  @PrimaryColumn("text")
  recordKey!: string;

  @Column("text")
  reason!: string;

  @Column("jsonb")
  payload!: unknown;

  @Column("timestamptz")
  seenAt!: Date;
}
