import { createServer } from "node:http";
import { Pool } from "pg";
import { failed, say } from "./print";

/**
 * A server that a team would write for these two answers and nothing else: one statement, prepared, that makes the
 * answer's JSON, sent on as it comes. No token is proven, no query is parsed, no session is set to its tenant, and a
 * deal's silence has its verdict and date but no reasons.
 */

/** The phase of a deal's stored schedule that holds now. */
export const silenceOf = (
  tenant: string,
  copy: string,
  deal: string,
) => `SELECT s.verdict, s.quiet_since FROM deal_silence s
  WHERE s.tenant_id = ${tenant} AND s.copy_id = ${copy} AND s.deal_id = ${deal} AND s.holds_from <= now() AND s.holds_until > now()`;

const NAMED = (row: string) =>
  `CASE WHEN ${row}.crm_id IS NOT NULL THEN json_build_object('id', ${row}.crm_id, 'name', ${row}.name) END`;
const CRM_URL = (kind: string, id: string) => `'https://' || c.company_domain || '.pipedrive.com/${kind}/' || ${id}`;
const ROW_OF = (table: string, id: string) =>
  `LEFT JOIN ${table} ON ${table}.tenant_id = d.tenant_id AND ${table}.copy_id = d.copy_id AND ${table}.crm_id = d.${id}`;
const EDGES = [
  ROW_OF("stage", "stage_id"),
  ROW_OF("pipeline", "pipeline_id"),
  ROW_OF("crm_user", "owner_id"),
  ROW_OF("organization", "organization_id"),
].join("\n");
const DEAL = `'id', d.crm_id, 'title', d.title, 'status', d.status,
  'value', json_build_object('amount', d.value::text, 'currency', d.currency), 'stage', ${NAMED("stage")},
  'pipeline', ${NAMED("pipeline")}, 'owner', ${NAMED("crm_user")}, 'organization', ${NAMED("organization")},
  'crmUrl', ${CRM_URL("deal", "d.crm_id")}`;
const QUIET = `json_build_object('verdict', quiet.verdict, 'quietSince', quiet.quiet_since,
  'quietDays', extract(day FROM now() - quiet.quiet_since))`;
const list = (row: string, from: string, order = "1") =>
  `(SELECT coalesce(json_agg(x.row), '[]') FROM (SELECT ${row} AS row FROM ${from} ORDER BY ${order}) x)`;

const OF_DEAL = "tenant_id = d.tenant_id AND x.copy_id = d.copy_id AND x.deal_id = d.crm_id";
const THE_DEAL = `(SELECT json_build_object(${DEAL}, 'expectedCloseDate', d.expected_close_date,
    'stageChangedAt', d.stage_change_time, 'participantsKnown', d.participants_known,
    'participants', ${list(NAMED("p"), `deal_participant x JOIN person p ON p.tenant_id = x.tenant_id AND p.copy_id = x.copy_id AND p.crm_id = x.person_id WHERE x.${OF_DEAL} AND ${"EXISTS (SELECT 1 FROM matched_record r WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.entity = 'PERSON' AND r.crm_id = p.crm_id)"}`, "p.name")},
    'nextActivity', (SELECT json_build_object('id', x.crm_id, 'subject', x.subject, 'type', x.type, 'dueAt', x.due_at)
      FROM activity x WHERE x.${OF_DEAL} AND NOT x.done AND x.due_at >= now() ORDER BY x.due_at LIMIT 1),
    'recentActivities', ${list(
      `json_build_object('id', x.crm_id, 'subject', x.subject, 'type', x.type, 'doneAt', x.done_at, 'owner', ${NAMED("u")})`,
      `(SELECT * FROM activity x WHERE x.${OF_DEAL} AND x.happened_at IS NOT NULL ORDER BY x.happened_at DESC LIMIT 5) x
       LEFT JOIN crm_user u ON u.tenant_id = x.tenant_id AND u.copy_id = x.copy_id AND u.crm_id = x.owner_id`,
      "x.happened_at DESC",
    )},
    'recentNotes', ${list(
      `json_build_object('id', x.crm_id, 'text', x.content, 'createdAt', x.add_time, 'author', ${NAMED("u")})`,
      `(SELECT * FROM note x WHERE x.${OF_DEAL} ORDER BY x.add_time DESC LIMIT 5) x
       LEFT JOIN crm_user u ON u.tenant_id = x.tenant_id AND u.copy_id = x.copy_id AND u.crm_id = x.author_id`,
      "x.add_time DESC",
    )},
    'quiet', ${QUIET})
  FROM deal d ${EDGES} CROSS JOIN LATERAL (${silenceOf("$1", "$2", "d.crm_id")}) quiet
  WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = mm.deal_id)`;

export const TIMELINE = (tenant: string, copy: string, meeting: string, deal: string) => {
  const persons = `(SELECT r.crm_id FROM matched_record r WHERE r.tenant_id = ${tenant} AND r.meeting_id = ${meeting} AND r.entity = 'PERSON')`;
  const hanging = (
    table: string,
  ) => `(SELECT * FROM ${table} WHERE tenant_id = ${tenant} AND copy_id = ${copy} AND deal_id = ${deal}
    UNION SELECT * FROM ${table} WHERE tenant_id = ${tenant} AND copy_id = ${copy} AND person_id IN ${persons})`;
  return `SELECT found.kind, found.at, found.person_id, found.activity_id FROM (
    SELECT mail.kind, mail.at, p.crm_id AS person_id, NULL::bigint AS activity_id FROM person p
    CROSS JOIN LATERAL (VALUES ('INCOMING_MAIL', p.last_incoming_mail_time), ('OUTGOING_MAIL', p.last_outgoing_mail_time)) mail (kind, at)
    WHERE p.tenant_id = ${tenant} AND p.copy_id = ${copy} AND p.crm_id IN ${persons} AND mail.at IS NOT NULL
    UNION ALL SELECT 'ACTIVITY', a.happened_at, a.person_id, a.crm_id FROM ${hanging("activity")} a WHERE a.happened_at IS NOT NULL
    UNION ALL SELECT 'NOTE', n.add_time, n.person_id, NULL FROM ${hanging("note")} n
    UNION ALL SELECT 'MEETING', m.ends_at, NULL, NULL FROM meeting_match x JOIN meeting m ON m.tenant_id = x.tenant_id AND m.id = x.meeting_id
    WHERE x.tenant_id = ${tenant} AND x.copy_id = ${copy} AND x.deal_id = ${deal} AND x.meeting_id <> ${meeting} AND m.ends_at <= now()
  ) found ORDER BY at DESC LIMIT 20`;
};

const BRIEFING = `
  SELECT json_build_object('data', json_build_object('briefing', json_build_object(
    'meeting', json_build_object('id', m.id, 'title', m.title, 'startsAt', m.starts_at, 'endsAt', m.ends_at,
      'attendees', ${list(
        "json_build_object('email', a.email, 'name', a.name, 'side', a.side, 'match', json_build_object('status', a.match_status, 'reason', a.match_reason))",
        "meeting_attendee a WHERE a.tenant_id = $1 AND a.meeting_id = m.id",
        "a.position",
      )},
      'match', json_build_object('status', mm.status, 'reason', mm.reason)),
    'deal', ${THE_DEAL},
    'otherDeals', ${list(
      `json_build_object(${DEAL})`,
      `matched_record r JOIN deal d ON d.tenant_id = r.tenant_id AND d.copy_id = r.copy_id AND d.crm_id = r.crm_id ${EDGES}
       WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.entity = 'DEAL' AND r.meeting_id = m.id AND d.crm_id <> mm.deal_id`,
      "d.status <> 'open', d.update_time DESC",
    )},
    'persons', ${list(
      `json_build_object('id', d.crm_id, 'name', d.name, 'crmUrl', ${CRM_URL("person", "d.crm_id")}, 'emails', d.emails,
         'lastIncomingMailAt', d.last_incoming_mail_time, 'organization', ${NAMED("organization")})`,
      `matched_record r JOIN person d ON d.tenant_id = r.tenant_id AND d.copy_id = r.copy_id AND d.crm_id = r.crm_id ${ROW_OF("organization", "organization_id")}
       WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.entity = 'PERSON' AND r.meeting_id = m.id`,
      "d.crm_id",
    )},
    'organizations', ${list(
      NAMED("o"),
      `matched_record r JOIN organization o ON o.tenant_id = r.tenant_id AND o.copy_id = r.copy_id AND o.crm_id = r.crm_id
       WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.entity = 'ORGANIZATION' AND r.meeting_id = m.id`,
      "o.crm_id",
    )},
    'timeline', ${list(
      `json_build_object('kind', t.kind, 'at', t.at, 'person', ${NAMED("p")}, 'activity',
         CASE WHEN a.crm_id IS NOT NULL THEN json_build_object('id', a.crm_id, 'subject', a.subject, 'type', a.type) END)`,
      `(${TIMELINE("$1", "$2", "m.id", "mm.deal_id")}) t
       LEFT JOIN person p ON p.tenant_id = $1 AND p.copy_id = $2 AND p.crm_id = t.person_id
       LEFT JOIN activity a ON a.tenant_id = $1 AND a.copy_id = $2 AND a.crm_id = t.activity_id`,
      "t.at DESC",
    )},
    'asOf', (SELECT min(l.watermark) FROM sync_list l WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.resource IN ('PERSONS', 'DEALS', 'ACTIVITIES', 'NOTES')),
    'gaps', ${list("json_build_object('resource', g.resource, 'code', g.code, 'count', 1, 'since', g.since, 'message', g.message)", "data_gap g WHERE g.tenant_id = $1 AND g.copy_id = $2", "g.resource")}
  )))::text AS json
  FROM connection c JOIN meeting m ON m.tenant_id = c.tenant_id JOIN meeting_match mm ON mm.tenant_id = $1 AND mm.meeting_id = m.id
  WHERE c.tenant_id = $1 AND c.copy_id = $2 AND m.id = $3`;

const quietList = (fifty: string) => `
  SELECT json_build_object('data', json_build_object('deals', json_build_object('nodes', json_agg(d.json))))::text AS json
  FROM (SELECT json_build_object(${DEAL}, 'quiet', ${QUIET}) AS json
    FROM (${fifty}) quiet
    JOIN deal d ON d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = quiet.deal_id ${EDGES} JOIN connection c ON c.tenant_id = $1
    ORDER BY quiet.quiet_since, d.crm_id) d`;

/** As anybody would write it. */
const SORTED = `
  SELECT d.crm_id AS deal_id, quiet.verdict, quiet.quiet_since FROM deal d JOIN deal_silence quiet ON quiet.tenant_id = $1 AND quiet.copy_id = $2 AND quiet.deal_id = d.crm_id AND quiet.holds_from <= now() AND quiet.holds_until > now()
  WHERE d.tenant_id = $1 AND d.copy_id = $2 AND quiet.verdict IN ('QUIET', 'GHOSTED')
    AND EXISTS (SELECT 1 FROM matched_record r WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.entity = 'DEAL' AND r.crm_id = d.crm_id)
  ORDER BY quiet.quiet_since, d.crm_id LIMIT 50`;

/** By whoever knows the service's index for just this order; what is not marked by now is missed. No settings were changed. */
const BY_INDEX = `
  SELECT quiet.* FROM unnest(ARRAY['QUIET', 'GHOSTED']) AS wanted (verdict) CROSS JOIN LATERAL (
    SELECT s.deal_id, s.verdict, s.quiet_since FROM deal_silence s
    WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.generation = 0 AND s.is_listed AND s.status = 'open' AND s.verdict = wanted.verdict
    ORDER BY s.quiet_since, s.deal_id LIMIT 50) quiet
  ORDER BY quiet.quiet_since, quiet.deal_id LIMIT 50`;

const STATEMENTS: Record<string, string> = {
  "/briefing": BRIEFING,
  "/quiet": quietList(SORTED),
  "/quiet-by-index": quietList(BY_INDEX),
};

function main(): void {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 20 });
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const name = request.url ?? "";
      const { values } = JSON.parse(body) as { values: unknown[] };
      pool.query<{ json: string }>({ name, text: STATEMENTS[name] ?? "", values }).then(
        ({ rows }) => response.setHeader("content-type", "application/json").end(rows[0]?.json ?? "null"),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  });
  server.listen(0, "127.0.0.1", () => say(`listening at ${JSON.stringify(server.address())}`));
}

if (require.main === module) {
  try {
    main();
  } catch (error) {
    failed(error);
  }
}
