import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * What is missing because a record cannot be read: since when, and of which deal as far as the record says. By a default,
 * because row policies hide from an UPDATE what is there. An id has at most 19 digits; an index could not hold any text.
 */
const up = `
ALTER TABLE rejected_record ADD COLUMN since timestamptz NOT NULL DEFAULT now();
ALTER TABLE rejected_record ALTER COLUMN since DROP DEFAULT;
CREATE INDEX rejected_record_of_deal ON rejected_record (copy_id, resource, left(payload ->> 'deal_id', 20));
`;

const down = `
DROP INDEX rejected_record_of_deal;
ALTER TABLE rejected_record DROP COLUMN since;
`;

export class UnreadRecords1763790000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
