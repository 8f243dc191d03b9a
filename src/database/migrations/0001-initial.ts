import { createHash } from "node:crypto";
import type { MigrationInterface, QueryRunner } from "typeorm";
import { ACROSS_TENANTS_ROLE } from "../application-role";
import { TENANT_TABLES } from "./tenant-tables";

/**
 * What belongs to no tenant: who the tenants are, what a CRM company may spend a day (tenants may share a company; read
 * across tenants only), and the operator's switch with what became of it (a row without an end is a stop that holds). The
 * switch has no key: a stop that two operators begin at once is two rows, and the next resume ends both. Every session may
 * read it.
 */
const NOBODYS = `
CREATE TABLE tenant (
  id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
  external_id text NOT NULL,
  CONSTRAINT tenant_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX tenant_external_id ON tenant (external_id);
CREATE TABLE crm_stop (
  begun_at timestamptz NOT NULL,
  reason text NOT NULL,
  ended_at timestamptz
);
CREATE POLICY of_nobody ON crm_stop FOR SELECT USING (true);
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

/**
 * What belongs to a synced copy: what was read from the CRM, and what of it could not be read. No link between two of
 * these has a foreign key, nor has their link to synced_copy: pages come in the CRM's order, and the transaction of each
 * holds the copy's row (decision 0001).
 */
const SYNCED_TABLES = `
CREATE TABLE crm_user (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  name text NOT NULL,
  email text NOT NULL,
  address text,
  active boolean NOT NULL,
  CONSTRAINT crm_user_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX crm_user_by_address ON crm_user (tenant_id, copy_id, address);

CREATE TABLE pipeline (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  name text NOT NULL,
  position integer NOT NULL,
  CONSTRAINT pipeline_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);

CREATE TABLE stage (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
  name text NOT NULL,
  position integer NOT NULL,
  pipeline_id bigint,
  days_to_rotten integer,
  CONSTRAINT stage_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);

CREATE TABLE organization (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
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
CREATE INDEX organization_by_website_domain ON organization (tenant_id, copy_id, website_domain);

CREATE TABLE person (
  tenant_id bigint NOT NULL,
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
  CONSTRAINT person_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX person_by_organization ON person (tenant_id, copy_id, organization_id);
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
CREATE INDEX person_address_by_domain ON person_address (tenant_id, copy_id, domain);

CREATE TABLE deal (
  tenant_id bigint NOT NULL,
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
  participants_asked_at timestamptz,
  first_mail_at timestamptz, first_mail_person_id bigint,
  snooze_reason text, snoozed_by text, snoozed_at timestamptz, snoozed_until timestamptz, snooze_ends_at timestamptz,
  expected_close_date date,
  stage_change_time timestamptz,
  won_time timestamptz, lost_time timestamptz, close_time timestamptz,
  lost_reason text,
  add_time timestamptz,
  update_time timestamptz,
  custom_fields jsonb NOT NULL,
  CONSTRAINT deal_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX deal_by_person ON deal (tenant_id, copy_id, person_id);
CREATE INDEX deal_by_organization ON deal (tenant_id, copy_id, organization_id);
CREATE INDEX deal_open_due ON deal (tenant_id, copy_id, coalesce(update_time, '0001-01-01 00:00:00+00'::timestamptz), crm_id)
  WHERE participants_due AND status = 'open';
CREATE INDEX deal_closed_due ON deal (tenant_id, copy_id, coalesce(greatest(won_time, lost_time), close_time, '0001-01-01 00:00:00+00'::timestamptz), crm_id)
  WHERE participants_due AND status <> 'open';
CREATE INDEX deal_participants_asked ON deal (tenant_id, copy_id, participants_asked_at, crm_id) WHERE NOT participants_due;
CREATE INDEX deal_snoozed ON deal (tenant_id, copy_id, snooze_ends_at) WHERE snooze_ends_at IS NOT NULL;

CREATE TABLE deal_participant (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  deal_id bigint NOT NULL,
  person_id bigint NOT NULL,
  CONSTRAINT deal_participant_pkey PRIMARY KEY (tenant_id, copy_id, deal_id, person_id)
);
CREATE INDEX deal_participant_by_person ON deal_participant (tenant_id, copy_id, person_id);

CREATE TABLE activity (
  tenant_id bigint NOT NULL,
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
  CONSTRAINT activity_pkey PRIMARY KEY (tenant_id, copy_id, crm_id)
);
CREATE INDEX activity_by_deal ON activity (tenant_id, copy_id, deal_id, happened_at);
CREATE INDEX activity_by_person ON activity (tenant_id, copy_id, person_id, happened_at);
CREATE INDEX activity_by_organization ON activity (tenant_id, copy_id, organization_id, happened_at);

CREATE TABLE note (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  crm_id bigint NOT NULL,
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
CREATE INDEX note_by_deal ON note (tenant_id, copy_id, deal_id, add_time);
CREATE INDEX note_by_person ON note (tenant_id, copy_id, person_id, add_time);
CREATE INDEX note_by_organization ON note (tenant_id, copy_id, organization_id, add_time);

CREATE TABLE data_gap (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  crm_id bigint NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  since timestamptz NOT NULL,
  CONSTRAINT data_gap_pkey PRIMARY KEY (tenant_id, copy_id, resource, crm_id)
);

CREATE TABLE rejected_record (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  record_key text NOT NULL,
  reason text NOT NULL,
  payload jsonb NOT NULL,
  since timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  CONSTRAINT rejected_record_pkey PRIMARY KEY (tenant_id, copy_id, resource, record_key)
);
CREATE INDEX rejected_record_of_deal ON rejected_record (tenant_id, copy_id, resource, left(payload ->> 'deal_id', 20));

CREATE TABLE absent_record (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  crm_id bigint NOT NULL,
  CONSTRAINT absent_record_pkey PRIMARY KEY (tenant_id, copy_id, resource, crm_id)
);

CREATE TABLE missed_record (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  crm_id bigint NOT NULL,
  missed_at timestamptz NOT NULL,
  CONSTRAINT missed_record_pkey PRIMARY KEY (tenant_id, copy_id, resource, crm_id)
);

CREATE TABLE sync_list (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  watermark timestamptz,
  read_at timestamptz,
  whole_at timestamptz,
  quiet_reads integer NOT NULL DEFAULT 0,
  CONSTRAINT sync_list_pkey PRIMARY KEY (tenant_id, copy_id, resource)
);

CREATE TABLE sync_pass (
  tenant_id bigint NOT NULL,
  copy_id bigint NOT NULL,
  resource text NOT NULL,
  kind text NOT NULL CONSTRAINT sync_pass_kind CHECK (kind IN ('WHOLE', 'CHANGES')),
  removes boolean NOT NULL,
  updated_since timestamptz,
  began_at timestamptz,
  cursor text,
  last_id bigint NOT NULL DEFAULT 0,
  walk integer NOT NULL DEFAULT 1,
  first_walk_ended_at timestamptz, in_vain_since timestamptz, begun_anew_at timestamptz,
  CONSTRAINT sync_pass_pkey PRIMARY KEY (tenant_id, copy_id, resource, kind)
);
`;

/**
 * Row policies, forced on the tables' owner too. A session sees the rows of the tenant that it was set to, and one that
 * was set to nothing sees nothing; work across tenants acts as a role of its own.
 */
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
 * A copy is of one tenant. Without knowing that, PostgreSQL takes "of this tenant and of this copy" for a condition that
 * hardly any row meets, and reads all meetings of a tenant where it wants one. Takes effect with the next ANALYZE.
 */
const COPIES_OF_TENANTS = `
DO $$
DECLARE name text;
BEGIN
  FOR name IN
    SELECT table_name FROM information_schema.columns
    WHERE table_schema = 'public' AND column_name IN ('tenant_id', 'copy_id') GROUP BY 1 HAVING count(*) = 2
  LOOP
    EXECUTE format('CREATE STATISTICS %I (dependencies) ON tenant_id, copy_id FROM %I', name || '_copy_of_tenant', name);
  END LOOP;
END $$;
`;

export const UP = [NOBODYS, TENANT_TABLES, SYNCED_TABLES, KEEP_APART, COPIES_OF_TENANTS].join("\n");

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
