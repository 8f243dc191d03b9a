/** Under row policies an index finds rows by comparisons that are LEAKPROOF and gives others its order alone (decision 0082). */
const SILENT_SINCE = "(CASE WHEN quiet_since IS NULL THEN '9999-12-31 00:00:00+00'::timestamptz ELSE quiet_since END)";

/**
 * What a list of deals is sorted by, and what it may be narrowed to: an index for each order within each. An amount that is
 * no order is compared in the index as well, so that deals of less are passed without reading their rows.
 */
const SORTED = {
  update: "changed_at, deal_id, currency, value_rank",
  value: "currency, value_rank, negative_value, deal_id",
  silence: `${SILENT_SINCE}, deal_id, currency, value_rank`,
};
const NARROWED = { all: "", pipeline: "pipeline_id, ", stage: "stage_id, ", owner: "owner_id, " };
const LIST_INDEXES = Object.entries(NARROWED).flatMap(([within, column]) =>
  Object.entries(SORTED).map(
    ([by, keys]) => `CREATE INDEX deal_silence_${within}_by_${by}
  ON deal_silence (tenant_id, copy_id, generation, ${column}status, verdict, ${keys}) WHERE is_listed;`,
  ),
);

/** A tenant's connection, the field that may be written, the runs of its syncs, and who is kept out of its rows. */
export const CONNECTION_TABLES = `
CREATE TABLE synced_copy (
  tenant_id bigint NOT NULL,
  id bigint NOT NULL DEFAULT floor(random() * '140737488355328'::float8)::bigint,
  crm_company_id bigint NOT NULL,
  crm_user_id bigint NOT NULL,
  time_zone text NOT NULL DEFAULT 'UTC',
  state text NOT NULL CONSTRAINT synced_copy_state CHECK (state IN ('LIVE', 'RETIRED')),
  created_at timestamptz NOT NULL,
  matched_as_whole boolean,
  rematch jsonb,
  probed_at timestamptz, probe_cursor text,
  probe_failed boolean NOT NULL DEFAULT false, probe_failures integer NOT NULL DEFAULT 0,
  asked_again_at timestamptz,
  lone_participants_confirmed integer NOT NULL DEFAULT 0,
  lone_participants_refuted boolean NOT NULL DEFAULT false,
  CONSTRAINT synced_copy_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT synced_copy_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE UNIQUE INDEX synced_copy_one_live ON synced_copy (tenant_id) WHERE state = 'LIVE';

CREATE TABLE connection (
  tenant_id bigint NOT NULL,
  state text NOT NULL CONSTRAINT connection_state CHECK (state IN ('NOT_CONNECTED', 'CONNECTED', 'NEEDS_REAUTHORIZATION')),
  state_changed_at timestamptz,
  copy_id bigint,
  bound_email text,
  bound_user_name text,
  company_name text,
  company_domain text,
  connected_at timestamptz,
  reauthorization_reason text
    CONSTRAINT connection_reauthorization_reason CHECK (reauthorization_reason IN ('GRANT_REVOKED', 'RENEWAL_UNCONFIRMED', 'IDENTITY_CHANGED')),
  trouble_code text,
  trouble_message text,
  trouble_since timestamptz,
  trouble_last_seen_at timestamptz,
  next_sync_at timestamptz,
  CONSTRAINT connection_pkey PRIMARY KEY (tenant_id),
  CONSTRAINT connection_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id),
  CONSTRAINT connection_copy_fkey FOREIGN KEY (tenant_id, copy_id) REFERENCES synced_copy (tenant_id, id),
  CONSTRAINT connection_has_copy CHECK ((state = 'NOT_CONNECTED') = (copy_id IS NULL)),
  CONSTRAINT connection_trouble_whole CHECK (
    num_nulls(trouble_code, trouble_message, trouble_since, trouble_last_seen_at) IN (0, 4)
  )
);

CREATE TABLE credential (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  version integer NOT NULL,
  access_token bytea NOT NULL,
  refresh_token bytea NOT NULL,
  access_token_asked_at timestamptz NOT NULL,
  kept_alive_at timestamptz,
  proven_version integer,
  CONSTRAINT credential_pkey PRIMARY KEY (tenant_id),
  CONSTRAINT credential_copy_fkey FOREIGN KEY (tenant_id, copy_id) REFERENCES synced_copy (tenant_id, id)
);

CREATE TABLE kept_out_key (
  tenant_id bigint NOT NULL,
  sealed_key bytea NOT NULL,
  CONSTRAINT kept_out_key_pkey PRIMARY KEY (tenant_id),
  CONSTRAINT kept_out_key_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

CREATE TABLE kept_out_address (
  tenant_id bigint NOT NULL,
  hash text NOT NULL,
  first_hash text NOT NULL,
  since timestamptz NOT NULL,
  CONSTRAINT kept_out_address_pkey PRIMARY KEY (tenant_id, hash),
  CONSTRAINT kept_out_address_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE INDEX kept_out_address_by_first ON kept_out_address (tenant_id, first_hash);

CREATE TABLE renewal_attempt (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  version integer NOT NULL,
  started_at timestamptz NOT NULL,
  CONSTRAINT renewal_attempt_pkey PRIMARY KEY (tenant_id, copy_id),
  CONSTRAINT renewal_attempt_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

CREATE TABLE authorization_request (
  tenant_id bigint NOT NULL,
  state_hash bytea NOT NULL,
  user_id text NOT NULL,
  expires_at timestamptz NOT NULL,
  used_at timestamptz, alive_at timestamptz, answer_hash bytea, refusal jsonb,
  CONSTRAINT authorization_request_pkey PRIMARY KEY (tenant_id, state_hash),
  CONSTRAINT authorization_request_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

CREATE TABLE field_mapping (
  tenant_id bigint NOT NULL,
  entity text NOT NULL CONSTRAINT field_mapping_entity CHECK (entity IN ('DEAL', 'PERSON', 'ORGANIZATION')),
  crm_company_id bigint NOT NULL,
  field_key text NOT NULL,
  nominated_type text NOT NULL,
  nominated_by text NOT NULL,
  nominated_at timestamptz NOT NULL,
  field_name text NOT NULL,
  field_type text NOT NULL,
  options jsonb NOT NULL,
  health text NOT NULL
    CONSTRAINT field_mapping_health CHECK (health IN ('OK', 'MISSING_IN_CRM', 'TYPE_CHANGED', 'NOT_WRITABLE', 'UNKNOWN')),
  checked_at timestamptz NOT NULL,
  CONSTRAINT field_mapping_pkey PRIMARY KEY (tenant_id, entity),
  CONSTRAINT field_mapping_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

CREATE TABLE kept_snooze (
  tenant_id bigint NOT NULL, crm_company_id bigint NOT NULL, deal_id bigint NOT NULL, snooze_reason text NOT NULL,
  snoozed_by text NOT NULL, snoozed_at timestamptz NOT NULL, snoozed_until timestamptz NOT NULL, snooze_ends_at timestamptz NOT NULL,
  CONSTRAINT kept_snooze_pkey PRIMARY KEY (tenant_id, crm_company_id, deal_id),
  CONSTRAINT kept_snooze_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

CREATE TABLE sync_run (
  tenant_id bigint NOT NULL,
  id uuid NOT NULL,
  copy_id bigint NOT NULL,
  kind text NOT NULL CONSTRAINT sync_run_kind CHECK (kind IN ('FULL', 'INCREMENTAL', 'RECONCILE')),
  state text NOT NULL CONSTRAINT sync_run_state CHECK (state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  queued_at timestamptz NOT NULL,
  started_at timestamptz,
  finished_at timestamptz,
  lease_id uuid,
  lease_until timestamptz,
  error_code text, error_message text,
  gaps jsonb NOT NULL DEFAULT '[]',
  written_beside integer NOT NULL DEFAULT 0, removed_beside integer NOT NULL DEFAULT 0,
  rematched boolean NOT NULL DEFAULT false,
  CONSTRAINT sync_run_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT sync_run_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE UNIQUE INDEX sync_run_one_open ON sync_run (tenant_id) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX sync_run_by_time ON sync_run (tenant_id, queued_at, id); CREATE INDEX sync_run_by_state ON sync_run (tenant_id, copy_id, state, queued_at);
CREATE INDEX sync_run_by_age ON sync_run (queued_at); CREATE INDEX sync_run_by_end ON sync_run (tenant_id, finished_at);
CREATE INDEX sync_run_to_rematch ON sync_run (tenant_id, copy_id) WHERE NOT rematched;

CREATE TABLE sync_step (
  tenant_id bigint NOT NULL,
  run_id uuid NOT NULL,
  resource text NOT NULL,
  state text NOT NULL CONSTRAINT sync_step_state CHECK (state IN ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  updated_since timestamptz,
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
`;

/**
 * A tenant's meetings and what they match, the schedules of silence of matched deals with what they are judged by, and the
 * receipts of writes: these name records by CRM company and id, because they outlive the meeting and the copy. A note's text
 * is not kept: nothing is ever sent again.
 */
export const MEETING_TABLES = `
CREATE TABLE meeting (
  tenant_id bigint NOT NULL,
  id uuid NOT NULL,
  external_id text NOT NULL,
  title text NOT NULL,
  starts_at timestamptz NOT NULL,
  ends_at timestamptz,
  owner_email text NOT NULL,
  owner_key text NOT NULL,
  search_text text NOT NULL,
  recorded_by text NOT NULL,
  recorded_at timestamptz NOT NULL,
  cancelled_at timestamptz,
  refreshed_at timestamptz,
  CONSTRAINT meeting_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT meeting_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE UNIQUE INDEX meeting_external_id ON meeting (tenant_id, external_id);
CREATE INDEX meeting_by_start ON meeting (tenant_id, starts_at, id);
CREATE INDEX meeting_taking_place ON meeting (tenant_id, starts_at, id) WHERE cancelled_at IS NULL;
CREATE INDEX meeting_by_owner ON meeting (tenant_id, owner_key, starts_at, id);
CREATE INDEX meeting_to_refresh ON meeting (starts_at) WHERE refreshed_at IS NULL;

CREATE TABLE meeting_attendee (
  tenant_id bigint NOT NULL,
  meeting_id uuid NOT NULL,
  position integer NOT NULL,
  email text NOT NULL,
  name text,
  side text NOT NULL CONSTRAINT meeting_attendee_side CHECK (side IN ('SELLER', 'BUYER', 'IGNORED')),
  match_status text NOT NULL CONSTRAINT meeting_attendee_match_status CHECK (match_status IN ('MATCHED', 'AMBIGUOUS', 'NONE', 'PENDING')),
  match_rule text,
  match_reason text NOT NULL,
  person_id bigint,
  candidate_ids bigint[] NOT NULL,
  organization_status text NOT NULL
    CONSTRAINT meeting_attendee_organization_status CHECK (organization_status IN ('MATCHED', 'AMBIGUOUS', 'NONE', 'PENDING')),
  organization_id bigint,
  organization_rule text,
  organization_reason text,
  CONSTRAINT meeting_attendee_pkey PRIMARY KEY (tenant_id, meeting_id, position),
  CONSTRAINT meeting_attendee_meeting_fkey FOREIGN KEY (tenant_id, meeting_id) REFERENCES meeting (tenant_id, id) ON DELETE CASCADE
);

CREATE TABLE meeting_match (
  tenant_id bigint NOT NULL,
  meeting_id uuid NOT NULL,
  copy_id bigint,
  starts_at timestamptz NOT NULL,
  status text NOT NULL CONSTRAINT meeting_match_status CHECK (status IN ('MATCHED', 'NEEDS_CHOICE', 'NONE', 'PENDING')),
  rule text,
  reason text NOT NULL,
  may_change boolean NOT NULL DEFAULT false,
  deal_id bigint,
  candidates jsonb NOT NULL,
  matched_at timestamptz NOT NULL,
  fingerprint text NOT NULL,
  chosen_deal_id bigint,
  chosen_company_id bigint,
  chosen_by text,
  chosen_at timestamptz,
  last_deal jsonb,
  CONSTRAINT meeting_match_pkey PRIMARY KEY (tenant_id, meeting_id),
  CONSTRAINT meeting_match_meeting_fkey FOREIGN KEY (tenant_id, meeting_id) REFERENCES meeting (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX meeting_match_by_deal ON meeting_match (tenant_id, copy_id, deal_id, starts_at, meeting_id) WHERE deal_id IS NOT NULL;
CREATE INDEX meeting_match_by_status ON meeting_match (tenant_id, (CASE WHEN copy_id IS NULL THEN 0 ELSE copy_id END), status, starts_at, meeting_id);

CREATE TABLE matched_record (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  entity text NOT NULL CONSTRAINT matched_record_entity CHECK (entity IN ('DEAL', 'PERSON', 'ORGANIZATION')),
  crm_id bigint NOT NULL,
  meeting_id uuid NOT NULL,
  CONSTRAINT matched_record_pkey PRIMARY KEY (tenant_id, copy_id, entity, crm_id, meeting_id),
  CONSTRAINT matched_record_copy_fkey FOREIGN KEY (tenant_id, copy_id) REFERENCES synced_copy (tenant_id, id),
  CONSTRAINT matched_record_meeting_fkey FOREIGN KEY (tenant_id, meeting_id) REFERENCES meeting (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX matched_record_by_meeting ON matched_record (tenant_id, meeting_id, copy_id, entity, crm_id);

CREATE TABLE quiet_settings (
  tenant_id bigint NOT NULL,
  crm_company_id bigint NOT NULL,
  time_zone text,
  business_days boolean NOT NULL,
  two_way_types text[] NOT NULL,
  thresholds jsonb NOT NULL,
  set_by text NOT NULL,
  set_at timestamptz NOT NULL,
  CONSTRAINT quiet_settings_pkey PRIMARY KEY (tenant_id),
  CONSTRAINT quiet_settings_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

CREATE TABLE judged_copy (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  standards jsonb NOT NULL,
  generation integer NOT NULL DEFAULT 0,
  coming jsonb,
  walked_to bigint,
  coming_done integer NOT NULL DEFAULT 0,
  coming_total integer NOT NULL DEFAULT 0,
  CONSTRAINT judged_copy_pkey PRIMARY KEY (tenant_id, copy_id)
);
CREATE INDEX judged_copy_walked ON judged_copy (tenant_id) WHERE walked_to IS NOT NULL;

CREATE TABLE deal_silence (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  deal_id bigint NOT NULL,
  generation integer NOT NULL,
  phase integer NOT NULL,
  holds_from timestamptz NOT NULL,
  holds_until timestamptz NOT NULL,
  verdict text NOT NULL CONSTRAINT deal_silence_verdict CHECK (verdict IN ('ACTIVE', 'COOLING', 'QUIET', 'GHOSTED')),
  quiet_since timestamptz,
  is_told boolean NOT NULL,
  is_listed boolean NOT NULL,
  judged_as text NOT NULL,
  of_others json,
  status text NOT NULL,
  pipeline_id bigint,
  stage_id bigint,
  owner_id bigint,
  changed_at timestamptz NOT NULL,
  currency text COLLATE "C" NOT NULL,
  value_rank bigint NOT NULL,
  negative_value numeric NOT NULL,
  CONSTRAINT deal_silence_pkey PRIMARY KEY (tenant_id, copy_id, deal_id, generation, phase)
);
CREATE INDEX deal_silence_due ON deal_silence (tenant_id, copy_id, holds_until) WHERE is_listed;
CREATE INDEX deal_silence_ahead ON deal_silence (tenant_id, copy_id, holds_from) WHERE is_listed;
${LIST_INDEXES.join("\n")}
CREATE INDEX deal_silence_untold ON deal_silence (holds_from) WHERE NOT is_told;

CREATE TABLE note_write (
  tenant_id bigint NOT NULL,
  id uuid NOT NULL,
  idempotency_key text NOT NULL,
  input_hash text NOT NULL,
  meeting_id uuid NOT NULL,
  copy_id bigint NOT NULL,
  crm_company_id bigint NOT NULL,
  entity text NOT NULL CONSTRAINT note_write_entity CHECK (entity IN ('DEAL', 'PERSON', 'ORGANIZATION')),
  target_id bigint NOT NULL,
  deal_id bigint,
  deal_updated_before timestamptz,
  reference text NOT NULL,
  state text NOT NULL CONSTRAINT note_write_state CHECK (state IN ('SENDING', 'WRITTEN', 'FAILED', 'UNKNOWN')),
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
  CONSTRAINT note_write_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id),
  CONSTRAINT note_write_written CHECK ((state = 'WRITTEN') = (crm_note_id IS NOT NULL))
);
CREATE UNIQUE INDEX note_write_idempotency_key ON note_write (tenant_id, idempotency_key);
CREATE UNIQUE INDEX note_write_reference ON note_write (tenant_id, reference);
CREATE INDEX note_write_by_time ON note_write (tenant_id, requested_at, id); CREATE INDEX note_write_by_user ON note_write (tenant_id, requested_by, requested_at, id);
CREATE INDEX note_write_by_meeting ON note_write (tenant_id, meeting_id, requested_at, id);
CREATE INDEX note_write_by_deal ON note_write (tenant_id, deal_id, requested_at);
CREATE INDEX note_write_by_note ON note_write (tenant_id, crm_note_id);
CREATE INDEX note_write_unsettled ON note_write (tenant_id, id) WHERE state IN ('SENDING', 'UNKNOWN');

CREATE TABLE field_write (
  tenant_id bigint NOT NULL,
  id uuid NOT NULL,
  idempotency_key text NOT NULL,
  position integer NOT NULL,
  input_hash text NOT NULL,
  meeting_id uuid NOT NULL,
  copy_id bigint NOT NULL,
  crm_company_id bigint NOT NULL,
  entity text NOT NULL CONSTRAINT field_write_entity CHECK (entity IN ('DEAL', 'PERSON', 'ORGANIZATION')),
  target_id bigint NOT NULL,
  deal_id bigint,
  deal_updated_before timestamptz,
  field_key text NOT NULL,
  value jsonb,
  value_goes boolean NOT NULL DEFAULT false,
  state text NOT NULL CONSTRAINT field_write_state CHECK (state IN ('SENDING', 'WRITTEN', 'FAILED', 'UNKNOWN')),
  error_code text,
  error_message text,
  requested_by text NOT NULL,
  requested_at timestamptz NOT NULL,
  sent_at timestamptz,
  settled_at timestamptz,
  look_ups integer NOT NULL DEFAULT 0,
  next_look_up_at timestamptz,
  CONSTRAINT field_write_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT field_write_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE UNIQUE INDEX field_write_idempotency_key ON field_write (tenant_id, idempotency_key, position);
CREATE INDEX field_write_by_time ON field_write (tenant_id, requested_at, id); CREATE INDEX field_write_by_user ON field_write (tenant_id, requested_by, requested_at, id);
CREATE INDEX field_write_by_meeting ON field_write (tenant_id, meeting_id, requested_at, id);
CREATE INDEX field_write_by_deal ON field_write (tenant_id, deal_id, requested_at);
CREATE INDEX field_write_unsettled ON field_write (tenant_id, id) WHERE state IN ('SENDING', 'UNKNOWN');
`;
