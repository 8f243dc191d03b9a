import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Row policies on every table, forced on its owner too. A session sees the tenant that the tenant door set it to
 * (`crm.tenant`); synced rows belong to their copy's tenant. Work that begins without a tenant sets `crm.every_tenant`.
 * A session that was set to nothing sees nothing. A later table needs the same two statements and policy.
 */
const up = `
DO $$
DECLARE t record;
BEGIN
  FOR t IN
    SELECT c.table_name AS name, bool_or(c.column_name = 'tenant_id') AS of_tenant
    FROM information_schema.columns c
    WHERE c.table_schema = 'public' AND c.column_name IN ('tenant_id', 'copy_id')
    GROUP BY c.table_name
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t.name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t.name);
    EXECUTE format(
      'CREATE POLICY of_tenant ON %I USING (%s OR current_setting(''crm.every_tenant'', true) = ''on'')',
      t.name,
      CASE WHEN t.of_tenant THEN 'tenant_id = current_setting(''crm.tenant'', true)'
      ELSE 'copy_id = ANY (ARRAY(SELECT c.id FROM synced_copy c WHERE c.tenant_id = current_setting(''crm.tenant'', true)))'
      END);
  END LOOP;
END $$;
`;

const down = `
DO $$
DECLARE t record;
BEGIN
  FOR t IN SELECT tablename AS name FROM pg_policies WHERE schemaname = 'public' AND policyname = 'of_tenant' LOOP
    EXECUTE format('DROP POLICY of_tenant ON %I', t.name);
    EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', t.name);
    EXECUTE format('ALTER TABLE %I DISABLE ROW LEVEL SECURITY', t.name);
  END LOOP;
END $$;
`;

export class RowPolicies1763740000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
