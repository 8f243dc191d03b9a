import { Column, Entity, PrimaryColumn } from "typeorm";

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
