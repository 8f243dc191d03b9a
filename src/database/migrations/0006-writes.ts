import type { MigrationInterface, QueryRunner } from "typeorm";

const STATES = "CHECK (state IN ('SENDING', 'WRITTEN', 'FAILED', 'UNKNOWN'))";
const ENTITIES = "CHECK (entity IN ('DEAL', 'PERSON', 'ORGANIZATION'))";

/**
 * Receipts of what was written to the CRM. They name records by CRM company and id, because they outlive the copy that
 * the match was made on; the meeting stays with them. A note's text is not kept: nothing is ever sent again.
 */
const up = `
CREATE TABLE note_write (
  tenant_id text NOT NULL,
  id uuid NOT NULL,
  idempotency_key text NOT NULL,
  input_hash text NOT NULL,
  meeting_id uuid NOT NULL,
  copy_id bigint NOT NULL,
  crm_company_id bigint NOT NULL,
  entity text NOT NULL CONSTRAINT note_write_entity ${ENTITIES},
  target_id bigint NOT NULL,
  deal_id bigint,
  deal_updated_before timestamptz,
  reference text NOT NULL,
  state text NOT NULL CONSTRAINT note_write_state ${STATES},
  crm_note_id bigint,
  error_code text,
  error_message text,
  requested_by text NOT NULL,
  requested_at timestamptz NOT NULL,
  sent_at timestamptz,
  settled_at timestamptz,
  look_ups integer NOT NULL DEFAULT 0,
  next_look_up_at timestamptz,
  CONSTRAINT note_write_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT note_write_meeting_fkey FOREIGN KEY (tenant_id, meeting_id) REFERENCES meeting (tenant_id, id),
  CONSTRAINT note_write_written CHECK ((state = 'WRITTEN') = (crm_note_id IS NOT NULL))
);
CREATE UNIQUE INDEX note_write_idempotency_key ON note_write (tenant_id, idempotency_key);
CREATE UNIQUE INDEX note_write_reference ON note_write (tenant_id, reference);
CREATE INDEX note_write_by_time ON note_write (tenant_id, requested_at, id);
CREATE INDEX note_write_by_meeting ON note_write (tenant_id, meeting_id, requested_at, id);
CREATE INDEX note_write_by_deal ON note_write (tenant_id, deal_id, requested_at);
CREATE INDEX note_write_by_note ON note_write (tenant_id, crm_note_id);
CREATE INDEX note_write_unsettled ON note_write (tenant_id, id) WHERE state IN ('SENDING', 'UNKNOWN');

CREATE TABLE field_write (
  tenant_id text NOT NULL,
  id uuid NOT NULL,
  idempotency_key text NOT NULL,
  position integer NOT NULL,
  input_hash text NOT NULL,
  meeting_id uuid NOT NULL,
  copy_id bigint NOT NULL,
  crm_company_id bigint NOT NULL,
  entity text NOT NULL CONSTRAINT field_write_entity ${ENTITIES},
  target_id bigint NOT NULL,
  deal_id bigint,
  deal_updated_before timestamptz,
  field_key text NOT NULL,
  value jsonb,
  state text NOT NULL CONSTRAINT field_write_state ${STATES},
  error_code text,
  error_message text,
  requested_by text NOT NULL,
  requested_at timestamptz NOT NULL,
  sent_at timestamptz,
  settled_at timestamptz,
  CONSTRAINT field_write_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT field_write_meeting_fkey FOREIGN KEY (tenant_id, meeting_id) REFERENCES meeting (tenant_id, id)
);
CREATE UNIQUE INDEX field_write_idempotency_key ON field_write (tenant_id, idempotency_key, position);
CREATE INDEX field_write_by_time ON field_write (tenant_id, requested_at, id);
CREATE INDEX field_write_by_meeting ON field_write (tenant_id, meeting_id, requested_at, id);
CREATE INDEX field_write_by_deal ON field_write (tenant_id, deal_id, requested_at);
CREATE INDEX field_write_unsettled ON field_write (tenant_id, id) WHERE state IN ('SENDING', 'UNKNOWN');
`;

export class Writes1763690000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query("DROP TABLE field_write");
    await runner.query("DROP TABLE note_write");
  }
}
