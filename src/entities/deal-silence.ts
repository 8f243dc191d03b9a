import { Check, Column, Entity, Index, PrimaryColumn } from "typeorm";

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
