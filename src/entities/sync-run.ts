import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from "typeorm";
import { OfTenant, TenantRow } from "./tenant";

export const SYNC_KINDS = ["FULL", "INCREMENTAL", "RECONCILE"] as const;
export type SyncKind = (typeof SYNC_KINDS)[number];

export const SYNC_STATES = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
export type SyncState = (typeof SYNC_STATES)[number];

/** In the order in which a run takes them. */
export const SYNC_RESOURCES = [
  "USERS",
  "PIPELINES",
  "STAGES",
  "ORGANIZATIONS",
  "PERSONS",
  "DEALS",
  "ACTIVITIES",
  "NOTES",
  "DEAL_PARTICIPANTS",
] as const;
export type SyncResource = (typeof SYNC_RESOURCES)[number];

export const SYNC_ERROR_CODES = [
  "RATE_LIMITED",
  "CRM_UNAVAILABLE",
  "CRM_REFUSED",
  "CRM_ACCOUNT_CLOSED",
  "CRM_ANSWER_UNREADABLE",
  "NEEDS_REAUTHORIZATION",
  "BUDGET_LOW",
  "INTERNAL",
] as const;
export type SyncErrorCode = (typeof SYNC_ERROR_CODES)[number];

const GAP_CODES = [
  "NOT_READ_YET",
  "RATE_LIMITED",
  "CRM_UNAVAILABLE",
  "CRM_REFUSED",
  "CRM_ANSWER_UNREADABLE",
  "RECORD_NOT_FOUND",
  "NOT_SHOWN",
  "RECORDS_UNREADABLE",
] as const;
export type GapCode = (typeof GAP_CODES)[number];

/** Something that an answer lacks, or that a run lacked when it ended. Instants are RFC 3339 text, because runs keep theirs as JSON. */
export interface GapSummary {
  resource: SyncResource;
  code: GapCode;
  count: number;
  since: string;
  message: string;
  /** By when it will be read at the present pace; null where that is not known. */
  expectedBy: string | null;
}

/** One sync. */
@Entity("sync_run")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "sync_run_tenant_fkey" })
@Index("sync_run_one_open", ["tenantId"], { unique: true, where: "state IN ('QUEUED', 'RUNNING')" })
@Index("sync_run_by_time", ["tenantId", "queuedAt", "id"])
@Index("sync_run_by_state", ["tenantId", "copyId", "state", "queuedAt"])
@Index("sync_run_by_age", ["queuedAt"])
@Index("sync_run_by_end", ["tenantId", "finishedAt"])
@Index("sync_run_to_rematch", ["tenantId", "copyId"], { where: "NOT rematched" })
@Check("sync_run_kind", "kind IN ('FULL', 'INCREMENTAL', 'RECONCILE')")
@Check("sync_run_state", "state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')")
export class SyncRunRow extends OfTenant {
  @PrimaryColumn("uuid")
  id!: string;

  @Column("bigint")
  copyId!: number;

  @Column("text")
  kind!: SyncKind;

  @Column("text")
  state!: SyncState;

  @Column("timestamptz")
  queuedAt!: Date;

  @Column("timestamptz", { nullable: true })
  startedAt!: Date | null;

  @Column("timestamptz", { nullable: true })
  finishedAt!: Date | null;

  @Column("uuid", { nullable: true })
  leaseId!: string | null;

  @Column("timestamptz", { nullable: true })
  leaseUntil!: Date | null;

  @Column("text", { nullable: true })
  errorCode!: SyncErrorCode | null;

  @Column("text", { nullable: true })
  errorMessage!: string | null;

  @Column("jsonb", { default: [] })
  gaps!: GapSummary[];

  /** Of lists that it has no step for, records: looks at single ones, as before a meeting. And answers on which matches wait. */
  @Column("integer", { default: 0 })
  writtenBeside!: number;

  @Column("integer", { default: 0 })
  removedBeside!: number;

  /** Meetings were matched again since it ended. By run and not by instant: those are of clocks of which one may be a year ahead. */
  @Column("boolean", { default: false })
  rematched!: boolean;
}

/** What a run did for one resource. */
@Entity("sync_step")
@ForeignKey(() => SyncRunRow, ["tenantId", "runId"], ["tenantId", "id"], {
  name: "sync_step_run_fkey",
  onDelete: "CASCADE",
})
@Check("sync_step_state", "state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')")
export class SyncStepRow extends OfTenant {
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

/** A way through the tenant's meetings, and where it stands: it is gone in turns. */
export interface Rematch {
  /** The ended runs that it covers. */
  runs: string[];
  /** Of the meetings that begin after this; null: of all, as none was matched to the copy yet, or to a part of it only that is whole by now. */
  since: string | null;
  /** Every list that a match is made of was read to its end. */
  isWhole: boolean;
  /** Records are gone that meetings may be matched to. */
  isLess: boolean;
  /** How many meetings have been looked at, of how many, and for how many it failed. */
  done: number;
  total: number;
  failed: number;
  /** The last that was looked at: a meeting, or behind them all a record that may be gone. */
  place: { startsAt: string; id: string } | { entity: string; id: number } | null;
  /** All have been gone through, and for some it failed: it waits for the next run's end, or they are gone through again, and each change is told. */
  again?: "WAITS" | "GOES_ON";
}
