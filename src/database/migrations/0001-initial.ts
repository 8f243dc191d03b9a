import { createHash } from "node:crypto";
import type { MigrationInterface, QueryRunner } from "typeorm";
import { ACROSS_TENANTS_ROLE } from "../application-role";
import { CONNECTION_TABLES, MEETING_TABLES } from "./tenant-tables";

/**
 * What belongs to no tenant: who the tenants are, what a CRM company may spend a day (tenants may share a company; read
 * across tenants only), and the operator's switch with what became of it (a row without an end is a stop that holds). The
 * switch has no key: a stop that two operators begin at once is two rows, and the next resume ends both. All may read it.
 * `server_timeline` has each server, and each history of it, that the tables were on: a standby that takes over begins a new one.
 * A tenant's number is drawn, and so is a copy's: a counted one is given again, to another, by a standby or a backup that had not
 * seen it, and whoever sees it, in the ids of records, sees how many there were.
 */
const NOBODYS = `
CREATE TABLE tenant (
  id bigint NOT NULL DEFAULT floor(random() * '140737488355328'::float8)::bigint,
  external_id text NOT NULL,
  CONSTRAINT tenant_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX tenant_external_id ON tenant (external_id);
CREATE TABLE crm_stop (id uuid NOT NULL DEFAULT gen_random_uuid(), begun_at timestamptz NOT NULL, reason text NOT NULL, ended_at timestamptz, CONSTRAINT crm_stop_pkey PRIMARY KEY (id));
CREATE POLICY of_nobody ON crm_stop FOR SELECT USING (true);
CREATE TABLE server_timeline (id text NOT NULL, seen_at timestamptz NOT NULL, CONSTRAINT server_timeline_pkey PRIMARY KEY (id));
CREATE TABLE crm_budget (
  crm_company_id bigint NOT NULL,
  day_began_at timestamptz NOT NULL,
  reset_seen boolean NOT NULL DEFAULT false,
  daily_limit integer,
  remaining integer,
  told_at timestamptz,
  spent_on_syncs integer NOT NULL DEFAULT 0,
  spent_on_meetings integer NOT NULL DEFAULT 0,
  spent_on_writes integer NOT NULL DEFAULT 0,
  looked_at timestamptz,
  limited_at timestamptz,
  revision integer NOT NULL DEFAULT 0,
  CONSTRAINT crm_budget_pkey PRIMARY KEY (crm_company_id)
);
`;

/** Who did what, and what came of it. */
const AUDIT_TABLE = `CREATE TABLE audit_event (
  tenant_id bigint NOT NULL,
  id uuid NOT NULL DEFAULT encode(int8send((date_part('epoch', clock_timestamp()) * 1000000)::bigint) || substr(uuid_send(gen_random_uuid()), 9), 'hex')::uuid,
  at timestamptz NOT NULL,
  action text NOT NULL CONSTRAINT audit_event_action CHECK (action IN ('CONSENT_STARTED', 'CONSENT_COMPLETED',
    'CONSENT_REJECTED', 'CONNECTED', 'REAUTHORIZED', 'NEEDS_REAUTHORIZATION', 'DISCONNECTED', 'FIELD_MAPPING_SET',
    'FIELD_MAPPING_CLEARED', 'SYNC_REQUESTED', 'DEAL_CHOSEN', 'DEAL_SNOOZED', 'MEETING_CANCELLED', 'MEETING_DELETED', 'QUIET_SETTINGS_SET',
    'POLICY_REFUSED', 'KEYS_ROTATED', 'CRM_PROBED', 'PERSON_EXPORTED', 'PERSON_ERASED', 'PERSON_KEPT_OUT',
    'PERSON_LET_IN', 'TENANT_ERASED')),
  refused boolean NOT NULL,
  code text,
  subject text,
  user_id text,
  role text, was text, became text,
  CONSTRAINT audit_event_pkey PRIMARY KEY (tenant_id, id),
  CONSTRAINT audit_event_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE INDEX audit_event_by_instant ON audit_event (tenant_id, at, id);
CREATE INDEX audit_event_by_age ON audit_event (at);
`;

/** The keys of a row that belongs to a copy: a record of the CRM, or what is known of one of its lists. */
const OF_COPY = "tenant_id bigint NOT NULL,\n  copy_id bigint NOT NULL";
const OF_RECORD = `${OF_COPY},\n  crm_id bigint NOT NULL`;
const OF_LIST = `${OF_COPY},\n  resource text NOT NULL`;
const CLOSED = `greatest(won_time, lost_time, CASE WHEN won_time IS NULL AND lost_time IS NULL THEN close_time END, '0001-01-01 00:00:00+00'::timestamptz)`;

/**
 * What belongs to a synced copy: what was read from the CRM, and what of it could not be read. No link between two of
 * these has a foreign key, nor has their link to synced_copy: pages come in the CRM's order, and the transaction of each
 * holds the copy's row (decision 0001). An index by a link is without the rows that have none: plans take it for nothing else.
 */
const SYNCED_TABLES = `
CREATE TABLE crm_user (
  ${OF_RECORD},
  name text NOT NULL,
  email text NOT NULL,
  mailbox text,
  active boolean NOT NULL,
  CONSTRAINT crm_user_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX crm_user_by_mailbox ON crm_user (tenant_id, copy_id, mailbox) WHERE mailbox IS NOT NULL;

CREATE TABLE pipeline (
  ${OF_RECORD},
  name text NOT NULL,
  position integer NOT NULL,
  CONSTRAINT pipeline_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);

CREATE TABLE stage (
  ${OF_RECORD},
  name text NOT NULL,
  position integer NOT NULL,
  pipeline_id bigint,
  days_to_rotten integer,
  CONSTRAINT stage_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);

CREATE TABLE organization (
  ${OF_RECORD},
  name text NOT NULL,
  owner_id bigint,
  address text,
  website text,
  website_domain text,
  add_time timestamptz,
  update_time timestamptz,
  custom_fields jsonb NOT NULL,
  CONSTRAINT organization_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX organization_by_website_domain ON organization (tenant_id, copy_id, website_domain) WHERE website_domain IS NOT NULL;

CREATE TABLE person (
  ${OF_RECORD},
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
  CONSTRAINT person_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX person_by_organization ON person (tenant_id, copy_id, organization_id) WHERE organization_id IS NOT NULL;
CREATE INDEX person_with_mail ON person (tenant_id, copy_id)
  WHERE last_incoming_mail_time IS NOT NULL OR last_outgoing_mail_time IS NOT NULL;

CREATE TABLE person_address (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  address text NOT NULL,
  person_id bigint NOT NULL,
  mailbox text NOT NULL,
  domain text,
  CONSTRAINT person_address_pkey PRIMARY KEY (tenant_id, copy_id, address, person_id)
);
CREATE INDEX person_address_by_person ON person_address (tenant_id, copy_id, person_id);
CREATE INDEX person_address_by_mailbox ON person_address (tenant_id, copy_id, mailbox);
CREATE INDEX person_address_by_domain ON person_address (tenant_id, copy_id, domain) WHERE domain IS NOT NULL;

CREATE TABLE kept_out_person (
  ${OF_RECORD},
  hash text NOT NULL,
  CONSTRAINT kept_out_person_pkey PRIMARY KEY (tenant_id, copy_id, crm_id, hash)
);

CREATE TABLE deal (
  ${OF_RECORD},
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
  participants_once_known boolean NOT NULL DEFAULT false, participants_asked_at timestamptz,
  first_mail_at timestamptz, first_mail_person_id bigint,
  snooze_reason text, snoozed_by text, snoozed_at timestamptz, snoozed_until timestamptz, snooze_ends_at timestamptz,
  expected_close_date date, stage_change_time timestamptz, won_time timestamptz, lost_time timestamptz, close_time timestamptz,
  lost_reason text,
  add_time timestamptz,
  update_time timestamptz,
  custom_fields jsonb NOT NULL,
  CONSTRAINT deal_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX deal_by_person ON deal (tenant_id, copy_id, person_id) WHERE person_id IS NOT NULL;
CREATE INDEX deal_by_organization ON deal (tenant_id, copy_id, organization_id) WHERE organization_id IS NOT NULL;
CREATE INDEX deal_open_due ON deal (tenant_id, copy_id, coalesce(update_time, '0001-01-01 00:00:00+00'::timestamptz), crm_id)
  WHERE participants_due AND status = 'open';
CREATE INDEX deal_closed_due ON deal (tenant_id, copy_id, ${CLOSED}, crm_id) WHERE participants_due AND status <> 'open';
CREATE INDEX deal_closed_asked ON deal (tenant_id, copy_id, ${CLOSED})
  INCLUDE (crm_id, person_id, organization_id, participants_count, participants_asked_at, won_time, lost_time, close_time)
  WHERE NOT participants_due AND status <> 'open';
CREATE INDEX deal_open_asked ON deal (tenant_id, copy_id, (participants_count IS DISTINCT FROM 1) DESC, participants_asked_at, crm_id)
  INCLUDE (person_id, organization_id, participants_count) WHERE NOT participants_due AND status = 'open';
CREATE INDEX deal_due ON deal (tenant_id, copy_id, crm_id) INCLUDE (participants_known, participants_asked_at, add_time) WHERE participants_due;
CREATE INDEX deal_snoozed ON deal (tenant_id, copy_id, snooze_ends_at) WHERE snooze_ends_at IS NOT NULL;

CREATE TABLE deal_participant (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  deal_id bigint NOT NULL,
  person_id bigint NOT NULL,
  CONSTRAINT deal_participant_pkey PRIMARY KEY (tenant_id, copy_id, deal_id, person_id)
);
CREATE INDEX deal_participant_by_person ON deal_participant (tenant_id, copy_id, person_id);

CREATE TABLE deal_change (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  deal_id bigint NOT NULL,
  seen_at timestamptz NOT NULL,
  id bigint GENERATED BY DEFAULT AS IDENTITY NOT NULL,
  kind text NOT NULL CONSTRAINT deal_change_kind CHECK (kind IN ('STAGE', 'VALUE', 'CLOSE_DATE', 'STATUS', 'OWNER', 'PERSON',
    'ORGANIZATION', 'TITLE', 'PARTICIPANTS', 'VERDICT')),
  was text, became text,
  CONSTRAINT deal_change_pkey PRIMARY KEY (tenant_id, copy_id, deal_id, seen_at, id)
);
CREATE INDEX deal_change_by_age ON deal_change (seen_at);
CREATE INDEX deal_change_waiting ON deal_change (tenant_id, copy_id) WHERE seen_at = 'infinity'::timestamptz;
CREATE INDEX deal_change_pushed ON deal_change (tenant_id, copy_id, deal_id, seen_at) WHERE kind = 'CLOSE_DATE' AND became > was COLLATE "C";

CREATE TABLE activity (
  ${OF_RECORD},
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
  CONSTRAINT activity_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX activity_by_deal ON activity (tenant_id, copy_id, deal_id, happened_at, crm_id) WHERE deal_id IS NOT NULL;
CREATE INDEX activity_by_person ON activity (tenant_id, copy_id, person_id, happened_at, crm_id) WHERE person_id IS NOT NULL;
CREATE INDEX activity_by_organization ON activity (tenant_id, copy_id, organization_id, happened_at, crm_id) WHERE organization_id IS NOT NULL;

CREATE TABLE note (
  ${OF_RECORD},
  content text NOT NULL,
  author_id bigint,
  deal_id bigint,
  person_id bigint,
  organization_id bigint,
  add_time timestamptz NOT NULL,
  update_time timestamptz,
  truncated boolean NOT NULL DEFAULT false,
  shown_html text,
  shown_text text,
  shown_cut boolean,
  shown_rules integer,
  CONSTRAINT note_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX note_by_deal ON note (tenant_id, copy_id, deal_id, add_time, crm_id) WHERE deal_id IS NOT NULL;
CREATE INDEX note_by_person ON note (tenant_id, copy_id, person_id, add_time, crm_id) WHERE person_id IS NOT NULL;
CREATE INDEX note_by_organization ON note (tenant_id, copy_id, organization_id, add_time, crm_id) WHERE organization_id IS NOT NULL;

CREATE TABLE field_list (
  ${OF_COPY},
  entity text NOT NULL,
  asked_at timestamptz NOT NULL,
  read_at timestamptz, failed_since timestamptz,
  wanted text[] NOT NULL,
  missing text[] NOT NULL,
  CONSTRAINT field_list_pkey PRIMARY KEY (tenant_id, copy_id, entity)
);

CREATE TABLE crm_field (
  ${OF_COPY},
  entity text NOT NULL,
  key text NOT NULL,
  position integer NOT NULL,
  name text NOT NULL,
  type text NOT NULL,
  options jsonb NOT NULL,
  CONSTRAINT crm_field_pkey PRIMARY KEY (tenant_id, copy_id, entity, key)
);

CREATE TABLE data_gap (
  ${OF_LIST},
  crm_id bigint NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  since timestamptz NOT NULL,
  CONSTRAINT data_gap_pkey PRIMARY KEY (tenant_id, copy_id, resource, crm_id)
);

CREATE TABLE rejected_record (
  ${OF_LIST},
  record_key text NOT NULL,
  reason text NOT NULL,
  payload jsonb NOT NULL,
  deal_id bigint,
  since timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  CONSTRAINT rejected_record_pkey PRIMARY KEY (tenant_id, copy_id, resource, record_key)
);
CREATE INDEX rejected_record_of_deal ON rejected_record (tenant_id, copy_id, deal_id) WHERE deal_id IS NOT NULL;
CREATE INDEX rejected_record_by_age ON rejected_record (tenant_id, copy_id, resource, since);

CREATE TABLE absent_record (
  ${OF_LIST},
  crm_id bigint NOT NULL,
  CONSTRAINT absent_record_pkey PRIMARY KEY (tenant_id, copy_id, resource, crm_id)
);

CREATE TABLE missed_record (
  ${OF_LIST},
  crm_id bigint NOT NULL,
  missed_at timestamptz, failed_at timestamptz,
  CONSTRAINT missed_record_pkey PRIMARY KEY (tenant_id, copy_id, resource, crm_id)
);

CREATE TABLE sync_list (
  ${OF_LIST},
  watermark timestamptz,
  read_at timestamptz,
  whole_at timestamptz,
  quiet_reads integer NOT NULL DEFAULT 0, much_gone boolean NOT NULL DEFAULT false, late_at timestamptz, missing bigint[] NOT NULL DEFAULT '{}',
  CONSTRAINT sync_list_pkey PRIMARY KEY (tenant_id, copy_id, resource)
);

CREATE TABLE sync_pass (
  ${OF_LIST},
  kind text NOT NULL CONSTRAINT sync_pass_kind CHECK (kind IN ('WHOLE', 'CHANGES')),
  removes boolean NOT NULL,
  updated_since timestamptz,
  began_at timestamptz,
  cursor text,
  last_id bigint NOT NULL DEFAULT 0,
  walk integer NOT NULL DEFAULT 1,
  first_walk_ended_at timestamptz, failed_since timestamptz, in_vain_since timestamptz, begun_anew_at timestamptz, rests_until timestamptz,
  small_pages integer NOT NULL DEFAULT 0,
  CONSTRAINT sync_pass_pkey PRIMARY KEY (tenant_id, copy_id, resource, kind)
);
`;

/** Row policies, forced on the owner too: a session sees the tenant that it was set to, or nobody; work across tenants has its own role. */
const KEEP_APART = `
DO $$
DECLARE t record;
BEGIN
  FOR t IN
    SELECT c.relname AS name, EXISTS (
      SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') AS of_tenant
    FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'migration'
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t.name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t.name);
    EXECUTE format('CREATE POLICY across_tenants ON %I TO ${ACROSS_TENANTS_ROLE} USING (true)', t.name);
    CONTINUE WHEN NOT t.of_tenant;
    EXECUTE format($policy$CREATE POLICY of_tenant ON %I
      USING (tenant_id = nullif(current_setting('crm.tenant', true), '')::bigint)$policy$, t.name);
  END LOOP;
END $$;
`;

/**
 * Plans are kept for tenants of every size, and are made for one that has a twentieth of all rows: what is fast there is fast in
 * a small one. For the average among thousands of tiny ones PostgreSQL would read all that a large one has. Nor does it know that
 * a copy is of one tenant: it takes both for a condition that hardly any row meets. And a user has a hundredth of the meetings and
 * writes: where there is but one, those of another would be looked for among all. Takes effect with the next ANALYZE.
 */
const LARGE_TENANTS = `
DO $$
DECLARE t record;
BEGIN
  FOR t IN
    SELECT table_name AS name, bool_or(column_name = 'copy_id') AS of_copy FROM information_schema.columns
    WHERE table_schema = 'public' AND column_name IN ('tenant_id', 'copy_id') GROUP BY 1
  LOOP
    EXECUTE format('ALTER TABLE %I ALTER tenant_id SET (n_distinct = 20)', t.name);
    CONTINUE WHEN NOT t.of_copy;
    EXECUTE format('ALTER TABLE %I ALTER copy_id SET (n_distinct = 20)', t.name);
    EXECUTE format('CREATE STATISTICS %I (dependencies) ON tenant_id, copy_id FROM %I', t.name || '_copy_of_tenant', t.name);
  END LOOP;
END $$;
ALTER TABLE meeting ALTER owner_key SET (n_distinct = 100); ALTER TABLE note_write ALTER requested_by SET (n_distinct = 100);
ALTER TABLE field_write ALTER requested_by SET (n_distinct = 100);
`;

const MADE = [NOBODYS, CONNECTION_TABLES, AUDIT_TABLE, MEETING_TABLES, SYNCED_TABLES];
export const UP = [...MADE, KEEP_APART, LARGE_TENANTS].join("\n");

/** A table before those that it refers to. */
const TABLES = [...UP.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, table]) => table).reverse();

const CHECKSUM = createHash("sha256").update(UP).digest("hex").slice(0, 12);

/** The name is stored with the checksum in it: a database that was made by another text is told from ours by that. */
export class Initial implements MigrationInterface {
  readonly name = `Initial_${CHECKSUM}_1795219200000`;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(UP);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.query(`DROP TABLE ${table}`);
  }
}
