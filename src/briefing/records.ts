import type { ObjectLiteral, ObjectType } from "typeorm";
import { type CopyScope, rowsOf } from "../database/database";
import type { Ids } from "../database/reads";
import { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import { DealRow } from "../entities/deal";
import type { MatchedEntity } from "../entities/meeting";
import { ActivityRow, type NoteHead, NoteRow, OrganizationRow, PersonRow } from "../entities/records";
import { normalizeAddress } from "../platform/email-address";
import { isOurNote } from "./notes";
import type { ContactKind } from "./quiet/facts";
import { HAPPENED_AT } from "./quiet/read-quiet";

/**
 * The only way in which deals, persons and organizations are read (decision 0005): every statement about them below carries
 * this condition, so a record that was never matched to a meeting is answered as one that does not exist.
 */
export const isMatched = (entity: MatchedEntity) => `EXISTS (
  SELECT 1 FROM matched_record m
  WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = '${entity}' AND m.crm_id = t.crm_id OFFSET 0)`;

/** A record in a list of another one. */
type OfParent = { parent_id: number };

interface MatchedRows {
  DEAL: DealRow;
  PERSON: PersonRow;
  ORGANIZATION: OrganizationRow;
}

const MATCHED_TABLES: { [E in MatchedEntity]: new () => MatchedRows[E] } = {
  DEAL: DealRow,
  PERSON: PersonRow,
  ORGANIZATION: OrganizationRow,
};

export function readMatched<E extends MatchedEntity>(
  scope: CopyScope,
  entity: E,
  ids: Ids,
): Promise<MatchedRows[E][]> {
  return scope.entities(
    MATCHED_TABLES[entity],
    `SELECT t.* FROM ${entity.toLowerCase()} t
     WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${isMatched(entity)}`,
    [scope.tenantId, scope.copyId, ids],
  );
}

/** Users, pipelines and stages: the company's setup, readable as a whole. */
export function readSetup<T extends ObjectLiteral>(
  scope: CopyScope,
  entity: ObjectType<T>,
  ids: Ids,
): Promise<T[]> {
  const { tableName } = scope.metadata(entity);
  const sql = `SELECT * FROM ${tableName} WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3)`;
  return scope.entities(entity, sql, [scope.tenantId, scope.copyId, ids]);
}

/** Larger than any list that somebody chooses from. */
const MOST_PIPELINES = 100;
const MOST_STAGES = 100;
const MOST_USERS = 500;

export function readPipelines({ tenantId, copyId, entities }: CopyScope): Promise<PipelineRow[]> {
  return entities(
    PipelineRow,
    `SELECT * FROM pipeline WHERE tenant_id = $1 AND copy_id = $2 ORDER BY position, crm_id LIMIT ${MOST_PIPELINES}`,
    [tenantId, copyId],
  );
}

/** The stages of pipelines, each in its place. */
export function readStagesOf({ tenantId, copyId, entities }: CopyScope, ids: Ids): Promise<StageRow[]> {
  return entities(
    StageRow,
    `SELECT s.* FROM unnest($3::bigint[]) AS parent (id) CROSS JOIN LATERAL (
       SELECT * FROM stage WHERE tenant_id = $1 AND copy_id = $2 AND pipeline_id = parent.id
       ORDER BY position, crm_id LIMIT ${MOST_STAGES}) s`,
    [tenantId, copyId, ids],
  );
}

/** Those who are active first. */
export function readUsers({ tenantId, copyId, entities }: CopyScope): Promise<CrmUserRow[]> {
  return entities(
    CrmUserRow,
    `SELECT * FROM crm_user WHERE tenant_id = $1 AND copy_id = $2 ORDER BY active DESC, name, crm_id LIMIT ${MOST_USERS}`,
    [tenantId, copyId],
  );
}

/** The CRM users with these e-mail addresses, in whatever spelling. */
export async function readUsersByEmail(scope: CopyScope, emails: readonly string[]): Promise<CrmUserRow[]> {
  const addresses = emails.map(normalizeAddress).filter((address) => address !== null);
  return scope.entities(
    CrmUserRow,
    `SELECT * FROM crm_user WHERE tenant_id = $1 AND copy_id = $2 AND address = ANY ($3) ORDER BY active DESC, crm_id`,
    [scope.tenantId, scope.copyId, addresses],
  );
}

/** More take part in no deal that people keep; what a client gets must be bounded. */
export const MOST_PARTICIPANTS = 100;
/** Persons of a large meeting may be on hundreds of deals. */
export const MOST_OTHER_DEALS = 50;

/** Whether persons or organizations are held; it opens none of them. */
export function readHeld(
  { tenantId, copyId, rows }: CopyScope,
  entity: "PERSON" | "ORGANIZATION",
  ids: Ids,
): Promise<{ crmId: number }[]> {
  const sql = `SELECT t.crm_id AS "crmId" FROM ${entity.toLowerCase()} t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3)`;
  return rows<{ crmId: number }>(sql, [tenantId, copyId, ids], { crmId: "number" });
}

/** Who takes part in deals, whether readable or not. */
export function readParticipantIds(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: Ids,
): Promise<{ dealId: number; personId: number }[]> {
  return rows<{ dealId: number; personId: number }>(
    `SELECT x.deal_id AS "dealId", x.person_id AS "personId" FROM deal_participant x
     WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.deal_id = ANY ($3)`,
    [tenantId, copyId, dealIds],
    { dealId: "number", personId: "number" },
  );
}

/** The persons who take part in deals, by name. */
export function readParticipants(scope: CopyScope, dealIds: Ids): Promise<(PersonRow & OfParent)[]> {
  return scope.entities<PersonRow, OfParent>(
    PersonRow,
    `SELECT found.*, parent.id AS parent_id FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM deal_participant x
       JOIN person t ON t.tenant_id = $1 AND t.copy_id = x.copy_id AND t.crm_id = x.person_id
       WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.deal_id = parent.id AND ${isMatched("PERSON")}
       ORDER BY t.name, t.crm_id LIMIT ${MOST_PARTICIPANTS}
     ) found`,
    [scope.tenantId, scope.copyId, dealIds],
  );
}

/** The first persons of organizations, by name. */
export function readPersonsOf(
  scope: CopyScope,
  organizationIds: Ids,
  first: number,
): Promise<(PersonRow & OfParent)[]> {
  return scope.entities<PersonRow, OfParent>(
    PersonRow,
    `SELECT found.*, parent.id AS parent_id FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM person t
       WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.organization_id = parent.id AND ${isMatched("PERSON")}
       ORDER BY t.name, t.crm_id LIMIT $4
     ) found`,
    [scope.tenantId, scope.copyId, organizationIds, first],
  );
}

const DEALS_OF = {
  PERSON: `SELECT crm_id FROM deal WHERE tenant_id = $1 AND copy_id = $2 AND person_id = parent.id
    UNION SELECT deal_id FROM deal_participant WHERE tenant_id = $1 AND copy_id = $2 AND person_id = parent.id`,
  ORGANIZATION: "SELECT crm_id FROM deal WHERE tenant_id = $1 AND copy_id = $2 AND organization_id = parent.id",
} as const;

/** The open deals of persons (theirs, or taken part in) or of organizations, newest change first. */
export function readOpenDealsOf(
  scope: CopyScope,
  of: keyof typeof DEALS_OF,
  ids: Ids,
  first: number,
): Promise<(DealRow & OfParent)[]> {
  return scope.entities<DealRow, OfParent>(
    DealRow,
    `SELECT found.*, parent.id AS parent_id FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM (${DEALS_OF[of]}) of_parent
       JOIN deal t ON t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = of_parent.crm_id
       WHERE t.status = 'open' AND ${isMatched("DEAL")}
       ORDER BY t.update_time DESC NULLS LAST, t.crm_id DESC LIMIT $4
     ) found`,
    [scope.tenantId, scope.copyId, ids, first],
  );
}

/** The deals that meetings made readable, without the one that each is about: open ones first, then newest change. */
export function readOtherDeals(
  scope: CopyScope,
  meetingIds: Ids<string>,
): Promise<(DealRow & { meeting_id: string })[]> {
  return scope.entities<DealRow, { meeting_id: string }>(
    DealRow,
    `SELECT found.*, parent.id AS meeting_id FROM unnest($3::uuid[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM matched_record r
       JOIN deal t ON t.tenant_id = $1 AND t.copy_id = r.copy_id AND t.crm_id = r.crm_id
       WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.entity = 'DEAL' AND r.meeting_id = parent.id
         AND NOT EXISTS (SELECT 1 FROM meeting_match mm
           WHERE mm.tenant_id = $1 AND mm.meeting_id = parent.id AND mm.copy_id = $2 AND mm.deal_id = t.crm_id)
       ORDER BY t.status <> 'open', t.update_time DESC NULLS LAST, t.crm_id DESC LIMIT ${MOST_OTHER_DEALS}
     ) found`,
    [scope.tenantId, scope.copyId, meetingIds],
  );
}

/** The column by which activities and notes hang on a record. The caller has read that record as a matched one. */
const COLUMN: Record<MatchedEntity, string> = { DEAL: "deal_id", PERSON: "person_id", ORGANIZATION: "organization_id" };

/** Whether this service wrote it. */
type Authored = { ours: boolean };

/** The latest done activities of records, newest first by when they took place; planned ones are never among them. */
export function readRecentActivities(
  { tenantId, copyId, entities }: CopyScope,
  of: MatchedEntity,
  ids: Ids,
  first: number,
): Promise<(ActivityRow & OfParent)[]> {
  return entities<ActivityRow, OfParent>(
    ActivityRow,
    `SELECT found.*, parent.id AS parent_id FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM activity t
       WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.${COLUMN[of]} = parent.id AND t.happened_at IS NOT NULL
       ORDER BY t.happened_at DESC, t.crm_id DESC LIMIT $4
     ) found`,
    [tenantId, copyId, ids, first],
  );
}

/**
 * The next planned activity of each deal: the earliest undone one that is due at or after `now`, or on this day (UTC)
 * where it has no time. What is overdue is not next.
 */
export function readNextActivities(
  { tenantId, copyId, entities }: CopyScope,
  dealIds: Ids,
  now: Date,
): Promise<(ActivityRow & OfParent)[]> {
  return entities<ActivityRow, OfParent>(
    ActivityRow,
    `SELECT DISTINCT ON (t.deal_id) t.*, t.deal_id AS parent_id FROM activity t
     WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.deal_id = ANY ($3) AND NOT t.done
       AND (t.due_at >= $4 OR (NOT t.due_has_time AND t.due_at >= date_trunc('day', $4::timestamptz, 'UTC')))
     ORDER BY t.deal_id, t.due_at, t.crm_id`,
    [tenantId, copyId, dealIds, now],
  );
}

/** Without the content, which is large: `notes.ts` reads what is shown of it. */
const NOTE_HEAD = (note: string) =>
  ["tenant_id", "copy_id", "crm_id", "author_id", "deal_id", "person_id", "organization_id", "add_time", "update_time"]
    .map((column) => `${note}.${column}`)
    .join(", ");

/** The latest notes of records, newest first. */
export function readRecentNotes(
  { tenantId, copyId, entities }: CopyScope,
  of: MatchedEntity,
  ids: Ids,
  first: number,
): Promise<(NoteHead & OfParent & Authored)[]> {
  return entities<NoteHead, OfParent & Authored>(
    NoteRow,
    `SELECT ${NOTE_HEAD("found")}, parent.id AS parent_id, ${isOurNote("found")} AS ours FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM note t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.${COLUMN[of]} = parent.id
       ORDER BY t.add_time DESC, t.crm_id DESC LIMIT $4
     ) found`,
    [tenantId, copyId, ids, first],
  );
}

/**
 * An activity or note by its own id is readable where it hangs on a matched record. Each is looked up by its key: without
 * OFFSET, or in one condition, all matched records of the copy were read.
 */
const HANGS_ON_MATCHED = `(${(["DEAL", "PERSON", "ORGANIZATION"] as const)
  .map(
    (entity) => `EXISTS (SELECT 1 FROM matched_record m
      WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = '${entity}' AND m.crm_id = t.${COLUMN[entity]} OFFSET 0)`,
  )
  .join(" OR ")})`;

export function readActivities(scope: CopyScope, ids: Ids): Promise<ActivityRow[]> {
  const sql = `SELECT t.* FROM activity t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${HANGS_ON_MATCHED}`;
  return scope.entities(ActivityRow, sql, [scope.tenantId, scope.copyId, ids]);
}

export function readNotes(scope: CopyScope, ids: Ids): Promise<(NoteHead & Authored)[]> {
  const sql = `SELECT ${NOTE_HEAD("t")}, ${isOurNote("t")} AS ours FROM note t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${HANGS_ON_MATCHED}`;
  return scope.entities<NoteHead, Authored>(NoteRow, sql, [scope.tenantId, scope.copyId, ids]);
}

/** A contact with a buyer. The person may be one who is not readable. */
export interface InteractionRow {
  kind: ContactKind | "MEETING";
  at: Date;
  personId: number | null;
  activityId: number | null;
}

/**
 * SQL, as arrays: the deal that a meeting is about, or while that is not certain all that it could be about; the attendees that
 * are known persons; with these all persons whose mail is a contact, the people of the deals, by whom silence is judged; and
 * the first mails of ours, with to whom. Most have a null for what a row has not, by which nothing is found.
 */
const AROUND = `SELECT array_agg(DISTINCT r.deal_id) AS deals, array_agg(r.person_id) AS attendees,
    array_agg(coalesce(r.person_id, x.person_id)) AS people, array_agg(x.mail_at) AS mails, array_agg(x.mailed_id) AS mailed
  FROM (
    SELECT CASE r.entity WHEN 'DEAL' THEN r.crm_id END AS deal_id, CASE r.entity WHEN 'PERSON' THEN r.crm_id END AS person_id
    FROM ${rowsOf("matched_record", "meeting_id", "parent.id")} r
    WHERE CASE r.entity WHEN 'DEAL' THEN r.crm_id = coalesce(about.deal_id, r.crm_id) WHEN 'PERSON' THEN r.crm_id IN (
      SELECT b.person_id FROM meeting_attendee b WHERE b.tenant_id = $1 AND b.meeting_id = parent.id) END) r
  LEFT JOIN LATERAL (
    SELECT d.person_id, d.first_mail_at, d.first_mail_person_id FROM ${rowsOf("deal", "crm_id", "r.deal_id")} d
    UNION ALL SELECT p.person_id, NULL, NULL FROM ${rowsOf("deal_participant", "deal_id", "r.deal_id")} p
  ) x (person_id, mail_at, mailed_id) ON true`;

/** SQL: the done activities and the notes that hang on a record. */
const hangingOn = (column: string, id: string) => `
  SELECT 'ACTIVITY', ${HAPPENED_AT}, a.person_id, a.crm_id, NULL::text, NULL::uuid FROM ${rowsOf("activity", column, id)} a
  WHERE a.happened_at IS NOT NULL
  UNION ALL SELECT 'NOTE', n.add_time, n.person_id, n.crm_id, n.content, NULL FROM ${rowsOf("note", column, id)} n`;

/** SQL: the meetings that are about a deal, and those in which a person was found; they may have been recorded without since. */
const MEETINGS = `
  SELECT mm.meeting_id, NULL FROM ${rowsOf("meeting_match", "deal_id", "of.deal")} mm WHERE mm.status = 'MATCHED'
  UNION ALL SELECT r.meeting_id, r.crm_id FROM matched_record r
  WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.entity = 'PERSON' AND r.crm_id = of.attendee`;

/** SQL: the first BUYER of a held meeting who is a known person; no row where it has no BUYER, or not that person any more. */
const BUYER = `SELECT (min(ARRAY[b.position, b.person_id]) FILTER (WHERE b.side = 'BUYER' AND b.person_id IS NOT NULL))[2] AS person_id
  FROM meeting_attendee b WHERE b.tenant_id = $1 AND b.meeting_id = m.id
  HAVING bool_or(b.side = 'BUYER') AND (held.person_id IS NULL OR bool_or(b.person_id = held.person_id))`;

/** SQL: the contacts by one row of ids, each table by its key, whatever is known of it; what hangs on two ids comes twice. */
const INTERACTIONS = `
  ${hangingOn("deal_id", "of.deal")} UNION ALL ${hangingOn("person_id", "of.attendee")}
  UNION ALL SELECT mail.kind, mail.at, p.crm_id, p.crm_id, NULL, NULL FROM ${rowsOf("person", "crm_id", "of.person")} p
  CROSS JOIN LATERAL (VALUES ('INCOMING_MAIL', p.last_incoming_mail_time), ('OUTGOING_MAIL', p.last_outgoing_mail_time)) mail (kind, at)
  WHERE mail.at IS NOT NULL
  UNION ALL SELECT 'OUTGOING_MAIL', of.mail_at, of.mailed, of.mailed, NULL, NULL WHERE of.mailed = ANY (around.people)
  UNION ALL SELECT 'MEETING', coalesce(m.ends_at, m.starts_at), buyer.person_id, 0, NULL, m.id
  FROM (${MEETINGS}) held (meeting_id, person_id) CROSS JOIN LATERAL (
    SELECT * FROM meeting t WHERE t.tenant_id = $1 AND t.id BETWEEN held.meeting_id AND held.meeting_id ORDER BY t.id) m
  CROSS JOIN LATERAL (${BUYER}) buyer WHERE coalesce(m.ends_at, m.starts_at) <= $3`;

/**
 * The latest interactions around meetings, newest first: with the deal that each is about and its known attendees, as
 * far as they are readable. A match of an earlier copy gives nothing.
 */
export async function readTimelines(
  { tenantId, copyId, rows }: CopyScope,
  meetingIds: Ids<string>,
  first: number,
  now: Date,
): Promise<(InteractionRow & { parent_id: string })[]> {
  const order = "at DESC, kind, crm_id DESC, meeting_id";
  return rows<InteractionRow & { parent_id: string }>(
    `SELECT parent.id AS parent_id, found.kind, found.at, found.person_id AS "personId",
       CASE found.kind WHEN 'ACTIVITY' THEN found.crm_id END AS "activityId"
     FROM unnest($5::uuid[]) AS parent (id) JOIN synced_copy our ON our.tenant_id = $1 AND our.id = $2
     CROSS JOIN LATERAL ${rowsOf("meeting_match", "meeting_id", "parent.id")} about
     CROSS JOIN LATERAL (${AROUND}) around
     CROSS JOIN LATERAL (
       SELECT kind, at, person_id, crm_id FROM (
         SELECT DISTINCT ON (${order.replaceAll(" DESC", "")}) every.*
         FROM unnest(around.deals, around.attendees, around.people, around.mails, around.mailed) AS of (deal, attendee, person, mail_at, mailed)
         CROSS JOIN LATERAL (${INTERACTIONS}) every (kind, at, person_id, crm_id, content, meeting_id)
         ORDER BY ${order}) every
       WHERE kind <> 'NOTE' OR NOT ${isOurNote("every", "our.crm_company_id")} ORDER BY ${order} LIMIT $4
     ) found`,
    [tenantId, copyId, now, first, meetingIds],
    { parent_id: "text", kind: "text", at: "instant", personId: "number", activityId: "number" },
  );
}
