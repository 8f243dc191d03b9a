import type { CopyScope, TenantScope } from "../database/database";
import { ORDER_DECIDES, rowsOf, rowsOfEach } from "../database/rows";
import type { LastDeal } from "../entities/meeting";
import { companyDomainOf, mailboxOf } from "../platform/email-address";
import {
  type ActivityFact,
  type CopyFacts,
  type DealFact,
  type DomainFact,
  MATCHED_LISTS,
  type MatchedList,
  type MeetingFact,
  type PersonFact,
  SAME_TIME_MS,
  WINDOW_MS,
} from "./matching/facts";
import type { ChoiceFact } from "./matching/match";
import { matchesOf } from "./meeting-rows";

/**
 * Reads what of a copy could belong to meetings: five statements, however many. In one transaction, for a copy may be newer than
 * what PostgreSQL knows of it: the first says that order decides. Users are sellers: thousands of persons may have their address.
 * @param kept deals that the rules may not change, whenever they were open
 */
export function readCopyFacts(
  { copyId, transaction }: CopyScope,
  meetings: readonly MeetingFact[],
  kept: readonly number[],
): Promise<CopyFacts> {
  const addresses = distinct(
    meetings.flatMap(({ ownerAddress, attendees }) => [ownerAddress, ...attendees.map(({ address }) => address)]),
  );
  const starts = meetings.map(({ startsAt }) => startsAt);
  return transaction(async (scope) => {
    const copy = { ...scope, copyId };
    const { users, unread } = await readUsers(copy, distinct(addresses.map(mailboxOf)));
    const ours = new Set(users.map(({ mailbox }) => mailbox));
    const others = addresses.filter((address) => !ours.has(mailboxOf(address)));
    const persons = await readPersons(copy, distinct(others.map(mailboxOf)));
    const domains = await readDomains(copy, distinct(others.map(companyDomainOf)));
    const organizationIds = [...persons, ...domains].map(({ organizationId }) => organizationId);
    const idOf = ({ crmId }: { crmId: number }) => crmId;
    const deals = await readDeals(copy, persons.map(idOf), distinct(organizationIds), starts, kept);
    return { users, persons, domains, deals, activities: await readActivities(copy, deals.map(idOf), starts), unread };
  });
}

const distinct = <T>(values: readonly (T | null)[]): T[] => [...new Set(values)].filter((value) => value !== null);

/** Of an address that a user left to another, the one who is active. With them which lists were never read to their end: a row says it always. */
async function readUsers(
  { tenantId, copyId, rows }: CopyScope,
  mailboxes: readonly string[],
): Promise<Pick<CopyFacts, "users" | "unread">> {
  const found = await rows<{ crmId: number | null; mailbox: string | null; read: MatchedList[] }>(
    `SELECT u.crm_id AS "crmId", u.mailbox, lists.read
     FROM (SELECT coalesce(array_agg(l.resource), '{}') AS read FROM sync_list l
       WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.watermark IS NOT NULL) lists
     LEFT JOIN crm_user u ON u.tenant_id = $1 AND u.copy_id = $2 AND u.mailbox = ANY ($3) AND (u.active OR NOT EXISTS (SELECT 1
       FROM crm_user n WHERE n.tenant_id = $1 AND n.copy_id = $2 AND n.mailbox = u.mailbox AND n.active)) WHERE ${ORDER_DECIDES}`,
    [tenantId, copyId, mailboxes],
    { crmId: "number", mailbox: "text", read: "json" },
  );
  const read = found[0]?.read ?? [];
  return {
    users: found.flatMap(({ crmId, mailbox }) => (crmId === null || mailbox === null ? [] : [{ crmId, mailbox }])),
    unread: MATCHED_LISTS.filter((list) => !read.includes(list)),
  };
}

/** SQL: addresses that have one of the values `$3`, each with its person. */
const addressesBy = (column: "mailbox" | "domain") =>
  `${rowsOfEach("person_address", column, "$3::text[]")} a CROSS JOIN LATERAL ${rowsOf("person", "crm_id", "a.person_id")} p`;

function readPersons({ tenantId, copyId, rows }: CopyScope, mailboxes: readonly string[]): Promise<PersonFact[]> {
  return rows<PersonFact>(
    `SELECT p.crm_id AS "crmId", p.organization_id AS "organizationId", array_agg(a.address) AS addresses
     FROM ${addressesBy("mailbox")} GROUP BY 1, 2`,
    [tenantId, copyId, mailboxes],
    { crmId: "number", organizationId: "number", addresses: "json" },
  );
}

function readDomains({ tenantId, copyId, rows }: CopyScope, domains: readonly string[]): Promise<DomainFact[]> {
  return rows<DomainFact>(
    `SELECT domain, organization_id AS "organizationId", sum(persons)::int AS persons, bool_or(website) AS "isWebsite"
     FROM (
       SELECT a.domain, p.organization_id, count(DISTINCT p.crm_id) AS persons, false AS website
       FROM ${addressesBy("domain")} WHERE p.organization_id IS NOT NULL GROUP BY 1, 2
       UNION ALL
       SELECT o.website_domain, o.crm_id, 0, true FROM ${rowsOfEach("organization", "website_domain", "$3::text[]")} o
     ) used GROUP BY 1, 2`,
    [tenantId, copyId, domains],
    { domain: "text", organizationId: "number", persons: "number", isWebsite: "flag" },
  );
}

/**
 * The deals whose person or participants are among `personIds`, and of organizations those that could be what any of the
 * meetings is about, or is kept for one; an organization may have thousands of others.
 */
function readDeals(
  { tenantId, copyId, rows }: CopyScope,
  personIds: readonly number[],
  organizationIds: readonly number[],
  starts: readonly Date[],
  kept: readonly number[],
): Promise<DealFact[]> {
  const times = starts.map((start) => start.getTime());
  const opened = new Date(Math.max(...times) + WINDOW_MS);
  const closed = new Date(Math.min(...times) - WINDOW_MS);
  return rows<DealFact>(
    `WITH taking_part AS (
       SELECT d.crm_id AS deal_id, d.person_id FROM ${rowsOfEach("deal", "person_id", "$3::bigint[]")} d
       UNION
       SELECT x.deal_id, x.person_id FROM ${rowsOfEach("deal_participant", "person_id", "$3::bigint[]")} x
     ), found AS (
       SELECT deal_id FROM taking_part
       UNION
       SELECT o.crm_id FROM ${rowsOfEach("deal", "organization_id", "$4::bigint[]")} o
       WHERE (o.add_time IS NULL OR o.add_time <= $5) AND (o.status = 'open' OR coalesce(greatest(o.won_time, o.lost_time), o.close_time, $6) >= $6)
       UNION
       SELECT unnest($7::bigint[])
     )
     SELECT d.crm_id AS "crmId", d.status = 'open' AS "isOpen", d.add_time AS "addTime", d.won_time AS "wonTime",
       d.lost_time AS "lostTime", d.close_time AS "closeTime", d.owner_id AS "ownerId", d.organization_id AS "organizationId",
       d.participants_due AS "isUnasked", coalesce(t.ids, '{}') AS "personIds"
     FROM found f CROSS JOIN LATERAL ${rowsOf("deal", "crm_id", "f.deal_id")} d
     LEFT JOIN (SELECT deal_id, array_agg(person_id) AS ids FROM taking_part GROUP BY deal_id) t ON t.deal_id = f.deal_id`,
    [tenantId, copyId, personIds, organizationIds, opened, closed, kept],
    {
      ...{ crmId: "number", isOpen: "flag", addTime: "instant", wonTime: "instant", lostTime: "instant" },
      ...{ closeTime: "instant", ownerId: "number", organizationId: "number", personIds: "json", isUnasked: "flag" },
    },
  );
}

/** SQL: activities of the deal `one.id`, by the index that this order is of. */
const activitiesWhose = (time: string) =>
  `(SELECT * FROM activity t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.deal_id = one.id AND t.happened_at ${time} ORDER BY t.happened_at)`;

/** What is done and has a time happened then: of that only what may have begun with one of the meetings, for most did long before. */
function readActivities(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: readonly number[],
  starts: readonly Date[],
): Promise<ActivityFact[]> {
  const [sorted, same] = ["($4::timestamptz[])", "$5 * interval '1 ms'"];
  return rows<ActivityFact>(
    `SELECT a.deal_id AS "dealId", a.due_at AS at,
       array_remove(array_append(a.participant_ids, a.person_id), NULL) AS "personIds"
     FROM unnest($3::bigint[]) AS one (id)
     CROSS JOIN LATERAL (${activitiesWhose("IS NULL")}
       UNION ALL ${activitiesWhose(`BETWEEN ${sorted}[1] - ${same} AND ${sorted}[cardinality(${sorted})] + ${same}`)}) a
     WHERE a.due_has_time AND (a.due_at <= ${sorted}[width_bucket(a.due_at, $4)] + ${same}
       OR a.due_at >= ${sorted}[width_bucket(a.due_at, $4) + 1] - ${same})`,
    [tenantId, copyId, dealIds, [...starts].sort((a, b) => a.getTime() - b.getTime()), SAME_TIME_MS],
    { dealId: "number", at: "instant", personIds: "json" },
  );
}

/** The stored part of a meeting's match that the next match needs. */
export interface StoredMatch {
  fingerprint: string;
  /** What the meeting is about. */
  dealId: number | null;
  /** The deal that the rules may not change. */
  kept: ChoiceFact | null;
  lastDeal: LastDeal | null;
}

/**
 * A choice holds in the CRM company where it was made. Without one, what was written to the CRM holds the deal that the
 * meeting was about then, until it is about another: what another match wrote holds nothing, nor what another company got,
 * whose deal may have the same number. Each deal is looked up by itself (OFFSET 0): a kept plan would join all of a small copy.
 */
const READ_STORED = `
  SELECT m.meeting_id AS "meetingId", m.fingerprint, m.last_deal AS "lastDeal", m.deal_id AS "dealId", kept.deal_id AS "keptId",
    kept.by_user AS "byUser", EXISTS (
    SELECT 1 FROM synced_copy c JOIN deal d ON d.tenant_id = $1 AND d.copy_id = c.id
    WHERE c.tenant_id = $1 AND c.id = $2 AND c.crm_company_id = kept.company_id AND d.crm_id = kept.deal_id OFFSET 0) AS "isThere"
  FROM ${matchesOf("$3")} m LEFT JOIN LATERAL (
    SELECT m.chosen_deal_id AS deal_id, m.chosen_company_id AS company_id, true AS by_user
    WHERE m.chosen_deal_id IS NOT NULL
    UNION ALL
    SELECT (m.last_deal ->> 'dealId')::bigint, w.crm_company_id, false FROM (
      SELECT meeting_id, crm_company_id, state, requested_at FROM note_write WHERE tenant_id = $1
      UNION ALL
      SELECT meeting_id, crm_company_id, state, requested_at FROM field_write WHERE tenant_id = $1
    ) w
    WHERE w.meeting_id = m.meeting_id AND w.state <> 'FAILED' AND m.chosen_deal_id IS NULL
      AND w.crm_company_id = (SELECT c.crm_company_id FROM synced_copy c WHERE c.tenant_id = $1 AND c.id = $2)
      AND w.requested_at >= (m.last_deal ->> 'since')::timestamptz
    LIMIT 1
  ) kept ON true`;

type Kept = { keptId: number | null; byUser: boolean | null; isThere: boolean };
type StoredRow = Omit<StoredMatch, "kept"> & Kept & { meetingId: string };

/** By meeting; those without a match are left out. */
export async function readStored(
  { tenantId, rows }: TenantScope,
  copyId: number | null,
  meetingIds: readonly string[],
): Promise<Map<string, StoredMatch>> {
  const found = await rows<StoredRow>(READ_STORED, [tenantId, copyId, meetingIds], {
    ...{ meetingId: "text", fingerprint: "text", lastDeal: "json", dealId: "number" },
    ...{ keptId: "number", byUser: "flag", isThere: "flag" },
  });
  return new Map(
    found.map(({ meetingId, keptId, byUser, isThere, ...stored }) => {
      const { lastDeal } = stored;
      const keptFor = lastDeal?.dealId === keptId ? (lastDeal.people ?? []) : [];
      const kept = keptId === null ? null : { dealId: keptId, isThere, written: byUser ? null : lastDeal, keptFor };
      return [meetingId, { ...stored, kept }];
    }),
  );
}
