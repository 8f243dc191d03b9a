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
  ON deal_silence (tenant_id, copy_id, ${column}status, verdict, ${keys}) WHERE is_listed;`,
  ),
);

/**
 * A tenant's meetings, what they match, the schedules of silence of the deals that are matched, what silence is judged by, and
 * the receipts of what was written to the CRM for them. Receipts name records by CRM company and id, because they outlive the
 * copy that the match was made on, and the meeting. A note's text is not kept: nothing is ever sent again.
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
CREATE INDEX meeting_match_by_deal ON meeting_match (tenant_id, copy_id, deal_id);
CREATE INDEX meeting_match_by_status
  ON meeting_match (tenant_id, (CASE WHEN copy_id IS NULL THEN 0 ELSE copy_id END), status, starts_at, meeting_id);

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
CREATE INDEX matched_record_by_meeting ON matched_record (tenant_id, meeting_id);

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
  coming jsonb,
  coming_after bigint NOT NULL DEFAULT 0,
  coming_done integer NOT NULL DEFAULT 0,
  coming_total integer NOT NULL DEFAULT 0,
  CONSTRAINT judged_copy_pkey PRIMARY KEY (tenant_id, copy_id)
);
CREATE INDEX judged_copy_coming ON judged_copy (tenant_id) WHERE coming IS NOT NULL;

CREATE TABLE deal_silence (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  deal_id bigint NOT NULL,
  phase integer NOT NULL,
  holds_from timestamptz NOT NULL,
  holds_until timestamptz NOT NULL,
  verdict text NOT NULL CONSTRAINT deal_silence_verdict CHECK (verdict IN ('ACTIVE', 'COOLING', 'QUIET', 'GHOSTED')),
  quiet_since timestamptz,
  is_told boolean NOT NULL,
  is_listed boolean NOT NULL,
  judged_as text NOT NULL,
  status text NOT NULL,
  pipeline_id bigint,
  stage_id bigint,
  owner_id bigint,
  changed_at timestamptz NOT NULL,
  currency text COLLATE "C" NOT NULL,
  value_rank bigint NOT NULL,
  negative_value numeric NOT NULL,
  CONSTRAINT deal_silence_pkey PRIMARY KEY (tenant_id, copy_id, deal_id, phase)
);
CREATE INDEX deal_silence_due ON deal_silence (tenant_id, copy_id, holds_until) WHERE is_listed;
CREATE INDEX deal_silence_ahead ON deal_silence (tenant_id, copy_id, holds_from) WHERE is_listed;
${LIST_INDEXES.join("\n")}
CREATE INDEX deal_silence_untold ON deal_silence (holds_from) WHERE NOT is_told;

CREATE TABLE coming_silence (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  deal_id bigint NOT NULL,
  phases jsonb NOT NULL,
  CONSTRAINT coming_silence_pkey PRIMARY KEY (tenant_id, copy_id, deal_id)
);

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
CREATE INDEX note_write_by_time ON note_write (tenant_id, requested_at, id);
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
CREATE INDEX field_write_by_time ON field_write (tenant_id, requested_at, id);
CREATE INDEX field_write_by_meeting ON field_write (tenant_id, meeting_id, requested_at, id);
CREATE INDEX field_write_by_deal ON field_write (tenant_id, deal_id, requested_at);
CREATE INDEX field_write_unsettled ON field_write (tenant_id, id) WHERE state IN ('SENDING', 'UNKNOWN');
`;
