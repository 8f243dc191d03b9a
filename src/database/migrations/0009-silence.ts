import type { MigrationInterface, QueryRunner } from "typeorm";

/** What is asked when a deal's silence is judged: its meetings, and whether anybody carries a mail time. */
const up = `
CREATE INDEX meeting_match_by_deal ON meeting_match (tenant_id, copy_id, deal_id);
CREATE INDEX person_with_mail ON person (copy_id)
  WHERE last_incoming_mail_time IS NOT NULL OR last_outgoing_mail_time IS NOT NULL;
`;

const down = `
DROP INDEX person_with_mail;
DROP INDEX meeting_match_by_deal;
`;

export class Silence1763720000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
