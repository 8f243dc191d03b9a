import { Check, Column, Entity, ForeignKey, PrimaryColumn } from "typeorm";
import { SyncResource, SyncRunRow, SyncState } from "./sync-run";

/** What a run did for one resource. */
@Entity("sync_step")
@ForeignKey(() => SyncRunRow, ["tenantId", "runId"], ["tenantId", "id"], {
  name: "sync_step_run_fkey",
  onDelete: "CASCADE",
})
@Check("sync_step_state", "state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')")
export class SyncStepRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("uuid")
  runId!: string;

  @PrimaryColumn("text")
  resource!: SyncResource;

  @Column("text")
  state!: SyncState;

  /** The updated_since that it was asked with; null where it was read whole. */
  @Column("timestamptz", { nullable: true })
  updatedSince!: Date | null;

  /** How many records are to come, as far as it is known when the step begins. */
  @Column("integer", { nullable: true })
  expected!: number | null;

  @Column("integer", { default: 0 })
  requests!: number;

  @Column("integer", { default: 0 })
  fetched!: number;

  @Column("integer", { default: 0 })
  written!: number;

  @Column("integer", { default: 0 })
  unchanged!: number;

  @Column("integer", { default: 0 })
  removed!: number;

  @Column("integer", { default: 0 })
  rejected!: number;
}
