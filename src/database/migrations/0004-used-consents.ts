import type { MigrationInterface, QueryRunner } from "typeorm";

/** A consent that is being completed stays until it is stored, so that a disconnect in between can void it. */
export class UsedConsents1763670000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE authorization_request ADD COLUMN used_at timestamptz");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("ALTER TABLE authorization_request DROP COLUMN used_at");
  }
}
