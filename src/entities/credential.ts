import { Column, Entity, ForeignKey, PrimaryColumn } from "typeorm";
import { SyncedCopyRow } from "./synced-copy";

/** The sealed token pair of a connection, apart from it so that no reader of a connection meets it. */
@Entity("credential")
@ForeignKey(() => SyncedCopyRow, ["tenantId", "copyId"], ["tenantId", "id"], { name: "credential_copy_fkey" })
export class CredentialRow {
  @PrimaryColumn("bigint")
  tenantId!: number;

  @Column("bigint")
  copyId!: number;

  @Column("integer")
  version!: number;

  /** The version whose access token the CRM has shown to be the bound user's: the present one, or the token is not used. */
  @Column("integer", { nullable: true })
  provenVersion!: number | null;

  @Column("bytea")
  accessToken!: Buffer;

  @Column("bytea")
  refreshToken!: Buffer;

  @Column("timestamptz")
  accessTokenAskedAt!: Date;

  /** When it was last tried to renew it for no other reason than that the CRM forgets what nobody uses. */
  @Column("timestamptz", { nullable: true })
  keptAliveAt!: Date | null;
}
