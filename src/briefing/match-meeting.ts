import { createHash } from "node:crypto";
import { holdCopyToJudge, liveCopyId } from "../connections/connection-store";
import type { TenantScope } from "../database/database";
import { jsonRows } from "../database/upsert";
import { MatchedRecordRow } from "../entities/matched-record";
import type { MeetingRow } from "../entities/meeting";
import { MeetingAttendeeRow } from "../entities/meeting-attendee";
import { MeetingMatchRow } from "../entities/meeting-match";
import { normalizeAddress } from "../platform/email-address";
import { readCopyFacts } from "./copy-facts";
import type { ChoiceFact, CopyFacts, MeetingFact } from "./matching/facts";
import { type Match, match } from "./matching/match";
import { judgeDeals } from "./quiet/stored-silence";

/** An attendee as the meeting's recorder gave it. */
export interface AttendeeInput {
  email: string;
  name: string | null;
}

/** A meeting as it is matched: itself and who attends. */
export interface MatchableMeeting {
  row: Pick<MeetingRow, "id" | "startsAt" | "ownerEmail">;
  attendees: readonly AttendeeInput[];
}

/**
 * Matches a meeting against the present copy and stores the result with what it makes readable. The caller's
 * transaction holds the meeting row, so that two matches of one meeting follow each other.
 * @param isRecorded as in {@link match}
 */
export async function matchMeeting(
  scope: TenantScope,
  meeting: MatchableMeeting,
  now: Date,
  isRecorded: boolean,
): Promise<void> {
  const [found] = await findMatches(scope, [meeting], isRecorded);
  if (!found) throw new Error("a meeting was matched and has no match");
  await storeAttendees(scope, meeting, found.match);
  await storeMatch(scope, meeting.row.id, found, now);
  // A copy that was retired meanwhile is being purged: a row that came now would stay for ever.
  if (found.copyId === null || !(await holdCopyToJudge(scope, found.copyId))) return;
  const before = await readableDeals(scope, meeting.row.id);
  await storeReadable(scope, meeting.row.id, found.copyId, found.match);
  const after = found.match.readable.flatMap(({ entity, crmId }) => (entity === "DEAL" ? [crmId] : []));
  await judgeDeals({ ...scope, copyId: found.copyId }, [...new Set([...before, ...after])], now);
}

/** The meetings whose match would now say something else than it does. */
export async function findOutdated(
  scope: TenantScope,
  meetings: readonly MatchableMeeting[],
): Promise<MatchableMeeting[]> {
  const found = await findMatches(scope, meetings, false);
  return meetings.filter((_, index) => found[index]?.fingerprint !== found[index]?.storedFingerprint);
}

interface FoundMatch {
  copyId: number | null;
  match: Match;
  fingerprint: string;
  storedFingerprint: string | null;
}

/** In the order of `meetings`, with a number of statements that does not depend on theirs. */
async function findMatches(
  scope: TenantScope,
  meetings: readonly MatchableMeeting[],
  isRecorded: boolean,
): Promise<FoundMatch[]> {
  const copyId = await liveCopyId(scope);
  const stored = await readStored(
    scope,
    copyId,
    meetings.map(({ row }) => row.id),
  );
  const facts = meetings.map(factOf);
  const copy = copyId === null ? NOTHING : await readCopyFacts({ ...scope, copyId }, facts);
  return facts.map((fact, index) => {
    const before = stored.get(meetings[index]?.row.id ?? "");
    const found =
      copyId === null
        ? unconnected(match(fact, copy, null, false))
        : match(fact, copy, before?.choice ?? null, isRecorded);
    return {
      copyId,
      match: found,
      fingerprint: fingerprintOf(copyId, found),
      storedFingerprint: before?.fingerprint ?? null,
    };
  });
}

function factOf({ row, attendees }: MatchableMeeting): MeetingFact {
  return {
    startsAt: row.startsAt,
    ownerAddress: normalizeAddress(row.ownerEmail),
    attendees: attendees.map(({ email }, position) => ({ position, address: normalizeAddress(email) })),
  };
}

const NOTHING: CopyFacts = { users: [], persons: [], domains: [], deals: [], activities: [], unread: [] };

export const NOT_CONNECTED = "No CRM is connected. The meeting is matched when one is.";

/** Who is ours and who is ignored can be told without a CRM; of anybody else nothing is known, not even an absence. */
const unconnected = ({ attendees, ...rest }: Match): Match => ({
  ...rest,
  attendees: attendees.map((attendee) =>
    attendee.side === "BUYER" ? { ...attendee, reason: NOT_CONNECTED, organizationReason: NOT_CONNECTED } : attendee,
  ),
  deal: { status: "NONE", rule: null, reason: NOT_CONNECTED, dealId: null, candidates: [] },
});

const fingerprintOf = (copyId: number | null, { attendees, deal, readable }: Match): string =>
  createHash("sha256")
    .update(JSON.stringify([copyId, attendees, deal, readable]))
    .digest("base64url");

interface Stored {
  fingerprint: string;
  choice: ChoiceFact | null;
}

/** What meetings' matches said, and what was chosen for them. A choice holds in the CRM company where it was made. */
async function readStored(
  { tenantId, rows }: TenantScope,
  copyId: number | null,
  meetingIds: readonly string[],
): Promise<Map<string, Stored>> {
  const found = await rows<{
    meeting_id: string;
    fingerprint: string;
    deal_id: number | null;
    is_there: boolean | null;
  }>(
    `SELECT m.meeting_id, m.fingerprint, m.chosen_deal_id AS deal_id, EXISTS (
       SELECT 1 FROM synced_copy c JOIN deal d ON d.tenant_id = $1 AND d.copy_id = c.id
       WHERE c.tenant_id = $1 AND c.id = $2 AND c.crm_company_id = m.chosen_company_id
         AND d.crm_id = m.chosen_deal_id) AS is_there
     FROM meeting_match m WHERE m.tenant_id = $1 AND m.meeting_id = ANY ($3)`,
    [tenantId, copyId, meetingIds],
    { meeting_id: "text", fingerprint: "text", deal_id: "number", is_there: "flag" },
  );
  return new Map(
    found.map(({ meeting_id, fingerprint, deal_id: dealId, is_there }) => {
      const choice = dealId === null ? null : { dealId, isThere: is_there === true };
      return [meeting_id, { fingerprint, choice }];
    }),
  );
}

async function storeAttendees(
  { tenantId, rows, typed }: TenantScope,
  { row, attendees }: MatchableMeeting,
  { attendees: matches }: Match,
): Promise<void> {
  const meetingId = row.id;
  await typed((orm) => orm.delete(MeetingAttendeeRow, { tenantId, meetingId }));
  const stored = attendees.flatMap(({ email, name }, position) => {
    const found = matches[position];
    return found ? [{ email, name, ...found }] : [];
  });
  if (stored.length > 0) await rows(STORE_ATTENDEES, [tenantId, meetingId, jsonRows(stored)]);
}

/** One parameter for all: to build a statement with fifteen for each of 500 attendees held the event loop. */
const STORE_ATTENDEES = `
  INSERT INTO meeting_attendee (tenant_id, meeting_id, position, email, name, side, match_status, match_rule,
    match_reason, person_id, candidate_ids, organization_status, organization_id, organization_rule, organization_reason)
  SELECT $1, $2, r.position, r.email, r.name, r.side, r.status, r.rule, r.reason, r."personId", r."candidateIds",
    r."organizationStatus", r."organizationId", r."organizationRule", r."organizationReason"
  FROM jsonb_to_recordset($3::jsonb) AS r (position integer, email text, name text, side text, status text, rule text,
    reason text, "personId" bigint, "candidateIds" bigint[], "organizationStatus" text, "organizationId" bigint,
    "organizationRule" text, "organizationReason" text)
  ON CONFLICT DO NOTHING`;

const NO_CHOICE = { chosenDealId: null, chosenCompanyId: null, chosenBy: null, chosenAt: null };

async function storeMatch(
  { tenantId, typed }: TenantScope,
  meetingId: string,
  { copyId, match: { deal, dropsChoice }, fingerprint }: FoundMatch,
  matchedAt: Date,
): Promise<void> {
  const row = { tenantId, meetingId, copyId, ...deal, fingerprint, matchedAt, ...(dropsChoice ? NO_CHOICE : {}) };
  await typed((orm) => orm.upsert(MeetingMatchRow, row, ["tenantId", "meetingId"]));
}

/** What a meeting is about is among them, and so is what its next match may be about no more. */
async function readableDeals({ tenantId, rows }: TenantScope, meetingId: string): Promise<number[]> {
  const found = await rows<{ id: number }>(
    "SELECT crm_id AS id FROM matched_record WHERE tenant_id = $1 AND meeting_id = $2 AND entity = 'DEAL'",
    [tenantId, meetingId],
    { id: "number" },
  );
  return found.map(({ id }) => id);
}

async function storeReadable(
  { tenantId, rows, typed }: TenantScope,
  meetingId: string,
  copyId: number,
  { readable }: Match,
): Promise<void> {
  await typed((orm) => orm.delete(MatchedRecordRow, { tenantId, meetingId }));
  await rows(
    `INSERT INTO matched_record (tenant_id, copy_id, entity, crm_id, meeting_id)
     SELECT $1, $2, r.entity, r."crmId", $3 FROM jsonb_to_recordset($4::jsonb) AS r (entity text, "crmId" bigint)
     ON CONFLICT DO NOTHING`,
    [tenantId, copyId, meetingId, JSON.stringify(readable)],
  );
}
