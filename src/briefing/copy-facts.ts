import type { EntityManager } from "typeorm";
import { rows } from "../database/rows";
import { companyDomainOf } from "../platform/company-domain";
import { mailboxOf } from "../platform/email-address";
import { SAME_TIME_MS } from "./matching/deal-candidates";
import type {
  ActivityFact,
  CopyFacts,
  DealFact,
  DomainFact,
  MeetingFact,
  PersonFact,
  UserFact,
} from "./matching/facts";
import { WINDOW_MS } from "./matching/window";

/** Reads what a copy holds that could belong to meetings: five statements, however many meetings and people. */
export async function readCopyFacts(
  manager: EntityManager,
  copyId: number,
  meetings: readonly MeetingFact[],
): Promise<CopyFacts> {
  const addresses = distinct(
    meetings.flatMap(({ ownerAddress, attendees }) => [ownerAddress, ...attendees.map(({ address }) => address)]),
  );
  const mailboxes = distinct(addresses.map(mailboxOf));
  const starts = meetings.map(({ startsAt }) => startsAt);
  const users = await readUsers(manager, copyId, distinct([...addresses, ...mailboxes]));
  const persons = await readPersons(manager, copyId, mailboxes);
  const domains = await readDomains(manager, copyId, distinct(addresses.map(companyDomainOf)));
  const organizationIds = [...persons, ...domains].map(({ organizationId }) => organizationId);
  const personIds = persons.map(({ crmId }) => crmId);
  const deals = await readDeals(manager, copyId, personIds, distinct(organizationIds), starts);
  const dealIds = deals.map(({ crmId }) => crmId);
  return { users, persons, domains, deals, activities: await readActivities(manager, copyId, dealIds, starts) };
}

const distinct = <T>(values: readonly (T | null)[]): T[] => [...new Set(values)].filter((value) => value !== null);

function readUsers(manager: EntityManager, copyId: number, addresses: readonly string[]): Promise<UserFact[]> {
  return rows(manager, `SELECT crm_id AS "crmId", address FROM crm_user WHERE copy_id = $1 AND address = ANY ($2)`, [
    copyId,
    addresses,
  ]);
}

function readPersons(manager: EntityManager, copyId: number, mailboxes: readonly string[]): Promise<PersonFact[]> {
  return rows(
    manager,
    `SELECT p.crm_id AS "crmId", p.organization_id AS "organizationId", array_agg(a.address) AS addresses
     FROM person_address a JOIN person p ON p.copy_id = a.copy_id AND p.crm_id = a.person_id
     WHERE a.copy_id = $1 AND a.mailbox = ANY ($2) GROUP BY p.copy_id, p.crm_id`,
    [copyId, mailboxes],
  );
}

function readDomains(manager: EntityManager, copyId: number, domains: readonly string[]): Promise<DomainFact[]> {
  return rows(
    manager,
    `SELECT domain, organization_id AS "organizationId", sum(persons)::int AS persons, bool_or(website) AS "isWebsite"
     FROM (
       SELECT a.domain, p.organization_id, count(DISTINCT p.crm_id) AS persons, false AS website
       FROM person_address a JOIN person p ON p.copy_id = a.copy_id AND p.crm_id = a.person_id
       WHERE a.copy_id = $1 AND a.domain = ANY ($2) AND p.organization_id IS NOT NULL GROUP BY 1, 2
       UNION ALL
       SELECT website_domain, crm_id, 0, true FROM organization WHERE copy_id = $1 AND website_domain = ANY ($2)
     ) used GROUP BY 1, 2`,
    [copyId, domains],
  );
}

/**
 * The deals whose person or participants are among `personIds`, and of organizations those that were open around any
 * of the meetings; an organization may have thousands of others.
 */
function readDeals(
  manager: EntityManager,
  copyId: number,
  personIds: readonly number[],
  organizationIds: readonly number[],
  starts: readonly Date[],
): Promise<DealFact[]> {
  const times = starts.map((start) => start.getTime());
  const opened = new Date(Math.max(...times) + WINDOW_MS);
  const closed = new Date(Math.min(...times) - WINDOW_MS);
  return rows(
    manager,
    `WITH taking_part AS (
       SELECT crm_id AS deal_id, person_id FROM deal WHERE copy_id = $1 AND person_id = ANY ($2)
       UNION
       SELECT deal_id, person_id FROM deal_participant WHERE copy_id = $1 AND person_id = ANY ($2)
     ), found AS (
       SELECT deal_id FROM taking_part
       UNION
       SELECT crm_id FROM deal WHERE copy_id = $1 AND organization_id = ANY ($3)
         AND (add_time IS NULL OR add_time <= $4) AND coalesce(greatest(won_time, lost_time) >= $5, true)
     )
     SELECT d.crm_id AS "crmId", d.add_time AS "addTime", d.won_time AS "wonTime", d.lost_time AS "lostTime",
       d.owner_id AS "ownerId", d.organization_id AS "organizationId",
       array_remove(array_agg(t.person_id), NULL) AS "personIds"
     FROM found f JOIN deal d ON d.copy_id = $1 AND d.crm_id = f.deal_id
     LEFT JOIN taking_part t ON t.deal_id = f.deal_id
     GROUP BY d.copy_id, d.crm_id`,
    [copyId, personIds, organizationIds, opened, closed],
  );
}

function readActivities(
  manager: EntityManager,
  copyId: number,
  dealIds: readonly number[],
  starts: readonly Date[],
): Promise<ActivityFact[]> {
  return rows(
    manager,
    `SELECT a.deal_id AS "dealId", a.due_at AS at,
       array_remove(array_append(a.participant_ids, a.person_id), NULL) AS "personIds"
     FROM activity a
     WHERE a.copy_id = $1 AND a.deal_id = ANY ($2) AND a.due_has_time AND EXISTS (
       SELECT 1 FROM unnest($3::timestamptz[]) AS start
       WHERE a.due_at BETWEEN start - $4 * interval '1 ms' AND start + $4 * interval '1 ms')`,
    [copyId, dealIds, starts, SAME_TIME_MS],
  );
}
