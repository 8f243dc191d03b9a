import { Column, Entity, Index, PrimaryGeneratedColumn } from "typeorm";

/** Who a tenant is: the id that leads the key of all its rows, and what the identity provider calls it. */
@Entity("tenant")
@Index("tenant_external_id", ["externalId"], { unique: true })
export class TenantRow {
  @PrimaryGeneratedColumn("identity", { type: "bigint", generatedIdentity: "ALWAYS" })
  id!: number;

  @Column("text")
  externalId!: string;
}
