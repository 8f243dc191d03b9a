import type { TenantScope } from "../../database/database";
import { Page, PageRequest, readPage, SortKey } from "../../database/keyset";
import { MeetingMatchStatus, MeetingRow } from "../../entities/meeting";

const byStart: readonly [SortKey, SortKey] = [
  { sql: "t.starts_at", type: "instant" },
  { sql: "t.id", type: "uuid" },
];

export const MEETING_ORDERS = {
  STARTS_AT_DESC: { direction: "DESC", keys: byStart },
  STARTS_AT_ASC: { direction: "ASC", keys: byStart },
} as const;

/** Which meetings; null means any. */
export interface MeetingFilter {
  from: Date | null;
  to: Date | null;
  status: readonly MeetingMatchStatus[] | null;
  /** In whatever case it was recorded. */
  ownerEmail: string | null;
  includeCancelled: boolean;
}

/** As it is shown: a match that was made on another copy than the present one holds no more. */
const STATUS = `(SELECT CASE WHEN m.copy_id IS NOT DISTINCT FROM (SELECT c.copy_id FROM connection c WHERE c.tenant_id = $1)
    THEN m.status ELSE 'PENDING' END FROM meeting_match m WHERE m.tenant_id = $1 AND m.meeting_id = t.id)`;

/** The tenant's own meetings, whether anything is connected or not. */
export function readMeetings(scope: TenantScope, filter: MeetingFilter, page: PageRequest): Promise<Page<MeetingRow>> {
  const where: string[] = filter.includeCancelled ? [] : ["t.cancelled_at IS NULL"];
  const parameters: unknown[] = [];
  const narrow = (value: unknown, condition: (parameter: string) => string) => {
    if (value !== null) where.push(condition(`$${parameters.push(value) + 1}`));
  };
  narrow(filter.from, (from) => `t.starts_at >= ${from}`);
  narrow(filter.to, (to) => `t.starts_at < ${to}`);
  narrow(filter.status, (status) => `${STATUS} = ANY (${status})`);
  narrow(filter.ownerEmail, (email) => `lower(t.owner_email) = lower(${email})`);
  return readPage(scope, MeetingRow, { where, parameters }, page);
}
