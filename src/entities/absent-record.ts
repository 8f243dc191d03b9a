import { Entity, PrimaryColumn } from "typeorm";
import type { SyncResource } from "./sync-run";

/** A record of the copy that the walk of a reconciling run has not seen so far. */
@Entity("absent_record")
export class AbsentRecordRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("text")
  resource!: SyncResource;

  @PrimaryColumn("bigint")
  crmId!: number;
}
