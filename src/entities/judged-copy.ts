import { Column, Entity, PrimaryColumn } from "typeorm";

/** By what all stored schedules of a copy's deals were judged, and every answer is. */
@Entity("judged_copy")
export class JudgedCopyRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  /** In which days of silence are counted. */
  @Column("text")
  timeZone!: string;

  /** The version of the rules. */
  @Column("integer")
  rules!: number;
}
