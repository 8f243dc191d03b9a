import { randomUUID } from "node:crypto";
import { type CopyScope, type TenantScope } from "../database/database";
import { type Ids, oneByOne, rowsById, rowsOf } from "../database/rows";
import { jsonRows } from "../database/upsert";
import {
  type MatchedEntity,
  MeetingAttendeeRow,
  MeetingMatchRow,
  MeetingRow,
  type StoredDealCandidate,
} from "../entities/meeting";
import { mailboxKeyOf } from "../platform/email-address";
import { NOTHING_CONNECTED } from "./matching/match";
import { isMatchedDeal } from "./quiet/silence-rows";

/** The tenant's meeting with this id or external id; null where there is none. @param key null: what was given is no id */
export async function readMeeting(
  { tenantId, entities }: TenantScope,
  key: { id: string | null } | { externalId: string },
): Promise<MeetingRow | null> {
  if ("id" in key ? key.id === null : key.externalId.includes("\0")) return null;
  // As it is recorded: without the blanks around it.
  const [column, value] = "id" in key ? ["id", key.id] : ["external_id", key.externalId.trim()];
  const sql = `SELECT * FROM meeting WHERE tenant_id = $1 AND ${column} = $2`;
  const [row] = await entities(MeetingRow, sql, [tenantId, value]);
  return row ?? null;
}

export function meetingsById({ tenantId, entities }: TenantScope, ids: Ids<string>): Promise<MeetingRow[]> {
  return entities(MeetingRow, `SELECT * FROM ${rowsById("meeting", oneByOne("$2", ids))} t`, [tenantId, ids]);
}

export function readAttendees(scope: TenantScope, meetingIds: Ids<string>): Promise<MeetingAttendeeRow[]> {
  const sql = "SELECT * FROM meeting_attendee WHERE tenant_id = $1 AND meeting_id = ANY ($2) ORDER BY position";
  return scope.entities(MeetingAttendeeRow, sql, [scope.tenantId, meetingIds]);
}

/** SQL: the matches of meetings. */
export const matchesOf = (parameter: string, known?: Ids<string>) =>
  rowsById("meeting_match", oneByOne(parameter, known), "meeting_id");

export function readMatches({ tenantId, entities }: TenantScope, ids: Ids<string>): Promise<MeetingMatchRow[]> {
  return entities(MeetingMatchRow, `SELECT * FROM ${matchesOf("$2", ids)} m`, [tenantId, ids]);
}

/** The last meetings before others that were about the same deal and took place by now. */
export function readPreviousMeetings(
  { tenantId, copyId, entities }: CopyScope,
  meetingIds: Ids<string>,
  now: Date,
): Promise<(MeetingRow & { parent_id: string })[]> {
  return entities<MeetingRow, { parent_id: string }>(
    MeetingRow,
    `SELECT before.*, own.meeting_id AS parent_id FROM ${matchesOf("$3", meetingIds)} own
     CROSS JOIN LATERAL (
       SELECT m.* FROM ${rowsOf("meeting_match", "deal_id", "own.deal_id", "t.deal_id DESC, t.starts_at DESC, t.meeting_id DESC")} mm
       CROSS JOIN LATERAL (SELECT * FROM meeting m WHERE m.tenant_id = $1 AND m.id = mm.meeting_id LIMIT 1) m
       WHERE mm.status = 'MATCHED' AND mm.starts_at < LEAST(own.starts_at, $4) AND m.cancelled_at IS NULL
       ORDER BY mm.deal_id DESC, mm.starts_at DESC, mm.meeting_id DESC LIMIT 1) before
     WHERE own.copy_id = $2 AND own.status = 'MATCHED'`,
    [tenantId, copyId, meetingIds, now],
    { parent_id: "text" },
  );
}

/** An attendee as the meeting's recorder gave it. */
export interface AttendeeInput {
  email: string;
  name: string | null;
}

interface NewMeeting
  extends Omit<MeetingRow, "tenantId" | "id" | "refreshedAt" | "cancelledAt" | "ownerKey" | "searchText"> {
  attendees: readonly AttendeeInput[];
}

/** As which a text is found, in either Unicode form. The database's own `lower` knows the letters of its locale, perhaps no more than ASCII. */
export const searchKey = (text: string): string => text.toLowerCase().normalize("NFC");

/** What a meeting is found by. */
export const searchTextOf = (title: string, attendees: readonly AttendeeInput[]): string =>
  searchKey([title, ...attendees.flatMap(({ email, name }) => [email, name ?? ""])].join("\n"));

/**
 * Meetings that are recorded again keep their ids, and are cancelled no more. No two of one externalId. The rows are locked
 * until the transaction ends, in one order, so that two recordings of the same ones wait for each other.
 */
export function upsertMeetings(
  { tenantId, entities }: TenantScope,
  meetings: readonly NewMeeting[],
): Promise<MeetingRow[]> {
  const rows = meetings.map(({ attendees, ...meeting }) => {
    const keys = { ownerKey: mailboxKeyOf(meeting.ownerEmail), searchText: searchTextOf(meeting.title, attendees) };
    return { id: randomUUID(), ...meeting, ...keys };
  });
  return entities(MeetingRow, UPSERT, [tenantId, jsonRows(rows)]);
}

const UPSERT = `
  INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, ends_at, owner_email, owner_key, search_text, recorded_by,
    recorded_at)
  SELECT $1, r.id, r."externalId", r.title, r."startsAt", r."endsAt", r."ownerEmail", r."ownerKey", r."searchText",
    r."recordedBy", r."recordedAt"
  FROM jsonb_to_recordset($2::jsonb) AS r (id uuid, "externalId" text, title text, "startsAt" timestamptz,
    "endsAt" timestamptz, "ownerEmail" text, "ownerKey" text, "searchText" text, "recordedBy" text, "recordedAt" timestamptz)
  ORDER BY r."externalId"
  ON CONFLICT (tenant_id, external_id) DO UPDATE SET title = EXCLUDED.title, starts_at = EXCLUDED.starts_at,
    ends_at = EXCLUDED.ends_at, owner_email = EXCLUDED.owner_email, owner_key = EXCLUDED.owner_key,
    search_text = EXCLUDED.search_text, recorded_by = EXCLUDED.recorded_by, recorded_at = EXCLUDED.recorded_at, cancelled_at = NULL,
    refreshed_at = CASE WHEN (meeting.starts_at, meeting.search_text) = (EXCLUDED.starts_at, EXCLUDED.search_text) THEN meeting.refreshed_at END
  RETURNING *`;

const CONNECTION_CHANGED = "The CRM connection has changed since; the meeting is matched again after the next sync.";

/** A match holds for the copy that it was made on. @returns why it does not hold now; null where it does */
export function whyOutdated(copyId: number | null, match: MeetingMatchRow | null): string | null {
  if (match?.copyId === copyId) return null;
  return copyId === null ? NOTHING_CONNECTED : CONNECTION_CHANGED;
}

const DEAL_GONE = "The deal that the meeting was matched to is gone from the CRM, or no longer visible there.";

/** Until it is matched again after a sync that has removed its deal: it is matched to none all the same. */
export async function withoutGoneDeal(
  match: MeetingMatchRow,
  isThere: (dealId: number) => Promise<boolean>,
  candidates: () => Promise<readonly StoredDealCandidate[]>,
): Promise<MeetingMatchRow> {
  if (match.dealId === null || (await isThere(match.dealId))) return match;
  const left = await Promise.all((await candidates()).map(({ dealId }) => isThere(dealId)));
  const status = left.includes(true) ? "NEEDS_CHOICE" : "NONE";
  return { ...match, status, rule: null, dealId: null, reason: DEAL_GONE };
}

const PENDING = "PENDING" as const;

/** @param outdated why nothing of the match holds: it belongs to a copy that is no longer the tenant's; null: it holds */
export const attendeeShown = (row: MeetingAttendeeRow, outdated: string | null) => ({
  email: row.email,
  name: row.name,
  side: row.side,
  match: {
    status: outdated ? PENDING : row.matchStatus,
    rule: outdated ? null : row.matchRule,
    reason: outdated ?? row.matchReason,
    organizationStatus: outdated ? PENDING : row.organizationStatus,
    organizationRule: outdated ? null : row.organizationRule,
    organizationReason: row.organizationReason && (outdated ?? row.organizationReason),
    personId: outdated ? null : row.personId,
    organizationId: outdated ? null : row.organizationId,
    candidateIds: outdated ? [] : row.candidateIds,
  },
});

/** @param outdated as in {@link attendeeShown} */
export const matchShown = (row: MeetingMatchRow, outdated: string | null) => ({
  status: outdated ? PENDING : row.status,
  rule: outdated ? null : row.rule,
  reason: outdated ?? row.reason,
  matchedAt: row.matchedAt,
  mayChange: outdated !== null || (row.mayChange && (row.dealId === null || row.chosenDealId === null)),
  meetingId: row.meetingId,
  dealId: outdated ? null : row.dealId,
});

/** Of a meeting that was deleted after it was read, and before its match was. */
export const matchOfDeleted = (meetingId: string, now: Date) => ({
  status: "NONE" as const,
  rule: null,
  reason: "The meeting has just been deleted.",
  matchedAt: now,
  ...{ mayChange: false, meetingId, dealId: null },
});

/** A record that a meeting makes readable (decision 0005). */
export interface ReadableRecord {
  meetingId: string;
  entity: MatchedEntity;
  crmId: number;
}

const READABLE = `jsonb_to_recordset($3::jsonb) AS r ("meetingId" uuid, entity text, "crmId" bigint)`;

/**
 * What meetings make readable from now on, in the place of what they did. Only the difference is written: a partner's
 * meetings may name hundreds of deals, and are matched again with each change of one of them.
 * @returns deals that meetings have left, and those that no meeting matched before
 */
export async function replaceReadable(
  { tenantId, copyId, rows }: CopyScope,
  meetingIds: readonly string[],
  readable: readonly ReadableRecord[],
): Promise<{ left: number[]; matchedFirst: number[] }> {
  const stored = jsonRows(readable);
  const gone = await rows<{ id: number; entity: string; copyId: number }>(
    `DELETE FROM matched_record m WHERE m.tenant_id = $1 AND m.meeting_id = ANY ($4)
       AND (m.meeting_id, m.copy_id, m.entity, m.crm_id) NOT IN (SELECT r."meetingId", $2::bigint, r.entity, r."crmId" FROM ${READABLE})
     RETURNING m.crm_id AS id, m.entity, m.copy_id AS "copyId"`,
    [tenantId, copyId, stored, meetingIds],
    { id: "number", entity: "text", copyId: "number" },
  );
  // By a statement of its own: a cluster sends what an INSERT of no table's rows returns to a node without the parameters.
  const first = await rows<{ id: number }>(
    `SELECT d.id FROM (SELECT DISTINCT r."crmId" FROM ${READABLE} WHERE r.entity = 'DEAL') d (id) WHERE ${isMatchedDeal("d.id")} IS NULL`,
    [tenantId, copyId, stored],
    { id: "number" },
  );
  await rows(
    `INSERT INTO matched_record (tenant_id, copy_id, entity, crm_id, meeting_id)
     SELECT $1, $2, r.entity, r."crmId", r."meetingId" FROM ${READABLE} ON CONFLICT DO NOTHING`,
    [tenantId, copyId, stored],
  );
  const idOf = ({ id }: { id: number }) => id;
  return {
    left: gone.filter((row) => row.entity === "DEAL" && row.copyId === copyId).map(idOf),
    matchedFirst: first.map(idOf),
  };
}
