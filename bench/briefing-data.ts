import type { Client } from "pg";
import { judgeDeals } from "../src/briefing/quiet/stored-silence";
import { createDataSource } from "../src/database/data-source";
import { Database } from "../src/database/database";
import { entities } from "../src/entities";
import { Secret } from "../src/platform/keyring";
import { withClient } from "./tenants";

/** Of each tenant; together 1,000 synced records. */
const SETUP = { users: 10, pipelines: 2, stages: 8 };
const COUNTS = { organizations: 60, persons: 180, deals: 120, participants: 120, activities: 350, notes: 150 };
export const RECORDS_OF_TENANT = [...Object.values(SETUP), ...Object.values(COUNTS)].reduce(
  (sum, count) => sum + count,
);
/** Each about a deal, and with the persons of that deal and of the two after it: so each deal is matched. */
export const MEETINGS_OF_TENANT = 40;
export const DEALS_OF_TENANT = COUNTS.deals;
/** Three sentences with some markup, as notes of a call are; behind it stands whose it is, so that no two are the same. */
const NOTE =
  "<p>Spoke about the <b>rollout</b> in spring: they want the security papers first. </p><ul><li>Legal looks at the contract</li><li>Budget is with the <i>CFO</i></li></ul><p>Next call with the whole team, see <a href=''https://example.com/plan''>the plan</a>.</p>";

/** The days since the last contact with a deal: from today to 39 days ago. */
const AGE = (deal: string) => `((${deal}) % 40)`;
const ago = (days: string) => `now() - (${days}) * interval '1 day'`;
/** The tenants, and so many of each for each time that a tenant is as large as the smallest. */
const TENANTS = "generate_series($1::int, $2::int) t";
const each = (count: number, name: string) => `${TENANTS}, generate_series(1, ${count} * $3::int) ${name}`;
const setup = (count: number, name: string) => `${TENANTS}, generate_series(1, ${count}) ${name}`;
const DEALS = `(${COUNTS.deals} * $3::int)`;

const FILL = [
  `INSERT INTO tenant (id, external_id) SELECT t, 'tenant-' || t FROM ${TENANTS}`,
  `INSERT INTO synced_copy (tenant_id, id, crm_company_id, crm_user_id, state, created_at)
   SELECT t, t, t, 1, 'LIVE', now() FROM ${TENANTS}`,
  `INSERT INTO connection (tenant_id, state, state_changed_at, copy_id, company_domain)
   SELECT t, 'CONNECTED', now(), t, 'company' || t FROM ${TENANTS}`,
  `INSERT INTO sync_list (tenant_id, copy_id, resource, watermark, read_at, whole_at)
   SELECT t, t, resource, now(), now(), now() FROM ${TENANTS},
     unnest(ARRAY['USERS', 'PIPELINES', 'STAGES', 'ORGANIZATIONS', 'PERSONS', 'DEALS', 'ACTIVITIES', 'NOTES']) resource`,
  `INSERT INTO data_gap SELECT t, t, 'DEAL_PARTICIPANTS', 1, 'CRM_UNAVAILABLE', 'The CRM did not answer.', now()
   FROM ${TENANTS}`,
  `INSERT INTO crm_user SELECT t, t, g, 'User ' || g, 'u' || g || '@seller.example', 'u' || g || '@seller.example', true
   FROM ${setup(SETUP.users, "g")}`,
  `INSERT INTO pipeline SELECT t, t, g, 'Pipeline ' || g, g FROM ${setup(SETUP.pipelines, "g")}`,
  `INSERT INTO stage SELECT t, t, g, 'Stage ' || g, g, g % 2 + 1, NULL FROM ${setup(SETUP.stages, "g")}`,
  `INSERT INTO organization (tenant_id, copy_id, crm_id, name, owner_id, website, add_time, update_time, custom_fields)
   SELECT t, t, g, 'Company ' || g, g % 10 + 1, 'https://company' || g || '.example', now(), now(), '{"a1b2": "Gold"}'
   FROM ${each(COUNTS.organizations, "g")}`,
  `INSERT INTO person (tenant_id, copy_id, crm_id, name, owner_id, organization_id, emails, phones, last_incoming_mail_time,
     last_outgoing_mail_time, add_time, update_time, custom_fields)
   SELECT t, t, g, 'Person ' || g, g % 10 + 1, (g - 1) / 3 + 1,
     jsonb_build_array(jsonb_build_object('value', 'p' || g || '@buyer.example', 'label', 'work', 'primary', true)),
     '[]', ${ago(`${AGE("g")} + 2`)}, ${ago(`${AGE("g")} + 3`)}, now(), now(), '{"c3d4": 7}'
   FROM ${each(COUNTS.persons, "g")}`,
  `INSERT INTO deal (tenant_id, copy_id, crm_id, title, value, currency, status, owner_id, person_id, organization_id, pipeline_id,
     stage_id, participants_count, participants_due, participants_known, expected_close_date, stage_change_time, add_time, update_time, custom_fields)
   SELECT t, t, g, 'Deal ' || g, 1000 + g, 'EUR', CASE g % 6 WHEN 0 THEN 'won' ELSE 'open' END, g % 10 + 1, g,
     (g - 1) / 3 + 1, g % 8 % 2 + 1, g % 8 + 1, 1, false, true, current_date + 30, ${ago("50")}, ${ago("90")},
     ${ago(AGE("g"))}, '{"e5f6": "Renewal", "a7b8": 42}'
   FROM ${each(COUNTS.deals, "g")}`,
  `INSERT INTO deal_participant SELECT t, t, g, g % ${DEALS} + 1 FROM ${each(COUNTS.participants, "g")}`,
  // The first 120 are done, one a deal, and so are the second; of the rest every tenth deal has one that is ahead.
  `INSERT INTO activity (tenant_id, copy_id, crm_id, subject, type, owner_id, deal_id, person_id, organization_id, participant_ids,
     due_at, due_has_time, done, done_at, happened_at, add_time, update_time)
   SELECT t, t, g, 'Activity ' || g, 'call', g % 10 + 1, deal, deal, (deal - 1) / 3 + 1, '{}', at, true, done,
     CASE WHEN done THEN at END, CASE WHEN done THEN at END, now(), now()
   FROM (SELECT t, g, deal, done, CASE WHEN done THEN ${ago(`${AGE("deal")} + 3 * (g / ${DEALS})`)} ELSE now() + interval '5 days' END AS at
         FROM (SELECT t, g, g % ${DEALS} + 1 AS deal, NOT (g > 2 * ${DEALS} AND g % 10 = 3) AS done FROM ${each(COUNTS.activities, "g")}) g) g`,
  `INSERT INTO note SELECT t, t, g, '${NOTE}' || t || '-' || g, g % 10 + 1, g % ${DEALS} + 1, g % ${DEALS} + 1, g % ${DEALS} / 3 + 1,
     ${ago(`${AGE("g % 120 + 1")} + 1`)} FROM ${each(COUNTS.notes, "g")}`,
  `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, ends_at, owner_email, owner_key, search_text, recorded_by,
     recorded_at)
   SELECT t, md5(t || ':' || g)::uuid, 'm-' || g, 'Meeting ' || g, ${ago(`${AGE("3 * g")} + 1`)}, ${ago(`${AGE("3 * g")} + 0.96`)},
     'u1@seller.example', 'u1@seller.example', (SELECT string_agg(line, E'\\n')
       FROM (SELECT 'meeting ' || g AS line UNION ALL SELECT 'p' || p || E'@buyer.example\\nperson' FROM generate_series(0, 3) p) found),
     'u1', now() FROM ${each(MEETINGS_OF_TENANT, "g")}`,
  `INSERT INTO meeting_attendee (tenant_id, meeting_id, position, email, name, side, match_status, match_rule, match_reason,
     person_id, candidate_ids, organization_status, organization_id, organization_rule, organization_reason)
   SELECT t, md5(t || ':' || g)::uuid, p, 'p' || p || '@buyer.example', 'Person', CASE p WHEN 0 THEN 'SELLER' ELSE 'BUYER' END,
     CASE p WHEN 0 THEN 'NONE' ELSE 'MATCHED' END, 'EMAIL', 'The address is that of one person.',
     CASE WHEN p > 0 THEN 3 * (g - 1) + p END, '{}', CASE p WHEN 0 THEN 'NONE' ELSE 'MATCHED' END, CASE WHEN p > 0 THEN g END, 'PERSON', 'Theirs.'
   FROM ${each(MEETINGS_OF_TENANT, "g")}, generate_series(0, 3) p`,
  `INSERT INTO meeting_match (tenant_id, meeting_id, copy_id, starts_at, status, rule, reason, deal_id, candidates, matched_at, fingerprint)
   SELECT t, md5(t || ':' || g)::uuid, t, ${ago(`${AGE("3 * g")} + 1`)}, CASE g % 10 WHEN 9 THEN 'NEEDS_CHOICE' ELSE 'MATCHED' END,
     'OPEN_DEAL', 'The one open deal of the attendees.',
     3 * (g - 1) + 1, '[]', now(), '' FROM ${each(MEETINGS_OF_TENANT, "g")}`,
  `INSERT INTO matched_record (tenant_id, copy_id, entity, crm_id, meeting_id)
   SELECT t, t, entity, CASE entity WHEN 'ORGANIZATION' THEN g ELSE 3 * (g - 1) + p END, md5(t || ':' || g)::uuid
   FROM ${each(MEETINGS_OF_TENANT, "g")}, generate_series(1, 3) p, unnest(ARRAY['DEAL', 'PERSON', 'ORGANIZATION']) entity
   WHERE entity <> 'ORGANIZATION' OR p = 1`,
];

/** Whoever connects next gets ids that were not given here. */
const NEXT_IDS = `SELECT setval(pg_get_serial_sequence(table_name, column_name), 1000000)
  FROM information_schema.columns WHERE table_schema = 'public' AND is_identity = 'YES'`;

/** Tenants with numbers from `from` to `to`, each with so many times 1,000 synced records and 40 meetings. */
export interface Filling {
  from: number;
  to: number;
  times: number;
}

/** Made by SQL: what a sync, the meetings and the judging of their deals would have written. */
export async function fill(client: Client, { from, to, times }: Filling): Promise<void> {
  for (const sql of FILL) {
    const used = [from, to, times].slice(0, sql.includes("$3") ? 3 : 2);
    await client.query(sql, used);
  }
  await client.query(NEXT_IDS);
}

/** As other versions are asked to do it. */
export async function fillTenants(client: Client, tenants: number): Promise<void> {
  await fill(client, { from: 1, to: tenants, times: 1 });
  await client.query("VACUUM ANALYZE");
}

/** All of them hold the same, so one is judged and the others get what came of it. */
export async function judgeTenants(databaseUrl: string, { from, to, times }: Filling): Promise<void> {
  const dataSource = await createDataSource({ url: new Secret(databaseUrl), entities }).initialize();
  try {
    const ids = Array.from({ length: DEALS_OF_TENANT * times }, (_, index) => index + 1);
    const scope = { ...new Database(dataSource).tenant(from), copyId: from };
    await judgeDeals(scope, ids, new Date());
  } finally {
    await dataSource.destroy();
  }
  await withClient(databaseUrl, async (client) => {
    const columns = (
      await client.query<{ name: string }>(
        "SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'deal_silence' AND column_name NOT IN ('tenant_id', 'copy_id')",
      )
    ).rows.map(({ name }) => name);
    await client.query(
      `INSERT INTO deal_silence (tenant_id, copy_id, ${columns})
       SELECT t, t, ${columns} FROM deal_silence, generate_series($1::int + 1, $2::int) t WHERE tenant_id = $1`,
      [from, to],
    );
  });
}
