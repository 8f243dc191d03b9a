import { randomUUID } from "node:crypto";
import type { TenantScope } from "../database/database";
import { MeetingRow } from "../entities/meeting";
import type { MeetingAttendeeRow } from "../entities/meeting-attendee";
import { readAttendees } from "./briefings";
import type { MatchableMeeting } from "./match-meeting";

/** A meeting that is recorded again keeps its id. The row is locked until the transaction ends. */
export async function upsertMeeting(
  { tenantId, rows, typed }: TenantScope,
  meeting: Omit<MeetingRow, "tenantId" | "id" | "refreshedAt" | "cancelledAt">,
): Promise<MeetingRow> {
  const { externalId, title, startsAt, endsAt, ownerEmail, recordedBy, recordedAt } = meeting;
  await rows(
    `INSERT INTO meeting (tenant_id, id, external_id, title, starts_at, ends_at, owner_email, recorded_by, recorded_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (tenant_id, external_id) DO UPDATE SET title = EXCLUDED.title, starts_at = EXCLUDED.starts_at,
       ends_at = EXCLUDED.ends_at, owner_email = EXCLUDED.owner_email,
       recorded_by = EXCLUDED.recorded_by, recorded_at = EXCLUDED.recorded_at, cancelled_at = NULL,
       refreshed_at = CASE WHEN meeting.starts_at = EXCLUDED.starts_at THEN meeting.refreshed_at END`,
    [tenantId, randomUUID(), externalId, title, startsAt, endsAt, ownerEmail, recordedBy, recordedAt],
  );
  return typed((orm) => orm.findOneByOrFail(MeetingRow, { tenantId, externalId }));
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
