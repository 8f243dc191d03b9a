import { Check, Column, Entity, Index, PrimaryColumn } from "typeorm";
import type { OwnThreshold } from "./tenant";

/**
 * A phase of a deal's schedule of silence: what is judged from when to when, if nothing happens. The first one holds since
 * ever and the last one for ever, so that each instant has exactly one.
 */
@Entity("deal_silence")
@Index("deal_silence_by_since", { synchronize: false })
@Index("deal_silence_quiet", { synchronize: false })
@Index("deal_silence_untold", ["holdsFrom"], { where: "NOT is_told" })
@Check("deal_silence_verdict", "verdict IN ('ACTIVE', 'COOLING', 'QUIET', 'GHOSTED')")
export class DealSilenceRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  dealId!: number;

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
}

/** What deals are judged by. */
export interface Standards {
  /** The version of the rules. */
  version: number;
  /** In which days of silence are counted. */
  timeZone: string;
  businessDays: boolean;
  twoWayTypes: string[];
  thresholds: OwnThreshold[];
}

/** By what all stored schedules of a copy's deals were judged, and every answer is. */
@Entity("judged_copy")
@Index("judged_copy_coming", { synchronize: false })
export class JudgedCopyRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @Column("jsonb")
  standards!: Standards;

  /** By what the deals are being judged anew; null: by nothing else. */
  @Column("jsonb", { nullable: true })
  coming!: Standards | null;

  /** Deals up to this one are judged by what is coming. */
  @Column("bigint", { default: 0 })
  comingAfter!: number;

  @Column("integer", { default: 0 })
  comingDone!: number;

  @Column("integer", { default: 0 })
  comingTotal!: number;
}

/**
 * A deal's schedule by the standards that are coming, while a copy is judged anew; none where it says the same as the one
 * that stands.
 */
@Entity("coming_silence")
export class ComingSilenceRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @PrimaryColumn("bigint")
  dealId!: number;

  /** As `deal_silence` will have them. */
  @Column("jsonb")
  phases!: object[];
}
