import { holdLiveCopy, liveCopyId } from "../connections/connection-store";
import { rows } from "../database/rows";
import type { TenantScope } from "../database/tenant-door";
import type { MatchedEntity } from "../entities/matched-record";
import { MeetingRow } from "../entities/meeting";
import { MeetingAttendeeRow } from "../entities/meeting-attendee";
import { MeetingMatchRow } from "../entities/meeting-match";
import { normalizeAddress } from "../platform/email-address";
import type { DealFact, PersonFact } from "./matching/facts";
import { type AttendeeMatch, matchAttendees } from "./matching/match-attendees";
import { type DealMatch, matchDeal } from "./matching/match-deal";

/** An attendee as the meeting's recorder gave it. */
export interface AttendeeInput {
  email: string;
  name: string | null;
}

/**
 * Matches a meeting against the present copy and stores the result with what it makes readable. The caller's
 * transaction holds the meeting row, so that two matches of one meeting follow each other.
 */
export async function matchMeeting(
  scope: TenantScope,
  meeting: MeetingRow,
  attendees: readonly AttendeeInput[],
  now: Date,
): Promise<void> {
  const copyId = await liveCopyId(scope);
  const addresses = attendees.map(({ email }) => normalizeAddress(email));
  const known = addresses.filter((address) => address !== null);
  const persons = copyId === null ? [] : await personsWith(scope, copyId, known);
  const matches = matchAttendees({
    ownerAddress: normalizeAddress(meeting.ownerEmail),
    attendees: addresses.map((address, position) => ({ position, address })),
    userAddresses: new Set(copyId === null ? [] : await userAddresses(scope, copyId, known)),
    persons,
  });
  const personIds = new Set(matches.map(({ personId }) => personId).filter((id) => id !== null));
  const deals = copyId === null ? [] : await dealsOf(scope, copyId, [...personIds]);
  const deal = copyId === null ? NOT_CONNECTED : matchDeal(meeting.startsAt, personIds, deals);
  await storeAttendees(scope, meeting.id, attendees, matches);
  await storeMatch(scope, meeting.id, copyId, deal, now);
  // A copy that was retired meanwhile is being purged: a row that came now would stay for ever.
  if (copyId !== null && (await holdLiveCopy(scope, copyId)))
    await storeReadable(scope, meeting.id, copyId, { matches, persons, deals });
}

const NOT_CONNECTED: DealMatch = {
  status: "NONE",
  rule: null,
  reason: "No CRM is connected. The meeting is matched when one is.",
  dealId: null,
  candidates: [],
};

async function personsWith(
  { manager }: TenantScope,
  copyId: number,
  addresses: readonly string[],
): Promise<PersonFact[]> {
  return rows<PersonFact>(
    manager,
    `SELECT p.crm_id AS "crmId", p.organization_id AS "organizationId", array_agg(a.address) AS addresses
     FROM person_address a JOIN person p ON p.copy_id = a.copy_id AND p.crm_id = a.person_id
     WHERE a.copy_id = $1 AND a.address = ANY ($2) GROUP BY p.copy_id, p.crm_id`,
    [copyId, addresses],
  );
}

async function userAddresses(
  { manager }: TenantScope,
  copyId: number,
  addresses: readonly string[],
): Promise<string[]> {
  const users = await rows<{ address: string }>(
    manager,
    "SELECT address FROM crm_user WHERE copy_id = $1 AND address = ANY ($2)",
    [copyId, addresses],
  );
  return users.map(({ address }) => address);
}

/** The deals whose person or participants are among `personIds`. */
async function dealsOf({ manager }: TenantScope, copyId: number, personIds: readonly number[]): Promise<DealFact[]> {
  return rows<DealFact>(
    manager,
    `SELECT d.crm_id AS "crmId", d.add_time AS "addTime", d.won_time AS "wonTime", d.lost_time AS "lostTime",
       array_agg(t.person_id) AS "personIds"
     FROM (
       SELECT copy_id, crm_id AS deal_id, person_id FROM deal WHERE copy_id = $1 AND person_id = ANY ($2)
       UNION
       SELECT copy_id, deal_id, person_id FROM deal_participant WHERE copy_id = $1 AND person_id = ANY ($2)
     ) t JOIN deal d ON d.copy_id = t.copy_id AND d.crm_id = t.deal_id
     GROUP BY d.copy_id, d.crm_id`,
    [copyId, personIds],
  );
}

async function storeAttendees(
  { tenantId, manager }: TenantScope,
  meetingId: string,
  attendees: readonly AttendeeInput[],
  matches: readonly AttendeeMatch[],
): Promise<void> {
  await manager.delete(MeetingAttendeeRow, { tenantId, meetingId });
  const stored = attendees.map(({ email, name }, position) => ({ email, name, ...matches[position] }));
  if (stored.length === 0) return;
  await manager.insert(
    MeetingAttendeeRow,
    stored.map(({ status, rule, reason, ...attendee }) => ({
      tenantId,
      meetingId,
      ...attendee,
      matchStatus: status,
      matchRule: rule,
      matchReason: reason,
    })),
  );
}

async function storeMatch(
  { tenantId, manager }: TenantScope,
  meetingId: string,
  copyId: number | null,
  match: DealMatch,
  matchedAt: Date,
): Promise<void> {
  await manager.upsert(MeetingMatchRow, { tenantId, meetingId, copyId, ...match, matchedAt }, [
    "tenantId",
    "meetingId",
  ]);
}

/** What this meeting makes readable (design 5.7): matched persons, their organizations, and the deals they are in. */
async function storeReadable(
  { tenantId, manager }: TenantScope,
  meetingId: string,
  copyId: number,
  found: { matches: readonly AttendeeMatch[]; persons: readonly PersonFact[]; deals: readonly DealFact[] },
): Promise<void> {
  const personIds = new Set(
    found.matches.flatMap(({ personId, candidateIds }) => [personId ?? [], candidateIds].flat()),
  );
  const organizationIds = found.persons
    .filter(({ crmId }) => personIds.has(crmId))
    .map((person) => person.organizationId);
  const readable = (entity: MatchedEntity, ids: Iterable<number | null>) =>
    [...new Set(ids)].filter((id) => id !== null).map((crmId) => ({ entity, crmId }));
  const records = [
    ...readable("PERSON", personIds),
    ...readable("ORGANIZATION", organizationIds),
    ...readable(
      "DEAL",
      found.deals.map(({ crmId }) => crmId),
    ),
  ];
  await rows(manager, "DELETE FROM matched_record WHERE tenant_id = $1 AND meeting_id = $2", [tenantId, meetingId]);
  await rows(
    manager,
    `INSERT INTO matched_record (tenant_id, copy_id, entity, crm_id, meeting_id)
     SELECT $1, $2, r.entity, r."crmId", $3 FROM jsonb_to_recordset($4::jsonb) AS r (entity text, "crmId" bigint)`,
    [tenantId, copyId, meetingId, JSON.stringify(records)],
  );
}
