import { randomUUID } from "node:crypto";
import type { TenantScope } from "../database/database";
import { jsonRows } from "../database/upsert";
import { type MeetingAttendeeRow, MeetingRow } from "../entities/meeting";
import { readAttendees } from "./briefings";
import type { MatchableMeeting } from "./match-meeting";

export type NewMeeting = Omit<MeetingRow, "tenantId" | "id" | "refreshedAt" | "cancelledAt">;

/**
 * Meetings that are recorded again keep their ids, and are cancelled no more. No two of one externalId. The rows are locked
 * until the transaction ends, in one order, so that two recordings of the same ones wait for each other.
 */
export function upsertMeetings(
  { tenantId, entities }: TenantScope,
  meetings: readonly NewMeeting[],
): Promise<MeetingRow[]> {
  const rows = meetings.map((meeting) => ({ id: randomUUID(), ...meeting }));
  return entities(MeetingRow, UPSERT, [tenantId, jsonRows(rows)]);
}

const UPSERT = `
  INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, ends_at, owner_email, recorded_by, recorded_at)
  SELECT $1, r.id, r."externalId", r.title, r."startsAt", r."endsAt", r."ownerEmail", r."recordedBy", r."recordedAt"
  FROM jsonb_to_recordset($2::jsonb) AS r (id uuid, "externalId" text, title text, "startsAt" timestamptz,
    "endsAt" timestamptz, "ownerEmail" text, "recordedBy" text, "recordedAt" timestamptz)
  ORDER BY r."externalId"
  ON CONFLICT (tenant_id, external_id) DO UPDATE SET title = EXCLUDED.title, starts_at = EXCLUDED.starts_at,
    ends_at = EXCLUDED.ends_at, owner_email = EXCLUDED.owner_email, recorded_by = EXCLUDED.recorded_by,
    recorded_at = EXCLUDED.recorded_at, cancelled_at = NULL,
    refreshed_at = CASE WHEN meeting.starts_at = EXCLUDED.starts_at THEN meeting.refreshed_at END
  RETURNING *`;

/** It does not take place. @returns the row as it is then */
export async function markCancelled({ tenantId, typed }: TenantScope, row: MeetingRow, at: Date): Promise<MeetingRow> {
  await typed((orm) => orm.update(MeetingRow, { tenantId, id: row.id }, { cancelledAt: at }));
  return { ...row, cancelledAt: at };
}

/** With its attendees, its match and what it made readable; receipts stay. */
export async function eraseMeeting({ tenantId, typed }: TenantScope, id: string): Promise<void> {
  await typed((orm) => orm.delete(MeetingRow, { tenantId, id }));
}

/** Takes a meeting as it was recorded, until the transaction ends. null: this tenant has none with this id. */
export async function lockMeeting(
  scope: TenantScope,
  id: string,
): Promise<(MatchableMeeting & { row: MeetingRow }) | null> {
  const { tenantId, typed } = scope;
  const lock = { mode: "pessimistic_write" } as const;
  const row = await typed((orm) => orm.findOne(MeetingRow, { where: { tenantId, id }, lock }));
  return row && { row, attendees: await readAttendees(scope, [id]) };
}

/** How many meetings begin after `since` (null: all). */
export async function countMeetingsSince({ tenantId, rows }: TenantScope, since: Date | null): Promise<number> {
  const [found] = await rows<{ total: number }>(
    "SELECT count(*) AS total FROM meeting WHERE tenant_id = $1 AND starts_at > coalesce($2, '-infinity'::timestamptz)",
    [tenantId, since],
    { total: "number" },
  );
  return found?.total ?? 0;
}

export type PagePosition = Pick<MeetingRow, "startsAt" | "id">;

/** A page of the meetings that begin after `since` (null: of all), the last to begin first. */
export async function readMeetingsSince(
  scope: TenantScope,
  since: Date | null,
  before: PagePosition | null,
  limit: number,
): Promise<MatchableMeeting[]> {
  const found = await scope.rows<MatchableMeeting["row"]>(
    `SELECT id, starts_at AS "startsAt", owner_email AS "ownerEmail", cancelled_at AS "cancelledAt" FROM meeting
     WHERE tenant_id = $1 AND starts_at > coalesce($2, '-infinity'::timestamptz) AND ($3::timestamptz IS NULL OR (starts_at, id) < ($3, $4::uuid))
     ORDER BY starts_at DESC, id DESC LIMIT $5`,
    [scope.tenantId, since, before?.startsAt ?? null, before?.id ?? null, limit],
    { id: "text", startsAt: "instant", ownerEmail: "text", cancelledAt: "instant" },
  );
  const attendees = await readAttendees(
    scope,
    found.map(({ id }) => id),
  );
  const byMeeting = new Map(found.map(({ id }): [string, MeetingAttendeeRow[]] => [id, []]));
  for (const attendee of attendees) byMeeting.get(attendee.meetingId)?.push(attendee);
  return found.map((row) => ({ row, attendees: byMeeting.get(row.id) ?? [] }));
}
