import { gapsWhere } from "../connections/known-gaps";
import type { CopyScope, TenantScope } from "../database/database";
import type { DataGapRow } from "../entities/data-gap";
import { MeetingRow } from "../entities/meeting";
import { MeetingAttendeeRow } from "../entities/meeting-attendee";
import { MeetingMatchRow } from "../entities/meeting-match";
import type { GapSummary } from "../entities/sync-run";

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** The tenant's meeting with this id or external id; null where there is none, also where the id is no id at all. */
export async function readMeeting(
  { tenantId, entities }: TenantScope,
  key: { id: string } | { externalId: string },
): Promise<MeetingRow | null> {
  if ("id" in key ? !UUID.test(key.id) : key.externalId.includes("\0")) return null;
  // As it is recorded: without the blanks around it.
  const [column, value] = "id" in key ? ["id", key.id] : ["external_id", key.externalId.trim()];
  const sql = `SELECT * FROM meeting WHERE tenant_id = $1 AND ${column} = $2`;
  const [row] = await entities(MeetingRow, sql, [tenantId, value]);
  return row ?? null;
}

export function readMeetings({ tenantId, entities }: TenantScope, ids: readonly string[]): Promise<MeetingRow[]> {
  const sql = "SELECT * FROM meeting WHERE tenant_id = $1 AND id = ANY ($2)";
  return entities(MeetingRow, sql, [tenantId, ids]);
}

export function readAttendees(
  { tenantId, entities }: TenantScope,
  meetingIds: readonly string[],
): Promise<MeetingAttendeeRow[]> {
  return entities(
    MeetingAttendeeRow,
    "SELECT * FROM meeting_attendee WHERE tenant_id = $1 AND meeting_id = ANY ($2) ORDER BY position",
    [tenantId, meetingIds],
  );
}

export function readMatches(
  { tenantId, entities }: TenantScope,
  meetingIds: readonly string[],
): Promise<MeetingMatchRow[]> {
  const sql = "SELECT * FROM meeting_match WHERE tenant_id = $1 AND meeting_id = ANY ($2)";
  return entities(MeetingMatchRow, sql, [tenantId, meetingIds]);
}

const OF_MEETING = "m.tenant_id = $1 AND m.copy_id = $2 AND m.meeting_id = $3";

/**
 * Whether unread participants of deal `d` could hide that an attendee takes part in it: the deal is one of the meeting's
 * or of its companies', or the meeting has known persons and no deal at all.
 */
const COULD_HIDE = `EXISTS (SELECT 1 FROM matched_record m WHERE ${OF_MEETING} AND (m.entity, m.crm_id) IN
    (('DEAL', d.crm_id), ('ORGANIZATION', d.organization_id)))
  OR (EXISTS (SELECT 1 FROM matched_record m WHERE ${OF_MEETING} AND m.entity = 'PERSON')
    AND NOT EXISTS (SELECT 1 FROM matched_record m WHERE ${OF_MEETING} AND m.entity = 'DEAL'))`;

/** The gaps that touch a meeting: those of a whole resource, and of the participants of deals that could be its own. */
export async function readGapsTouching(
  { tenantId, copyId, rows }: CopyScope,
  meetingId: string,
): Promise<GapSummary[]> {
  const gaps = await rows<Pick<DataGapRow, "resource" | "code" | "message"> & { count: number; since: Date }>(
    gapsWhere(`(crm_id = 0 OR (resource = 'DEAL_PARTICIPANTS' AND EXISTS (
      SELECT 1 FROM deal d WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id = g.crm_id AND (${COULD_HIDE}))))`),
    [tenantId, copyId, meetingId],
    { resource: "text", code: "text", message: "text", count: "number", since: "instant" },
  );
  return gaps.map((gap) => ({ ...gap, since: gap.since.toISOString() }));
}

/**
 * The moment up to which the copy is known to be complete, by the CRM's clock: the oldest watermark of its main lists.
 * null before each of them was read to its end.
 */
export async function readAsOf({ tenantId, copyId, rows }: CopyScope): Promise<Date | null> {
  const [oldest] = await rows<{ as_of: Date | null }>(
    `SELECT CASE WHEN count(watermark) = 5 THEN min(watermark) END AS as_of FROM sync_list
     WHERE tenant_id = $1 AND copy_id = $2 AND resource IN ('ORGANIZATIONS', 'PERSONS', 'DEALS', 'ACTIVITIES', 'NOTES')`,
    [tenantId, copyId],
    { as_of: "instant" },
  );
  return oldest?.as_of ?? null;
}
