import type { MigrationInterface, QueryRunner } from "typeorm";

/** One nominated custom field an entity, of one CRM company, with what the CRM's field list last said of it. */
const up = `
CREATE TABLE field_mapping (
  tenant_id text NOT NULL,
  entity text NOT NULL CONSTRAINT field_mapping_entity CHECK (entity IN ('DEAL', 'PERSON', 'ORGANIZATION')),
  crm_company_id bigint NOT NULL,
  field_key text NOT NULL,
  nominated_type text NOT NULL,
  nominated_by text NOT NULL,
  nominated_at timestamptz NOT NULL,
  field_name text NOT NULL,
  field_type text NOT NULL,
  options jsonb NOT NULL,
  health text NOT NULL
    CONSTRAINT field_mapping_health CHECK (health IN ('OK', 'MISSING_IN_CRM', 'TYPE_CHANGED', 'UNKNOWN')),
  checked_at timestamptz NOT NULL,
  CONSTRAINT field_mapping_pkey PRIMARY KEY (tenant_id, entity)
);
`;

export class FieldMappings1763700000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE field_mapping");
  }
}
