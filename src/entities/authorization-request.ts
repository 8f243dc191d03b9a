import { Column, Entity, ForeignKey, PrimaryColumn } from "typeorm";
import { TenantRow } from "./tenant";

/** A consent that was started: its state is stored only as a SHA-256 hash. */
@Entity("authorization_request")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "authorization_request_tenant_fkey" })
export class AuthorizationRequestRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @PrimaryColumn("bytea")
  stateHash!: Buffer;

  @Column("text")
  userId!: string;

  @Column("timestamptz")
  expiresAt!: Date;

  /** Set while it is being completed; one that is stored, or voided by a disconnect, is gone. */
  @Column("timestamptz", { nullable: true })
  usedAt!: Date | null;
}
