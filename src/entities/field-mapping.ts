import { Check, Column, Entity, ForeignKey, PrimaryColumn } from "typeorm";
import type { MatchedEntity } from "./meeting";
import { OfTenant, TenantRow } from "./tenant";

export const FIELD_MAPPING_HEALTHS = ["OK", "MISSING_IN_CRM", "TYPE_CHANGED", "UNKNOWN"] as const;
export type FieldMappingHealth = (typeof FIELD_MAPPING_HEALTHS)[number];

/** The one custom field of an entity that the service may write. It is the tenant's, and holds for one CRM company. */
@Entity("field_mapping")
@ForeignKey(() => TenantRow, ["tenantId"], ["id"], { name: "field_mapping_tenant_fkey" })
@Check("field_mapping_entity", "entity IN ('DEAL', 'PERSON', 'ORGANIZATION')")
@Check("field_mapping_health", "health IN ('OK', 'MISSING_IN_CRM', 'TYPE_CHANGED', 'UNKNOWN')")
export class FieldMappingRow extends OfTenant {
  @PrimaryColumn("text")
  entity!: MatchedEntity;

  @Column("bigint")
  crmCompanyId!: number;

  @Column("text")
  fieldKey!: string;

  /** The field's type when it was nominated. */
  @Column("text")
  nominatedType!: string;

  @Column("text")
  nominatedBy!: string;

  @Column("timestamptz")
  nominatedAt!: Date;

  /** As last seen in the CRM, like the two after it. */
  @Column("text")
  fieldName!: string;

  @Column("text")
  fieldType!: string;

  @Column("jsonb")
  options!: { id: number | string; label: string }[];

  @Column("text")
  health!: FieldMappingHealth;

  /** When the CRM's field list was last read for it. */
  @Column("timestamptz")
  checkedAt!: Date;
}
