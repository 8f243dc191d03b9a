import type { CopyScope, TenantScope } from "../../database/database";
import {
  type ListOrder,
  MOST_COUNTED,
  type Page,
  type PageRequest,
  readPage,
  type SortKey,
  type Step,
} from "../../database/keyset";
import { type MeetingAttendeeRow, type MeetingMatchStatus, MeetingRow } from "../../entities/meeting";
import { OrganizationRow, PersonRow } from "../../entities/records";
import { mailboxKeyOf } from "../../platform/email-address";
import type { MatchableMeeting } from "../match-meeting";
import { readAttendees, searchKey } from "../meeting-rows";
import { isMatched } from "../records";

/** The CRM counts its ids up, and they never change: a name may, and may be of any length (decision 0026). */
export const NEWEST_IN_CRM: ListOrder = { direction: "DESC", keys: [{ sql: "t.crm_id", type: "integer" }] };

/** @param address normalized; null: whatever address */
export function readPersons(copy: CopyScope, address: string | null, page: PageRequest): Promise<Page<PersonRow>> {
  if (address === null) return readMatchedOnes(copy, PersonRow, "PERSON", page);
  const where = [
    "t.copy_id = $2",
    isMatched("PERSON"),
    "t.crm_id IN (SELECT a.person_id FROM person_address a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.address = $3)",
  ];
  return readPage(copy, PersonRow, { where, parameters: [copy.copyId, address] }, page);
}

export const readOrganizations = (copy: CopyScope, page: PageRequest): Promise<Page<OrganizationRow>> =>
  readMatchedOnes(copy, OrganizationRow, "ORGANIZATION", page);

/**
 * Goes from one matched record to the next in the key of `matched_record`, past all meetings of each: a page costs as many
 * look-ups, however many records there are and however many meetings each was in.
 * Whether a record is there is asked of each by itself: an EXISTS was joined with all records of the copy.
 */
function readMatchedOnes<T extends PersonRow | OrganizationRow>(
  copy: CopyScope,
  entity: new () => T,
  kind: "PERSON" | "ORGANIZATION",
  page: PageRequest,
): Promise<Page<T>> {
  const table = kind.toLowerCase();
  const next = (condition: string) => `SELECT t.crm_id FROM matched_record t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.entity = '${kind}' ${condition}
      AND (SELECT true FROM ${table} r WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.crm_id = t.crm_id)
    ORDER BY t.crm_id DESC LIMIT 1`;
  const from = ({ beyond, limit }: Step) => `(
    WITH RECURSIVE walk AS (
      (${next(beyond)})
      UNION ALL
      SELECT found.crm_id FROM walk CROSS JOIN LATERAL (${next("AND t.crm_id < walk.crm_id")}) found
    ) SELECT crm_id FROM walk LIMIT ${limit}
  ) walked CROSS JOIN LATERAL (
    SELECT * FROM ${table} t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.crm_id = walked.crm_id LIMIT 1) t`;
  return readPage(copy, entity, { from, where: [], parameters: [copy.copyId] }, page);
}

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
  /** Part of a title, or of an attendee's address or name, in whatever case. */
  search: string | null;
}

/** SQL: 0 while nothing is connected. A CASE, for row policies keep coalesce() from its index. */
const COPY = "CASE WHEN m.copy_id IS NULL THEN 0 ELSE m.copy_id END";
/** SQL: what is shown. A match that was made on another copy than the present one holds no more. */
const shown = (copy: string, status: string) =>
  `CASE WHEN ${copy} = coalesce((SELECT c.copy_id FROM connection c WHERE c.tenant_id = $1), 0) THEN ${status} ELSE 'PENDING' END`;
const statusOf = (meeting: string) =>
  `(SELECT ${shown(COPY, "m.status")} FROM meeting_match m WHERE m.tenant_id = $1 AND m.meeting_id = ${meeting}.id)`;

/** What fits, with parameters from $2 on. */
interface Wanted {
  /** Of `t`, which has the place of a meeting in its order. */
  when: string;
  /** Of the meeting, by the name that it has. */
  which(meeting: "t" | "d"): string;
  /** The parameter of the statuses by whose index they are found; null: by an owner's, or none is wanted. */
  status: string | null;
  parameters: unknown[];
}

function wantedBy(filter: MeetingFilter): Wanted {
  const parameters: unknown[] = [];
  const placed = (value: unknown) => (value === null ? null : `$${parameters.push(value) + 1}`);
  const ownerKey = filter.ownerEmail && mailboxKeyOf(filter.ownerEmail);
  const search = filter.search && searchKey(filter.search);
  const [from, to, owner, status, text] = [filter.from, filter.to, ownerKey, filter.status, search].map(placed);
  const when = (from ? ` AND t.starts_at >= ${from}` : "") + (to ? ` AND t.starts_at < ${to}` : "");
  const which: Wanted["which"] = (meeting) =>
    (filter.includeCancelled ? "" : ` AND ${meeting}.cancelled_at IS NULL`) +
    (owner ? ` AND ${meeting}.owner_key = ${owner}` : "") +
    // Of one owner there are few beside all of a status, so each is asked for its own.
    (owner && status ? ` AND ${statusOf(meeting)} = ANY (${status})` : "") +
    // Of LIKE and of "> 0" the planner expects few meetings, and so it reads them all to sort those few.
    (text ? ` AND strpos(${meeting}.search_text, ${text}) <> 0` : "");
  return { when, which, status: owner ? null : (status ?? null), parameters };
}

const nextCopy = (beyond: string) => `(SELECT min(${COPY}) FROM meeting_match m WHERE m.tenant_id = $1 ${beyond})`;

/** SQL: the copies on which meetings were matched, with each status that is shown as one of these; they are few. */
const standings = (statuses: string) => `(
  WITH RECURSIVE copies (id) AS (
    SELECT ${nextCopy("")}
    UNION ALL
    SELECT ${nextCopy(`AND ${COPY} > copies.id`)} FROM copies WHERE copies.id IS NOT NULL
  ) SELECT copies.id AS copy_id, stored.status
    FROM copies CROSS JOIN unnest(ARRAY['MATCHED', 'NEEDS_CHOICE', 'NONE', 'PENDING']) AS stored (status)
    WHERE ${shown("copies.id", "stored.status")} = ANY (${statuses})) standing`;

/**
 * SQL: the meetings of some statuses, by their places `t`.
 * @param end takes so many of each standing, which one index has sorted; OFFSET: all, and yet each looked for by itself
 */
const ofStatuses = ({ when, which }: Wanted, status: string, { beyond, end }: { beyond: string; end: string }) => `
  SELECT t.* FROM ${standings(status)} CROSS JOIN LATERAL (
    SELECT d.* FROM (SELECT m.starts_at, m.meeting_id AS id FROM meeting_match m
      WHERE m.tenant_id = $1 AND ${COPY} = standing.copy_id AND m.status = standing.status) t
    CROSS JOIN LATERAL (SELECT * FROM meeting d WHERE d.tenant_id = $1 AND d.id = t.id LIMIT 1) d
    WHERE true${when}${which("d")}${beyond} ${end}) t`;

/** The tenant's own meetings, whether anything is connected or not. */
export function readMeetings(scope: TenantScope, filter: MeetingFilter, page: PageRequest): Promise<Page<MeetingRow>> {
  const wanted = wantedBy(filter);
  const { when, which, status, parameters } = wanted;
  if (status === null) return readPage(scope, MeetingRow, { where: [`true${when}${which("t")}`], parameters }, page);
  const from = ({ beyond, orderBy, limit }: Step) => {
    const end = `ORDER BY ${orderBy} LIMIT ${limit}`;
    return `(SELECT t.* FROM (${ofStatuses(wanted, status, { beyond, end })}) t ${end}) t`;
  };
  return readPage(scope, MeetingRow, { from, where: [], parameters }, page);
}

/** How many fit; null where they are more than are counted. */
export async function countMeetings({ tenantId, rows }: TenantScope, filter: MeetingFilter): Promise<number | null> {
  const wanted = wantedBy(filter);
  const { when, which, status, parameters } = wanted;
  const fitting =
    status === null
      ? `SELECT t.id FROM meeting t WHERE t.tenant_id = $1${when}${which("t")}`
      : ofStatuses(wanted, status, { beyond: "", end: "OFFSET 0" });
  const [found] = await rows<{ count: number }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM (${fitting}) f LIMIT ${MOST_COUNTED + 1}) f`,
    [tenantId, ...parameters],
    { count: "number" },
  );
  return found && found.count <= MOST_COUNTED ? found.count : null;
}

/** How many meetings begin after `since` (null: all). */
export async function countMeetingsSince({ tenantId, rows }: TenantScope, since: string | null): Promise<number> {
  const [found] = await rows<{ total: number }>(
    "SELECT count(*) AS total FROM meeting WHERE tenant_id = $1 AND starts_at > coalesce($2, '-infinity'::timestamptz)",
    [tenantId, since],
    { total: "number" },
  );
  return found?.total ?? 0;
}

/** A page of the meetings that begin after `since` (null: of all), the last to begin first. */
export async function readMeetingsSince(
  scope: TenantScope,
  since: string | null,
  before: { startsAt: string; id: string } | null,
  limit: number,
): Promise<MatchableMeeting[]> {
  const found = await scope.rows<MatchableMeeting["row"]>(
    `SELECT id, starts_at AS "startsAt", ends_at AS "endsAt", owner_email AS "ownerEmail", cancelled_at AS "cancelledAt" FROM meeting
     WHERE tenant_id = $1 AND starts_at > coalesce($2, '-infinity'::timestamptz) AND ($3::timestamptz IS NULL OR (starts_at, id) < ($3, $4::uuid))
     ORDER BY starts_at DESC, id DESC LIMIT $5`,
    [scope.tenantId, since, before?.startsAt ?? null, before?.id ?? null, limit],
    { id: "text", startsAt: "instant", endsAt: "instant", ownerEmail: "text", cancelledAt: "instant" },
  );
  const attendees = await readAttendees(
    scope,
    found.map(({ id }) => id),
  );
  const byMeeting = new Map(found.map(({ id }): [string, MeetingAttendeeRow[]] => [id, []]));
  for (const attendee of attendees) byMeeting.get(attendee.meetingId)?.push(attendee);
  return found.map((row) => ({ row, attendees: byMeeting.get(row.id) ?? [] }));
}
