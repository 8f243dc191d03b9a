import type { ObjectLiteral, ObjectType } from "typeorm";
import type { UnreadDeal, UnreadDeals } from "../connections/completeness";
import { type CopyScope } from "../database/database";
import { type Ids, ms, oneByOne } from "../database/rows";
import { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import { DealRow } from "../entities/deal";
import type { MatchedEntity, StoredDealCandidate } from "../entities/meeting";
import { ActivityRow, type NoteHead, NoteRow, OrganizationRow, PersonRow } from "../entities/records";
import { mailboxIn, normalizeAddress } from "../platform/email-address";
import { matchesOf } from "./meeting-rows";
import { isOurNote } from "./notes";
import { firstMailIsToNobody, TICKED_OFF } from "./quiet/fact-rows";

/**
 * The only way in which deals, persons and organizations are read (decision 0005): every statement about them below carries
 * this condition, so a record that was never matched to a meeting is answered as one that does not exist.
 */
export const isMatched = (entity: MatchedEntity) => `EXISTS (
  SELECT 1 FROM matched_record m
  WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = '${entity}' AND m.crm_id = t.crm_id OFFSET 0)`;

/** SQL: those of many ids that are matched, by one way through the index: one by one each is looked up from its root. @param ids a query */
const matchedAmong = (entity: MatchedEntity, ids: string) => `ARRAY (SELECT m.crm_id FROM matched_record m
  WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = '${entity}' AND m.crm_id = ANY (ARRAY (${ids})))`;

/** A record in a list of another one. */
export type OfParent = { parent_id: number };
export const OF_PARENT = { parent_id: "number" } as const;

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

export function readMatched<E extends MatchedEntity>(scope: CopyScope, entity: E, ids: Ids): Promise<MatchedRows[E][]> {
  return scope.entities(
    MATCHED_TABLES[entity],
    `SELECT t.* FROM ${entity.toLowerCase()} t
     WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${isMatched(entity)}`,
    [scope.tenantId, scope.copyId, ids],
  );
}

/** What a record has in fields of the company's own, by their keys. */
export type CustomFields = Record<string, unknown>;

export function readCustomFields(scope: CopyScope, entity: MatchedEntity, ids: Ids) {
  return scope.rows<{ crmId: number; values: CustomFields }>(
    `SELECT t.crm_id AS "crmId", t.custom_fields AS values FROM ${entity.toLowerCase()} t
     WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${isMatched(entity)}`,
    [scope.tenantId, scope.copyId, ids],
    { crmId: "number", values: "json" },
  );
}

/** Users, pipelines and stages: the company's setup, readable as a whole. */
export function readSetup<T extends ObjectLiteral>(scope: CopyScope, entity: ObjectType<T>, ids: Ids): Promise<T[]> {
  const { tableName } = scope.metadata(entity);
  const sql = `SELECT * FROM ${tableName} WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3)`;
  return scope.entities(entity, sql, [scope.tenantId, scope.copyId, ids]);
}

/** Larger than any list that somebody chooses from. */
export const MOST_OF_SETUP = 100;
const MOST_USERS = 500;

export function readPipelines({ tenantId, copyId, entities }: CopyScope): Promise<PipelineRow[]> {
  return entities(
    PipelineRow,
    `SELECT * FROM pipeline WHERE tenant_id = $1 AND copy_id = $2 ORDER BY position, crm_id LIMIT ${MOST_OF_SETUP}`,
    [tenantId, copyId],
  );
}

/** The stages of pipelines, each in its place. */
export function readStagesOf({ tenantId, copyId, entities }: CopyScope, ids: Ids): Promise<StageRow[]> {
  return entities(
    StageRow,
    `SELECT s.* FROM (
       SELECT t.*, row_number() OVER (PARTITION BY t.pipeline_id ORDER BY t.position, t.crm_id) AS place
       FROM stage t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.pipeline_id = ANY ($3)) s
     WHERE s.place <= ${MOST_OF_SETUP} ORDER BY s.pipeline_id, s.place`,
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

/** The CRM user behind each of these e-mail addresses, in whatever spelling; of several the one with that very address, or none. */
export async function readUsersByEmail(
  { tenantId, copyId, entities }: CopyScope,
  emails: readonly string[],
): Promise<(CrmUserRow | null)[]> {
  const mailboxes = emails.map(mailboxIn);
  const found = await entities(
    CrmUserRow,
    `SELECT * FROM crm_user WHERE tenant_id = $1 AND copy_id = $2 AND mailbox = ANY ($3) ORDER BY active DESC, crm_id`,
    [tenantId, copyId, mailboxes.filter((mailbox) => mailbox !== null)],
  );
  return emails.map((email, index) => {
    const address = normalizeAddress(email);
    const users = found.filter(({ mailbox }) => mailbox === mailboxes[index]);
    const [only = null, ...others] = users;
    return users.find((user) => normalizeAddress(user.email) === address) ?? (others.length === 0 ? only : null);
  });
}

/** Persons of a large meeting may be on hundreds of deals. */
const MOST_OTHER_DEALS = 50;

/** A record that a meeting made readable, by its CRM id as what it is. */
export interface MatchedIds {
  meetingId: string;
  dealId: number | null;
  personId: number | null;
  organizationId: number | null;
}

/** SQL: what one meeting made readable. Each by itself: of many at once, or joined, a kept plan goes through all of a large copy's. */
export const readableBy = (meetingId: string) => `(SELECT meeting_id, entity, crm_id FROM matched_record t
  WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.meeting_id = ${meetingId} OFFSET 0)`;

/** All that meetings made readable, certain or not, held or not. */
export function readMatchedIds({ tenantId, copyId, rows }: CopyScope, meetingIds: Ids<string>): Promise<MatchedIds[]> {
  const idOf = (entity: MatchedEntity) => `CASE r.entity WHEN '${entity}' THEN r.crm_id END`;
  return rows<MatchedIds>(
    `SELECT r.meeting_id AS "meetingId", ${idOf("DEAL")} AS "dealId", ${idOf("PERSON")} AS "personId", ${idOf("ORGANIZATION")} AS "organizationId"
     FROM ${oneByOne("$3", meetingIds)} CROSS JOIN LATERAL ${readableBy("one.id")} r`,
    [tenantId, copyId, meetingIds],
    { meetingId: "text", dealId: "number", personId: "number", organizationId: "number" },
  );
}

/** A choice among more is none; an info@ address may stand at thousands of persons. */
export const MOST_CANDIDATES = 50;
const MATCHED_FIRST = "one.deal_id = own.deal_id DESC NULLS LAST, one.place";

/**
 * The deals that could be meant, by matches of the copy, the matched one first, so that a bounded list never leaves it out. One more
 * than are shown, for it may be gone.
 */
export function readCandidates({ tenantId, copyId, rows }: CopyScope, meetingIds: Ids<string>) {
  return rows<StoredDealCandidate & { meetingId: string }>(
    `SELECT own.meeting_id AS "meetingId", one.deal_id AS "dealId", one.reason FROM ${matchesOf("$3", meetingIds)} own CROSS JOIN LATERAL (
       SELECT * FROM ROWS FROM (jsonb_to_recordset(own.candidates) AS ("dealId" bigint, reason text))
         WITH ORDINALITY AS one (deal_id, reason, place)
       ORDER BY ${MATCHED_FIRST} LIMIT ${MOST_CANDIDATES + 1}) one
     WHERE own.copy_id = $2 ORDER BY own.meeting_id, ${MATCHED_FIRST}`,
    [tenantId, copyId, meetingIds],
    { meetingId: "text", dealId: "number", reason: "text" },
  );
}

/** SQL: the gaps of some deals by their ids, read by one way through their key: joined, all of a copy were gone through for each deal. */
const gapsOf = (
  deals: string,
) => `(SELECT jsonb_object_agg(o.crm_id, jsonb_build_array(o.code, ${ms("o.since")}, o.message)) AS gaps
  FROM data_gap o WHERE o.tenant_id = $1 AND o.copy_id = $2 AND o.resource = 'DEAL_PARTICIPANTS' AND o.crm_id = ANY (${deals})) g`;

/** What a deal names, to whom our first mail about it went, and whether it is known who takes part. */
export interface DealLinks extends UnreadDeal {
  ownerId: number | null;
  pipelineId: number | null;
  stageId: number | null;
  organizationId: number | null;
  personId: number | null;
  firstMailAt: Date | null;
  /** null as well where that person is gone. */
  firstMailPersonId: number | null;
}

const FIRST_MAIL_TO = `CASE WHEN NOT (${firstMailIsToNobody("t")}) THEN t.first_mail_person_id END`;

/** Asked for deals only that were found to be matched. */
export function readDealLinks({ tenantId, copyId, rows }: CopyScope, ids: Ids): Promise<DealLinks[]> {
  return rows<DealLinks>(
    `SELECT t.crm_id AS "crmId", t.participants_due AND NOT t.participants_known AS "isDue", ${ms("t.add_time")} AS "addedAt",
       g.gaps -> t.crm_id::text AS gap, t.owner_id AS "ownerId", t.pipeline_id AS "pipelineId", t.stage_id AS "stageId",
       t.organization_id AS "organizationId", t.person_id AS "personId", t.first_mail_at AS "firstMailAt",
       ${FIRST_MAIL_TO} AS "firstMailPersonId"
     FROM ${gapsOf("$3")}, deal t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3)`,
    [tenantId, copyId, ids],
    {
      ...{ crmId: "number", isDue: "flag", addedAt: "number", gap: "json" },
      ...{ ownerId: "number", pipelineId: "number", stageId: "number", organizationId: "number" },
      ...{ personId: "number", firstMailAt: "instant", firstMailPersonId: "number" },
    },
  );
}

const OF_ORGANIZATIONS = "deal t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.organization_id = ANY ($3)";

/** Of each organization how many of its deals: a company that collects customers may have most of the CRM's. */
export function readUnreadDealsOf({ tenantId, copyId, rows }: CopyScope, organizationIds: Ids) {
  return rows<UnreadDeals & OfParent>(
    `SELECT u.parent_id, u.gap ->> 0 AS code, count(*) AS count, min(coalesce((u.gap ->> 1)::bigint, u.added, 0)) AS since, min(u.gap ->> 2) AS message
     FROM (SELECT t.organization_id AS parent_id, g.gaps -> t.crm_id::text AS gap, ${ms("t.add_time")} AS added
       FROM ${gapsOf(`ARRAY (SELECT t.crm_id FROM ${OF_ORGANIZATIONS})`)}, ${OF_ORGANIZATIONS}
         AND (t.participants_due AND NOT t.participants_known OR g.gaps ? t.crm_id::text)) u
     GROUP BY u.parent_id, u.gap ->> 0`,
    [tenantId, copyId, organizationIds],
    { code: "text", count: "number", since: "number", message: "text", ...OF_PARENT },
  );
}

/** Whether organizations are held; it opens none of them. */
export function readHeldOrganizations({ tenantId, copyId, rows }: CopyScope, ids: Ids): Promise<{ crmId: number }[]> {
  const sql = `SELECT t.crm_id AS "crmId" FROM organization t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3)`;
  return rows<{ crmId: number }>(sql, [tenantId, copyId, ids], { crmId: "number" });
}

/** Whoever the persons are: whether they are held, and when mail last went to and fro. It opens none of them. */
export interface Mails {
  crmId: number;
  incoming: Date | null;
  outgoing: Date | null;
}

export function readMails({ tenantId, copyId, rows }: CopyScope, personIds: Ids): Promise<Mails[]> {
  return rows<Mails>(
    `SELECT p.crm_id AS "crmId", p.last_incoming_mail_time AS incoming, p.last_outgoing_mail_time AS outgoing FROM person p
     WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.crm_id = ANY ($3)`,
    [tenantId, copyId, personIds],
    { crmId: "number", incoming: "instant", outgoing: "instant" },
  );
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

const PERSONS_OF = "SELECT crm_id FROM person WHERE tenant_id = $1 AND copy_id = $2 AND organization_id = parent.id";

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
       WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY (${matchedAmong("PERSON", PERSONS_OF)})
       ORDER BY t.name, t.crm_id LIMIT $4
     ) found`,
    [scope.tenantId, scope.copyId, organizationIds, first],
    OF_PARENT,
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
       SELECT t.* FROM deal t
       WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY (${matchedAmong("DEAL", DEALS_OF[of])}) AND t.status = 'open'
       ORDER BY t.update_time DESC NULLS LAST, t.crm_id DESC LIMIT $4
     ) found`,
    [scope.tenantId, scope.copyId, ids, first],
    OF_PARENT,
  );
}

/** The deals that meetings made readable, without the one that each is about: open ones first, then newest change. */
export function readOtherDeals(
  scope: CopyScope,
  meetingIds: Ids<string>,
): Promise<(DealRow & { meeting_id: string })[]> {
  return scope.entities<DealRow, { meeting_id: string }>(
    DealRow,
    `SELECT found.*, one.id AS meeting_id FROM ${oneByOne("$3", meetingIds)} CROSS JOIN LATERAL (
       SELECT t.* FROM ${readableBy("one.id")} r JOIN deal t ON t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = r.crm_id
       WHERE r.entity = 'DEAL' AND r.crm_id IS DISTINCT FROM (
         SELECT m.deal_id FROM meeting_match m WHERE m.tenant_id = $1 AND m.meeting_id = one.id AND m.copy_id = $2)
       ORDER BY t.status <> 'open', t.update_time DESC NULLS LAST, t.crm_id DESC LIMIT ${MOST_OTHER_DEALS}
     ) found`,
    [scope.tenantId, scope.copyId, meetingIds],
    { meeting_id: "text" },
  );
}

/** The column by which activities and notes hang on a record. The caller has read that record as a matched one. */
const COLUMN: Record<MatchedEntity, string> = { DEAL: "deal_id", PERSON: "person_id", ORGANIZATION: "organization_id" };

/**
 * The latest done activities of records, newest first by when they took place: when they were due, and not after somebody
 * ticked them off. Of those ticked off before they were due only such are looked at as are due among the last: one of years ahead
 * would open a whole history. Planned ones are never among them.
 */
export function readRecentActivities(
  { tenantId, copyId, entities }: CopyScope,
  of: MatchedEntity,
  ids: Ids,
  first: number,
): Promise<(ActivityRow & OfParent)[]> {
  const tookPlace = `LEAST(a.happened_at, ${TICKED_OFF})`;
  const own = `FROM activity a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.${COLUMN[of]} = parent.id`;
  return entities<ActivityRow, OfParent>(
    ActivityRow,
    `SELECT found.*, parent.id AS parent_id FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT a.* FROM (SELECT DISTINCT ON (a.crm_id) a.* FROM (
         (SELECT a.* ${own} AND a.happened_at IS NOT NULL ORDER BY a.happened_at DESC LIMIT $4 + 10)
         UNION ALL (SELECT a.* ${own} AND a.happened_at IS NOT NULL AND (${TICKED_OFF} < a.happened_at) IS NOT TRUE ORDER BY a.happened_at DESC LIMIT $4)) a) a
       ORDER BY ${tookPlace} DESC, a.crm_id DESC LIMIT $4
     ) found`,
    [tenantId, copyId, ids, first],
    OF_PARENT,
  );
}

/** The latest notes of records, newest first. */
export function readRecentNotes(
  { tenantId, copyId, entities }: CopyScope,
  of: MatchedEntity,
  ids: Ids,
  first: number,
): Promise<(NoteHead & OfParent)[]> {
  return entities<NoteHead, OfParent>(
    NoteRow,
    `SELECT found.*, parent.id AS parent_id FROM unnest($3::bigint[]) AS parent (id)
     CROSS JOIN LATERAL (
       SELECT t.* FROM note t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.${COLUMN[of]} = parent.id
       ORDER BY t.add_time DESC, t.crm_id DESC LIMIT $4
     ) found`,
    [tenantId, copyId, ids, first],
    OF_PARENT,
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

export function readNotes(scope: CopyScope, ids: Ids): Promise<NoteHead[]> {
  const sql = `SELECT t.* FROM note t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${HANGS_ON_MATCHED}`;
  return scope.entities<NoteHead>(NoteRow, sql, [scope.tenantId, scope.copyId, ids]);
}

/** Which of these notes this service wrote. */
export function readOurNotes({ tenantId, copyId, rows }: CopyScope, ids: Ids): Promise<{ crmId: number }[]> {
  const sql = `SELECT t.crm_id AS "crmId" FROM note t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = ANY ($3) AND ${isOurNote("t")}`;
  return rows<{ crmId: number }>(sql, [tenantId, copyId, ids], { crmId: "number" });
}
