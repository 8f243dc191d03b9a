import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * The operator's switch, and what became of it: a row without an end is a stop that holds. It is nobody's data, so
 * every session may read it; only one that works for every tenant may change it. No key: a stop that two operators
 * begin at once is two rows, and the next resume ends both.
 */
const up = `
CREATE TABLE crm_stop (
  begun_at timestamptz NOT NULL,
  reason text NOT NULL,
  ended_at timestamptz
);
ALTER TABLE crm_stop ENABLE ROW LEVEL SECURITY;
ALTER TABLE crm_stop FORCE ROW LEVEL SECURITY;
CREATE POLICY of_nobody ON crm_stop FOR SELECT USING (true);
CREATE POLICY of_the_operator ON crm_stop USING (current_setting('crm.every_tenant', true) = 'on');
`;

export class CrmStop1763770000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE crm_stop");
  }
}
