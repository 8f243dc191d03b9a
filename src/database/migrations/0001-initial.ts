import { createHash } from "node:crypto";
import type { MigrationInterface, QueryRunner } from "typeorm";
import { ACROSS_TENANTS_ROLE } from "../application-role";
import { CONNECTION_TABLES } from "./connection-tables";
import { MEETING_TABLES } from "./meeting-tables";
import { SYNCED_TABLES } from "./synced-tables";

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

const UP = [NOBODYS, CONNECTION_TABLES, MEETING_TABLES, SYNCED_TABLES, KEEP_APART, COPIES_OF_TENANTS].join("\n");

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
