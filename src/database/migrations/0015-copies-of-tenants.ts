import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * A copy is of one tenant. Without knowing that, PostgreSQL takes "of this tenant and of this copy" for a condition that
 * hardly any row meets, and reads all meetings of a tenant where it wants one. Takes effect with the next ANALYZE.
 */
const TABLES = ["meeting_match", "matched_record", "sync_run", "note_write", "field_write"];

const up = TABLES.map(
  (table) =>
    `CREATE STATISTICS ${table}_copy_of_tenant (dependencies) ON tenant_id, copy_id FROM ${table}; ANALYZE ${table};`,
).join("\n");
const down = TABLES.map((table) => `DROP STATISTICS ${table}_copy_of_tenant;`).join("\n");

export class CopiesOfTenants1763780000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
