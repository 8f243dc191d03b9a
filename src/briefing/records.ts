import type { ObjectLiteral, ObjectType } from "typeorm";
import type { CopyScope } from "../database/database";
import { OrganizationRow, PersonRow } from "../entities/contact";
import { CrmUserRow, PipelineRow, StageRow } from "../entities/crm-company";
import { DealRow } from "../entities/deal";
import type { MatchedEntity } from "../entities/meeting";
import { normalizeAddress } from "../platform/email-address";

/**
 * The only way in which deals, persons and organizations are read (decision 0005): every statement below carries this
 * condition, so a record that was never matched to a meeting is answered as one that does not exist.
 */
export const isMatched = (entity: MatchedEntity) => `EXISTS (
  SELECT 1 FROM matched_record m
  WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = '${entity}' AND m.crm_id = t.crm_id)`;

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
  ids: readonly number[],
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
  ids: readonly number[],
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
export function readStagesOf({ tenantId, copyId, entities }: CopyScope, ids: readonly number[]): Promise<StageRow[]> {
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

type OfParent = { parent_id: number };

/** More take part in no deal that people keep; what a client gets must be bounded. */
export const MOST_PARTICIPANTS = 100;
/** Persons of a large meeting may be on hundreds of deals. */
export const MOST_OTHER_DEALS = 50;

/** The persons who take part in deals, by name. */
export function readParticipants(scope: CopyScope, dealIds: readonly number[]): Promise<(PersonRow & OfParent)[]> {
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
  organizationIds: readonly number[],
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
  ids: readonly number[],
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
  meetingIds: readonly string[],
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
