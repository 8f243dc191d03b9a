import type { MigrationInterface, QueryRunner } from "typeorm";

/** Why a connection needs re-authorization, what troubles it for now, and renewals whose outcome is not known yet. */
const up = `
ALTER TABLE connection
  ADD COLUMN reauthorization_reason text
    CONSTRAINT connection_reauthorization_reason CHECK (reauthorization_reason IN ('GRANT_REVOKED', 'RENEWAL_UNCONFIRMED')),
  ADD COLUMN trouble_code text,
  ADD COLUMN trouble_message text,
  ADD COLUMN trouble_since timestamptz,
  ADD COLUMN trouble_last_seen_at timestamptz,
  ADD CONSTRAINT connection_trouble_whole CHECK (
    num_nulls(trouble_code, trouble_message, trouble_since, trouble_last_seen_at) IN (0, 4)
  );

CREATE TABLE renewal_attempt (
  tenant_id text NOT NULL,
  copy_id bigint NOT NULL,
  version integer NOT NULL,
  started_at timestamptz NOT NULL,
  CONSTRAINT renewal_attempt_pkey PRIMARY KEY (tenant_id, copy_id)
);
`;

const down = `
DROP TABLE renewal_attempt;
ALTER TABLE connection
  DROP CONSTRAINT connection_trouble_whole,
  DROP COLUMN trouble_last_seen_at,
  DROP COLUMN trouble_since,
  DROP COLUMN trouble_message,
  DROP COLUMN trouble_code,
  DROP COLUMN reauthorization_reason;
`;

export class ConnectionLife1763650000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(down);
  }
}
