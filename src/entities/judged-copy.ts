import { Column, Entity, Index, PrimaryColumn } from "typeorm";
import type { OwnThreshold } from "./quiet-settings";

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
