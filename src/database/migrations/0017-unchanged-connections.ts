import type { MigrationInterface, QueryRunner } from "typeorm";

/** A connection's row is locked before anyone has connected, and its state has never changed then. */
const up = "ALTER TABLE connection ALTER COLUMN state_changed_at DROP NOT NULL";

const down = `
ALTER TABLE connection ALTER COLUMN state_changed_at TYPE timestamptz USING coalesce(state_changed_at, now());
ALTER TABLE connection ALTER COLUMN state_changed_at SET NOT NULL;
`;

export class UnchangedConnections1763800000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
