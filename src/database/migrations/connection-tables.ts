/** A tenant's connection to its CRM, and the history of what was done about it. */
export const CONNECTION_TABLES = `
CREATE TABLE synced_copy (
  tenant_id bigint NOT NULL,
  id bigserial NOT NULL,
  crm_company_id bigint NOT NULL,
  crm_user_id bigint NOT NULL,
  time_zone text NOT NULL DEFAULT 'UTC',
  state text NOT NULL CONSTRAINT synced_copy_state CHECK (state IN ('LIVE', 'RETIRED')),
  created_at timestamptz NOT NULL,
  rematched_at timestamptz,
  rematch_done integer,
  rematch_total integer,
  probed_at timestamptz,
  probe_cursor text,
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
  used_at timestamptz,
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
    CONSTRAINT field_mapping_health CHECK (health IN ('OK', 'MISSING_IN_CRM', 'TYPE_CHANGED', 'UNKNOWN')),
  checked_at timestamptz NOT NULL,
  CONSTRAINT field_mapping_pkey PRIMARY KEY (tenant_id, entity),
  CONSTRAINT field_mapping_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
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
  error_code text,
  error_message text,
  gaps jsonb NOT NULL DEFAULT '[]',
  CONSTRAINT sync_run_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT sync_run_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE UNIQUE INDEX sync_run_one_open ON sync_run (tenant_id) WHERE state IN ('QUEUED', 'RUNNING');
CREATE INDEX sync_run_by_time ON sync_run (tenant_id, queued_at, id);

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

CREATE TABLE audit_event (
  tenant_id bigint NOT NULL,
  id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
  at timestamptz NOT NULL,
  action text NOT NULL CONSTRAINT audit_event_action CHECK (action IN ('CONSENT_STARTED', 'CONSENT_COMPLETED',
    'CONSENT_REJECTED', 'CONNECTED', 'REAUTHORIZED', 'NEEDS_REAUTHORIZATION', 'DISCONNECTED', 'FIELD_MAPPING_SET',
    'FIELD_MAPPING_CLEARED', 'SYNC_REQUESTED', 'DEAL_CHOSEN', 'DEAL_SNOOZED', 'MEETING_DELETED', 'QUIET_SETTINGS_SET',
    'POLICY_REFUSED', 'KEYS_ROTATED')),
  refused boolean NOT NULL,
  code text,
  subject text,
  user_id text,
  role text,
  CONSTRAINT audit_event_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT audit_event_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE INDEX audit_event_by_instant ON audit_event (tenant_id, at, id);
CREATE INDEX audit_event_by_age ON audit_event (at);
`;
