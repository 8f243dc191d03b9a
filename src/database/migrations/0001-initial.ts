import type { MigrationInterface, QueryRunner } from "typeorm";

/**
 * Synced tables are keyed by (copy_id, crm_id), all others lead with tenant_id, and no key or foreign key crosses the
 * two: each table can be distributed by that first column as it stands. Synced rows therefore have no foreign key to
 * synced_copy; the page transaction locks the copy instead.
 */
const up = `
CREATE TABLE synced_copy (
  tenant_id text NOT NULL,
  id bigserial NOT NULL,
  crm_company_id bigint NOT NULL,
  crm_user_id bigint NOT NULL,
  state text NOT NULL CONSTRAINT synced_copy_state CHECK (state IN ('LIVE', 'RETIRED')),
  created_at timestamptz NOT NULL,
  CONSTRAINT synced_copy_pkey PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX synced_copy_one_live ON synced_copy (tenant_id) WHERE state = 'LIVE';

CREATE TABLE connection (
  tenant_id text NOT NULL,
  state text NOT NULL CONSTRAINT connection_state CHECK (state IN ('NOT_CONNECTED', 'CONNECTED', 'NEEDS_REAUTHORIZATION')),
  state_changed_at timestamptz NOT NULL,
  copy_id bigint,
  bound_email text,
  bound_user_name text,
  company_name text,
  company_domain text,
  connected_at timestamptz,
  CONSTRAINT connection_pkey PRIMARY KEY (tenant_id),
  CONSTRAINT connection_copy_fkey FOREIGN KEY (tenant_id, copy_id) REFERENCES synced_copy (tenant_id, id),
  CONSTRAINT connection_has_copy CHECK ((state = 'NOT_CONNECTED') = (copy_id IS NULL))
);

CREATE TABLE credential (
  tenant_id text NOT NULL,
  copy_id bigint NOT NULL,
  version integer NOT NULL,
  access_token bytea NOT NULL,
  refresh_token bytea NOT NULL,
  access_token_asked_at timestamptz NOT NULL,
  CONSTRAINT credential_pkey PRIMARY KEY (tenant_id),
  CONSTRAINT credential_copy_fkey FOREIGN KEY (tenant_id, copy_id) REFERENCES synced_copy (tenant_id, id)
);

CREATE TABLE authorization_request (
  tenant_id text NOT NULL,
  state_hash bytea NOT NULL,
  user_id text NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT authorization_request_pkey PRIMARY KEY (tenant_id, state_hash)
);

CREATE TABLE sync_run (
  tenant_id text NOT NULL,
  id uuid NOT NULL,
  copy_id bigint NOT NULL,
  kind text NOT NULL CONSTRAINT sync_run_kind CHECK (kind IN ('FULL', 'INCREMENTAL', 'RECONCILE')),
  state text NOT NULL CONSTRAINT sync_run_state CHECK (state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  queued_at timestamptz NOT NULL,
  started_at timestamptz,
  finished_at timestamptz,
  updated_since timestamptz,
  crm_time_at_start timestamptz,
  lease_id uuid,
  lease_until timestamptz,
  error_code text,
  error_message text,
  gaps jsonb NOT NULL DEFAULT '[]',
  CONSTRAINT sync_run_pkey PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX sync_run_one_open ON sync_run (tenant_id) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX sync_run_by_time ON sync_run (tenant_id, queued_at, id);

CREATE TABLE sync_step (
  tenant_id text NOT NULL,
  run_id uuid NOT NULL,
  resource text NOT NULL,
  state text NOT NULL CONSTRAINT sync_step_state CHECK (state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  cursor text,
  expected integer,
  requests integer NOT NULL DEFAULT 0,
  fetched integer NOT NULL DEFAULT 0,
  written integer NOT NULL DEFAULT 0,
  unchanged integer NOT NULL DEFAULT 0,
  removed integer NOT NULL DEFAULT 0,
  rejected integer NOT NULL DEFAULT 0,
  CONSTRAINT sync_step_pkey PRIMARY KEY (tenant_id, run_id, resource),
  CONSTRAINT sync_step_run_fkey FOREIGN KEY (tenant_id, run_id) REFERENCES sync_run (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE data_gap (
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  crm_id bigint NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  since timestamptz NOT NULL,
  CONSTRAINT data_gap_pkey PRIMARY KEY (copy_id, resource, crm_id)
);

CREATE TABLE rejected_record (
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  record_key text NOT NULL,
  reason text NOT NULL,
  payload jsonb NOT NULL,
  seen_at timestamptz NOT NULL,
  CONSTRAINT rejected_record_pkey PRIMARY KEY (copy_id, resource, record_key)
);

CREATE TABLE crm_user (
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  name text NOT NULL,
  email text NOT NULL,
  address text,
  active boolean NOT NULL,
  CONSTRAINT crm_user_pkey PRIMARY KEY (copy_id, crm_id)
);
CREATE INDEX crm_user_by_address ON crm_user (copy_id, address);

CREATE TABLE pipeline (
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  name text NOT NULL,
  position integer NOT NULL,
  CONSTRAINT pipeline_pkey PRIMARY KEY (copy_id, crm_id)
);

CREATE TABLE stage (
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  name text NOT NULL,
  position integer NOT NULL,
  pipeline_id bigint,
  days_to_rotten integer,
  CONSTRAINT stage_pkey PRIMARY KEY (copy_id, crm_id)
);

CREATE TABLE organization (
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  name text NOT NULL,
  owner_id bigint,
  address text,
  website text,
  add_time timestamptz,
  update_time timestamptz,
  custom_fields jsonb NOT NULL,
  CONSTRAINT organization_pkey PRIMARY KEY (copy_id, crm_id)
);

CREATE TABLE person (
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  name text NOT NULL,
  owner_id bigint,
  organization_id bigint,
  emails jsonb NOT NULL,
  phones jsonb NOT NULL,
  last_incoming_mail_time timestamptz,
  last_outgoing_mail_time timestamptz,
  add_time timestamptz,
  update_time timestamptz,
  custom_fields jsonb NOT NULL,
  CONSTRAINT person_pkey PRIMARY KEY (copy_id, crm_id)
);
CREATE INDEX person_by_organization ON person (copy_id, organization_id);

CREATE TABLE person_address (
  copy_id bigint NOT NULL,
  address text NOT NULL,
  person_id bigint NOT NULL,
  CONSTRAINT person_address_pkey PRIMARY KEY (copy_id, address, person_id)
);
CREATE INDEX person_address_by_person ON person_address (copy_id, person_id);

CREATE TABLE deal (
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  title text NOT NULL,
  value numeric,
  currency text,
  status text NOT NULL CONSTRAINT deal_status CHECK (status IN ('open', 'won', 'lost')),
  owner_id bigint,
  person_id bigint,
  organization_id bigint,
  pipeline_id bigint,
  stage_id bigint,
  participants_count integer,
  participants_due boolean NOT NULL,
  participants_known boolean NOT NULL,
  expected_close_date date,
  stage_change_time timestamptz,
  won_time timestamptz,
  lost_time timestamptz,
  lost_reason text,
  add_time timestamptz,
  update_time timestamptz,
  custom_fields jsonb NOT NULL,
  CONSTRAINT deal_pkey PRIMARY KEY (copy_id, crm_id)
);
CREATE INDEX deal_by_person ON deal (copy_id, person_id);
CREATE INDEX deal_by_organization ON deal (copy_id, organization_id);
CREATE INDEX deal_participants_due ON deal (copy_id, crm_id) WHERE participants_due;

CREATE TABLE deal_participant (
  copy_id bigint NOT NULL,
  deal_id bigint NOT NULL,
  person_id bigint NOT NULL,
  CONSTRAINT deal_participant_pkey PRIMARY KEY (copy_id, deal_id, person_id)
);
CREATE INDEX deal_participant_by_person ON deal_participant (copy_id, person_id);

CREATE TABLE activity (
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  subject text NOT NULL,
  type text NOT NULL,
  owner_id bigint,
  deal_id bigint,
  person_id bigint,
  organization_id bigint,
  participant_ids bigint[] NOT NULL,
  due_at timestamptz,
  due_has_time boolean NOT NULL,
  done boolean NOT NULL,
  done_at timestamptz,
  happened_at timestamptz,
  add_time timestamptz,
  update_time timestamptz,
  CONSTRAINT activity_pkey PRIMARY KEY (copy_id, crm_id)
);
CREATE INDEX activity_by_deal ON activity (copy_id, deal_id, happened_at);
CREATE INDEX activity_by_person ON activity (copy_id, person_id, happened_at);
CREATE INDEX activity_by_organization ON activity (copy_id, organization_id, happened_at);

CREATE TABLE note (
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  content text NOT NULL,
  author_id bigint,
  deal_id bigint,
  person_id bigint,
  organization_id bigint,
  add_time timestamptz NOT NULL,
  update_time timestamptz,
  CONSTRAINT note_pkey PRIMARY KEY (copy_id, crm_id)
);
CREATE INDEX note_by_deal ON note (copy_id, deal_id, add_time);
CREATE INDEX note_by_person ON note (copy_id, person_id, add_time);
CREATE INDEX note_by_organization ON note (copy_id, organization_id, add_time);

CREATE TABLE meeting (
  tenant_id text NOT NULL,
  id uuid NOT NULL,
  external_id text NOT NULL,
  title text NOT NULL,
  starts_at timestamptz NOT NULL,
  ends_at timestamptz,
  owner_email text NOT NULL,
  recorded_by text NOT NULL,
  recorded_at timestamptz NOT NULL,
  CONSTRAINT meeting_pkey PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX meeting_external_id ON meeting (tenant_id, external_id);
CREATE INDEX meeting_by_start ON meeting (tenant_id, starts_at, id);

CREATE TABLE meeting_attendee (
  tenant_id text NOT NULL,
  meeting_id uuid NOT NULL,
  position integer NOT NULL,
  email text NOT NULL,
  name text,
  side text NOT NULL CONSTRAINT meeting_attendee_side CHECK (side IN ('SELLER', 'BUYER', 'IGNORED')),
  match_status text NOT NULL CONSTRAINT meeting_attendee_match_status CHECK (match_status IN ('MATCHED', 'AMBIGUOUS', 'NONE')),
  match_rule text,
  match_reason text NOT NULL,
  person_id bigint,
  candidate_ids bigint[] NOT NULL,
  CONSTRAINT meeting_attendee_pkey PRIMARY KEY (tenant_id, meeting_id, position),
  CONSTRAINT meeting_attendee_meeting_fkey FOREIGN KEY (tenant_id, meeting_id) REFERENCES meeting (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE meeting_match (
  tenant_id text NOT NULL,
  meeting_id uuid NOT NULL,
  copy_id bigint,
  status text NOT NULL CONSTRAINT meeting_match_status CHECK (status IN ('MATCHED', 'NEEDS_CHOICE', 'NONE')),
  rule text,
  reason text NOT NULL,
  deal_id bigint,
  candidates jsonb NOT NULL,
  matched_at timestamptz NOT NULL,
  CONSTRAINT meeting_match_pkey PRIMARY KEY (tenant_id, meeting_id),
  CONSTRAINT meeting_match_meeting_fkey FOREIGN KEY (tenant_id, meeting_id) REFERENCES meeting (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE matched_record (
  tenant_id text NOT NULL,
  copy_id bigint NOT NULL,
  entity text NOT NULL CONSTRAINT matched_record_entity CHECK (entity IN ('DEAL', 'PERSON', 'ORGANIZATION')),
  crm_id bigint NOT NULL,
  meeting_id uuid NOT NULL,
  CONSTRAINT matched_record_pkey PRIMARY KEY (tenant_id, copy_id, entity, crm_id, meeting_id),
  CONSTRAINT matched_record_meeting_fkey FOREIGN KEY (tenant_id, meeting_id) REFERENCES meeting (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX matched_record_by_meeting ON matched_record (tenant_id, meeting_id);
`;

const TABLES = [
  "matched_record",
  "meeting_match",
  "meeting_attendee",
  "meeting",
  "note",
  "activity",
  "deal_participant",
  "deal",
  "person_address",
  "person",
  "organization",
  "stage",
  "pipeline",
  "crm_user",
  "rejected_record",
  "data_gap",
  "sync_step",
  "sync_run",
  "authorization_request",
  "credential",
  "connection",
  "synced_copy",
];

export class Initial1763640000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(up);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.query(`DROP TABLE ${table}`);
  }
}
