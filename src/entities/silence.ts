import { Check, Column, Entity, Index, PrimaryColumn } from "typeorm";
import type { DealRow } from "./deal";
import type { OwnThreshold } from "./tenant";
import { OfCopy } from "./tenant";

/** One for each order of a list within all deals, a pipeline, a stage or an owner's. */
function ListIndexes(row: new () => object): void {
  for (const within of ["all", "pipeline", "stage", "owner"])
    for (const by of ["update", "value", "silence"])
      Index(`deal_silence_${within}_by_${by}`, { synchronize: false })(row);
}

/**
 * A phase of a deal's schedule of silence: what is judged from when to when, if nothing happens. The first one holds since
 * ever and the last one for ever, so that each instant has exactly one. With it stands what lists of deals filter and sort by,
 * so that each finds its page by one index (decision 0082).
 */
@Entity("deal_silence")
@Index("deal_silence_due", ["tenantId", "copyId", "holdsUntil"], { where: "is_listed" })
@Index("deal_silence_ahead", ["tenantId", "copyId", "holdsFrom"], { where: "is_listed" })
@ListIndexes
@Index("deal_silence_untold", ["holdsFrom"], { where: "NOT is_told" })
@Check("deal_silence_verdict", "verdict IN ('ACTIVE', 'COOLING', 'QUIET', 'GHOSTED')")
export class DealSilenceRow extends OfCopy {
  @PrimaryColumn("bigint")
  dealId!: number;

  /** Of schedules by other standards: answers count by the one that the copy holds. */
  @PrimaryColumn("integer")
  generation!: number;

  @PrimaryColumn("integer")
  phase!: number;

  @Column("timestamptz")
  holdsFrom!: Date;

  @Column("timestamptz")
  holdsUntil!: Date;

  @Column("text")
  verdict!: "ACTIVE" | "COOLING" | "QUIET" | "GHOSTED";

  @Column("timestamptz", { nullable: true })
  quietSince!: Date | null;

  /** Whoever watches was told that this verdict follows the one before, or it is none that follows another. */
  @Column("boolean")
  isTold!: boolean;

  /** The phase that holds; where its time is over, the one that was last known to. Of each schedule of a matched deal one; lists read that of the held one. */
  @Column("boolean")
  isListed!: boolean;

  /** What of the deal's own row it was judged by: a change of anything else leaves the schedule as it is. */
  @Column("text")
  judgedAs!: string;

  /** What of other records it was judged by, with the first phase: reasons need it, and to look it up takes longer than to judge. */
  @Column("json", { nullable: true })
  ofOthers!: object | null;

  @Column("text")
  status!: DealRow["status"];

  @Column("bigint", { nullable: true })
  pipelineId!: number | null;

  @Column("bigint", { nullable: true })
  stageId!: number | null;

  @Column("bigint", { nullable: true })
  ownerId!: number | null;

  /** The deal's last change in the CRM; the year 1 where that is not known. */
  @Column("timestamptz")
  changedAt!: Date;

  /** Behind every currency where a half of the money is missing. */
  @Column({ type: "text", collation: "C" })
  currency!: string;

  /** The next one as a bigint, as near as that comes: an index can compare it under row policies. */
  @Column("bigint")
  valueRank!: number;

  /** Exact decimal text: the highest value first. */
  @Column("numeric")
  negativeValue!: string;
}

/** The standards that deals are judged by. */
export interface Standards {
  /** The version of the rules. */
  version: number;
  /** In which days of silence are counted. */
  timeZone: string;
  businessDays: boolean;
  twoWayTypes: string[];
  thresholds: OwnThreshold[];
  /** The CRM's days until deals rot, by the ids of those stages in which they do. None are kept of a copy that was judged before they were. */
  rotting?: Record<string, number>;
}

/** By what the held schedules of a copy's deals were judged, and every answer is. */
@Entity("judged_copy")
@Index("judged_copy_walked", { synchronize: false })
export class JudgedCopyRow extends OfCopy {
  @Column("jsonb")
  standards!: Standards;

  /** The generation of schedules that is held. */
  @Column("integer", { default: 0 })
  generation!: number;

  /** By what the deals are being judged anew, into the next generation; null: by nothing else. */
  @Column("jsonb", { nullable: true })
  coming!: Standards | null;

  /**
   * How far a walk through the deals has come: up to this one they are judged by what is coming or, where nothing is, rid of
   * other generations than the held one. Null: none is under way.
   */
  @Column("bigint", { nullable: true })
  walkedTo!: number | null;

  @Column("integer", { default: 0 })
  comingDone!: number;

  @Column("integer", { default: 0 })
  comingTotal!: number;
}
