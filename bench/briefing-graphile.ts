import { createServer, type Server } from "node:http";
import type { Client } from "pg";
import { peerModule } from "./api-peers";
import { silenceOf, TIMELINE } from "./briefing-limit";
import { failed, say } from "./print";

/**
 * PostGraphile over the same tables: the relations that it needs as smart comments, and what no table holds (a deal's
 * silence, a meeting's timeline) as functions with the same SQL as the hand-written server. It proves no token and has
 * no sessions to set; every list is narrowed by the copy.
 */

const relation = (columns: string, table: string, field: string, foreign = "") =>
  `@foreignKey (tenant_id, copy_id, ${columns}) references ${table} (tenant_id, copy_id, crm_id)|@fieldName ${field}${foreign && `|@foreignFieldName ${foreign}`}`;
const COMMENTS: Record<string, readonly string[]> = {
  deal: [
    relation("stage_id", "stage", "stage"),
    relation("pipeline_id", "pipeline", "pipeline"),
    relation("owner_id", "crm_user", "owner"),
    relation("organization_id", "organization", "organization"),
  ],
  deal_participant: [relation("deal_id", "deal", "deal", "participants"), relation("person_id", "person", "person")],
  activity: [relation("deal_id", "deal", "deal", "activities"), relation("owner_id", "crm_user", "owner")],
  note: [relation("deal_id", "deal", "deal", "notes"), relation("author_id", "crm_user", "author")],
  person: [relation("organization_id", "organization", "organization")],
  meeting_match: [relation("deal_id", "deal", "deal")],
  matched_record: [
    relation("crm_id", "deal", "deal"),
    relation("crm_id", "person", "person"),
    relation("crm_id", "organization", "organization"),
  ],
};

const FUNCTIONS = `
  CREATE FUNCTION deal_quiet(d deal, tenant bigint) RETURNS jsonb STABLE LANGUAGE sql AS $body$
    SELECT jsonb_build_object('verdict', q.verdict, 'quietSince', q.quiet_since)
    FROM (${silenceOf("tenant", "d.copy_id", "d.crm_id")}) q $body$;
  CREATE FUNCTION quiet_deals(tenant bigint, copy bigint) RETURNS SETOF deal STABLE ROWS 50 LANGUAGE sql AS $body$
    SELECT candidate.* FROM deal candidate CROSS JOIN LATERAL (${silenceOf("tenant", "copy", "candidate.crm_id")}) q
    WHERE candidate.tenant_id = tenant AND candidate.copy_id = copy AND q.verdict IN ('QUIET', 'GHOSTED')
      AND EXISTS (SELECT 1 FROM matched_record r WHERE r.tenant_id = tenant AND r.copy_id = copy AND r.entity = 'DEAL' AND r.crm_id = candidate.crm_id)
    ORDER BY q.quiet_since, candidate.crm_id LIMIT 50 $body$;
  CREATE FUNCTION meeting_timeline(meeting meeting) RETURNS jsonb STABLE LANGUAGE sql AS $body$
    SELECT jsonb_agg(jsonb_build_object('kind', t.kind, 'at', t.at,
      'person', CASE WHEN p.crm_id IS NOT NULL THEN jsonb_build_object('id', p.crm_id, 'name', p.name) END,
      'activity', CASE WHEN a.crm_id IS NOT NULL THEN jsonb_build_object('id', a.crm_id, 'subject', a.subject, 'type', a.type) END))
    FROM meeting_match mm
    CROSS JOIN LATERAL (${TIMELINE("mm.tenant_id", "mm.copy_id", "mm.meeting_id", "mm.deal_id")}) t
    LEFT JOIN person p ON p.tenant_id = mm.tenant_id AND p.copy_id = mm.copy_id AND p.crm_id = t.person_id
    LEFT JOIN activity a ON a.tenant_id = mm.tenant_id AND a.copy_id = mm.copy_id AND a.crm_id = t.activity_id
    WHERE mm.tenant_id = meeting.tenant_id AND mm.meeting_id = meeting.id $body$;`;

/** PostGraphile sorts by the columns of whole indexes alone, and these are indexed where they belong to a deal. */
const SORTED = ["activity.happened_at", "note.add_time"];

/** Gives a database what PostGraphile needs to serve it. The service does not notice. */
export async function prepareForGraphile(client: Client): Promise<void> {
  for (const [table, tags] of Object.entries(COMMENTS)) {
    await client.query(`COMMENT ON TABLE ${table} IS ${client.escapeLiteral(tags.join("\n"))}`);
  }
  for (const column of SORTED) await client.query(`COMMENT ON COLUMN ${column} IS '@behavior +orderBy'`);
  await client.query(FUNCTIONS);
}

const NAMED = "{ crmId name }";
const DEAL = `crmId title status value currency stage ${NAMED} pipeline ${NAMED} owner ${NAMED} organization ${NAMED}`;
export const GRAPHILE_BRIEFING = `query Briefing($tenant: BigInt!, $copy: BigInt!, $id: UUID!) {
  meeting: meetingByTenantIdAndRowId(tenantId: $tenant, rowId: $id) { rowId title startsAt endsAt
    attendees: meetingAttendeesByTenantIdAndMeetingId(orderBy: POSITION_ASC) { nodes { email name side matchStatus matchReason } }
    match: meetingMatchByTenantIdAndMeetingId { status reason
      deal { ${DEAL} expectedCloseDate stageChangeTime participantsKnown
        participants { nodes { person ${NAMED} } }
        activities(first: 6, orderBy: HAPPENED_AT_DESC) { nodes { crmId subject type dueAt done doneAt owner ${NAMED} } }
        notes(first: 5, orderBy: ADD_TIME_DESC) { nodes { crmId content addTime author ${NAMED} } }
        quiet(tenant: $tenant) } }
    others: matchedRecordsByTenantIdAndMeetingId(condition: { copyId: $copy, entity: "DEAL" }) { nodes { deal { ${DEAL} } } }
    persons: matchedRecordsByTenantIdAndMeetingId(condition: { copyId: $copy, entity: "PERSON" }) {
      nodes { person { crmId name lastIncomingMailTime emails organization ${NAMED} } } }
    organizations: matchedRecordsByTenantIdAndMeetingId(condition: { copyId: $copy, entity: "ORGANIZATION" }) { nodes { organization ${NAMED} } }
    timeline }
  asOf: allSyncLists(condition: { tenantId: $tenant, copyId: $copy }) { nodes { resource watermark } }
  gaps: allDataGaps(condition: { tenantId: $tenant, copyId: $copy }) { nodes { resource code message since } }
  connection: connectionByTenantId(tenantId: $tenant) { companyDomain } }`;
export const GRAPHILE_QUIET = `query Quiet($tenant: BigInt!, $copy: BigInt!) {
  quietDeals(tenant: $tenant, copy: $copy, first: 50) { nodes { ${DEAL} quiet(tenant: $tenant) } pageInfo { hasNextPage endCursor } } }`;

interface Graphile {
  createServ(make: unknown): { addTo(server: Server): Promise<void> };
  getSchema(): Promise<unknown>;
}

async function main(): Promise<void> {
  const { postgraphile } = peerModule<{ postgraphile(preset: object): Graphile }>("postgraphile", "postgraphile");
  const { PostGraphileAmberPreset } = peerModule<{ PostGraphileAmberPreset: object }>(
    "postgraphile",
    "postgraphile/presets/amber",
  );
  const { makePgService } = peerModule<{ makePgService(options: object): object }>(
    "postgraphile",
    "postgraphile/adaptors/pg",
  );
  const { grafserv } = peerModule<{ grafserv: unknown }>("postgraphile", "postgraphile/grafserv/node");
  const poolConfig = { max: 20 };
  const service = makePgService({ connectionString: process.env.DATABASE_URL, schemas: ["public"], poolConfig });
  const graphile = postgraphile({ extends: [PostGraphileAmberPreset], pgServices: [service] });
  if (process.env.PRINT) {
    const { printSchema } = peerModule<{ printSchema(schema: unknown): string }>("postgraphile", "graphql");
    say(printSchema(await graphile.getSchema()));
    return;
  }
  const server = createServer();
  await graphile.createServ(grafserv).addTo(server);
  server.listen(0, "127.0.0.1", () => say(`listening at ${JSON.stringify(server.address())}`));
}

if (require.main === module) main().catch(failed);
