import { Column, Entity, ForeignKey, PrimaryColumn } from "typeorm";
import { TenantRow } from "./tenant";

/** A renewal that was begun with the credential of `version` and whose outcome is not known (yet). */
@Entity("renewal_attempt")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "renewal_attempt_tenant_fkey" })
export class RenewalAttemptRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bigint")
  copyId!: number;

  @Column("integer")
  version!: number;

  @Column("timestamptz")
  startedAt!: Date;
}
