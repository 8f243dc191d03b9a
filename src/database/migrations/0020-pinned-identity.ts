import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Of which version of a credential `users/me` has shown the identity; a token that was stored before is asked about at its
 * next use. Down, the reason becomes the nearest by a change of type, because row policies hide from an UPDATE what is there.
 */
const up = `
ALTER TABLE credential ADD COLUMN proven_version integer;
ALTER TABLE connection
  DROP CONSTRAINT connection_reauthorization_reason,
  ADD CONSTRAINT connection_reauthorization_reason
    CHECK (reauthorization_reason IN ('GRANT_REVOKED', 'RENEWAL_UNCONFIRMED', 'IDENTITY_CHANGED'));
`;

const down = `
ALTER TABLE connection DROP CONSTRAINT connection_reauthorization_reason;
ALTER TABLE connection ALTER COLUMN reauthorization_reason TYPE text
  USING replace(reauthorization_reason, 'IDENTITY_CHANGED', 'GRANT_REVOKED');
ALTER TABLE connection ADD CONSTRAINT connection_reauthorization_reason
  CHECK (reauthorization_reason IN ('GRANT_REVOKED', 'RENEWAL_UNCONFIRMED'));
ALTER TABLE credential DROP COLUMN proven_version;
`;

export class PinnedIdentity1763830000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
