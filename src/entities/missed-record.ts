import { Column, Entity, PrimaryColumn } from "typeorm";
import type { SyncResource } from "./sync-run";

/** A matched record that the CRM did not show when it was asked for by its id. */
@Entity("missed_record")
export class MissedRecordRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("text")
  resource!: SyncResource;

  @PrimaryColumn("bigint")
  crmId!: number;

  @Column("timestamptz")
  missedAt!: Date;
}
