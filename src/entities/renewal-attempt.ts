import { Column, Entity, PrimaryColumn } from "typeorm";

/** A renewal that was begun with the credential of `version` and whose outcome is not known (yet). */
@Entity("renewal_attempt")
export class RenewalAttemptRow {
  @PrimaryColumn("text")
  tenantId!: string;

  @PrimaryColumn("bigint")
  copyId!: number;

  @Column("integer")
  version!: number;

  @Column("timestamptz")
  startedAt!: Date;
}
