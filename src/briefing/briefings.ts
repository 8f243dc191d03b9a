import { rows } from "../database/rows";
import type { TenantScope } from "../database/tenant-door";
import type { DataGapRow } from "../entities/data-gap";
import { MeetingRow } from "../entities/meeting";
import { MeetingAttendeeRow } from "../entities/meeting-attendee";
import { MeetingMatchRow } from "../entities/meeting-match";
import type { GapSummary } from "../entities/sync-run";
import type { CopyScope } from "./records";

const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/;

/** The tenant's meeting with this id or external id; null where there is none, also where the id is no id at all. */
export async function readMeeting(
  { tenantId, manager }: TenantScope,
  key: { id: string } | { externalId: string },
): Promise<MeetingRow | null> {
  if ("id" in key && !UUID.test(key.id)) return null;
  return manager.findOneBy(MeetingRow, { tenantId, ...key });
}

export function readMeetings({ tenantId, manager }: TenantScope, ids: readonly string[]): Promise<MeetingRow[]> {
  const where = "m.tenantId = :tenantId AND m.id = ANY (:ids)";
  return manager.createQueryBuilder(MeetingRow, "m").where(where, { tenantId, ids }).getMany();
}

export async function readAttendees(
  { tenantId, manager }: TenantScope,
  meetingIds: readonly string[],
): Promise<MeetingAttendeeRow[]> {
  return manager
    .createQueryBuilder(MeetingAttendeeRow, "a")
    .where("a.tenantId = :tenantId AND a.meetingId = ANY (:meetingIds)", { tenantId, meetingIds })
    .orderBy("a.position")
    .getMany();
}

export async function readMatches(
  { tenantId, manager }: TenantScope,
  meetingIds: readonly string[],
): Promise<MeetingMatchRow[]> {
  return manager
    .createQueryBuilder(MeetingMatchRow, "m")
    .where("m.tenantId = :tenantId AND m.meetingId = ANY (:meetingIds)", { tenantId, meetingIds })
    .getMany();
}

/** The gaps that touch these deals: those of a whole resource, and those of one of the deals. */
export async function readGapsTouching(
  { manager, copyId }: CopyScope,
  dealIds: readonly number[],
): Promise<GapSummary[]> {
  const gaps = await rows<Pick<DataGapRow, "resource" | "code" | "message" | "since"> & { count: number }>(
    manager,
    `SELECT resource, code, count(*)::int AS count, min(since) AS since, min(message) AS message
     FROM data_gap
     WHERE copy_id = $1 AND (crm_id = 0 OR (resource = 'DEAL_PARTICIPANTS' AND crm_id = ANY ($2)))
     GROUP BY resource, code ORDER BY resource, code`,
    [copyId, dealIds],
  );
  return gaps.map((gap) => ({ ...gap, since: gap.since.toISOString() }));
}

/**
 * The moment up to which the copy is known to be complete: the CRM's clock when the last successful run began.
 * null before the first run has succeeded.
 */
export async function readAsOf({ tenantId, manager, copyId }: CopyScope): Promise<Date | null> {
  const [run] = await rows<{ as_of: Date | null }>(
    manager,
    `SELECT coalesce(crm_time_at_start, started_at) AS as_of FROM sync_run
     WHERE tenant_id = $1 AND copy_id = $2 AND state = 'SUCCEEDED' ORDER BY queued_at DESC LIMIT 1`,
    [tenantId, copyId],
  );
  return run?.as_of ?? null;
}
