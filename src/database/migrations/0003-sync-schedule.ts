import type { MigrationInterface, QueryRunner } from "typeorm";

/** When a connection is synced next, and what a reconciling walk has not seen yet. */
const up = `
ALTER TABLE connection ADD COLUMN next_sync_at timestamptz;
ALTER TABLE sync_step ADD COLUMN walk integer NOT NULL DEFAULT 1;

CREATE TABLE absent_record (
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  crm_id bigint NOT NULL,
  CONSTRAINT absent_record_pkey PRIMARY KEY (copy_id, resource, crm_id)
);
`;

const down = `
DROP TABLE absent_record;
ALTER TABLE sync_step DROP COLUMN walk;
ALTER TABLE connection DROP COLUMN next_sync_at;
`;

export class SyncSchedule1763660000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
