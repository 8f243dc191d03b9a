import type { MigrationInterface, QueryRunner } from "typeorm";

/** Deals by their newest change: the order in which lists show them (`briefing/lists/deal-list.ts` has the same text). */
const up = `
CREATE INDEX deal_by_update
  ON deal (copy_id, coalesce(update_time, '0001-01-01 00:00:00+00'::timestamptz), crm_id);
`;

export class Lists1763710000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP INDEX deal_by_update");
  }
}
