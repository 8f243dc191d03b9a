import { Column, Entity, Index } from "typeorm";
import { OfRecord } from "./tenant";

@Entity("organization")
@Index("organization_by_website_domain", ["tenantId", "copyId", "websiteDomain"])
export class OrganizationRow extends OfRecord {
  @Column("text")
  name!: string;

  @Column("bigint", { nullable: true })
  ownerId!: number | null;

  @Column("text", { nullable: true })
  address!: string | null;

  @Column("text", { nullable: true })
  website!: string | null;

  /** The company's domain in `website`. */
  @Column("text", { nullable: true })
  websiteDomain!: string | null;

  @Column("timestamptz", { nullable: true })
  addTime!: Date | null;

  @Column("timestamptz", { nullable: true })
  updateTime!: Date | null;

  @Column("jsonb")
  customFields!: Record<string, unknown>;
}
