import { type CopyScope } from "../database/database";
import { type Ids, rowsOf } from "../database/rows";
import type { DealRow } from "../entities/deal";
import { ActivityRow } from "../entities/records";
import { matchesOf } from "./meeting-rows";
import { isOurNote } from "./notes";
import { EARLIEST_BEGIN, HAPPENED_AT, HAPPENED_ON, LAST_END_OF_DAY, ZONE } from "./quiet/fact-rows";
import type { ContactKind } from "./quiet/facts";
import { calendarIn } from "./quiet/rules";
import { beginOf, isAhead, momentOf } from "./quiet/situation";
import { type Mails, OF_PARENT, type OfParent, readableBy } from "./records";

/** A contact with a buyer. The person may be one who is not readable. */
export interface InteractionRow {
  kind: ContactKind | "MEETING";
  at: Date;
  /** Midnight in UTC of the day that begins then in the zone, where the CRM has no time of it. */
  day: Date | null;
  personId: number | null;
  activityId: number | null;
}

/** What a contact hangs on. @property crmId of the activity, the note or the person of a mail; 0 for a meeting */
export interface ContactRow extends InteractionRow {
  crmId: number;
  meetingId: string | null;
}

/** SQL: the meetings that are about a deal, and those in which a person was found; they may have been recorded without since. */
const HELD = `SELECT m.id, coalesce(m.ends_at, m.starts_at) AS at, of_parent.person_id FROM (
    SELECT mm.meeting_id, NULL::bigint FROM ${rowsOf("meeting_match", "deal_id", "parent.deal")} mm WHERE mm.status = 'MATCHED'
    UNION ALL SELECT r.meeting_id, r.crm_id FROM matched_record r
    WHERE r.tenant_id = $1 AND r.copy_id = $2 AND r.entity = 'PERSON' AND r.crm_id = parent.person
  ) of_parent (meeting_id, person_id) CROSS JOIN LATERAL (
    SELECT t.id, t.starts_at, t.ends_at FROM meeting t WHERE t.tenant_id = $1 AND t.id BETWEEN of_parent.meeting_id AND of_parent.meeting_id ORDER BY t.id) m
  WHERE coalesce(m.ends_at, m.starts_at) <= $5`;

/** SQL: the first BUYER of a held meeting who is a known person; no row where it has no BUYER, or not that person any more. */
const BUYER = `SELECT (min(ARRAY[b.position, b.person_id]) FILTER (WHERE b.side = 'BUYER' AND b.person_id IS NOT NULL))[2] AS person_id
  FROM meeting_attendee b WHERE b.tenant_id = $1 AND b.meeting_id = held.id
  HAVING bool_or(b.side = 'BUYER') AND (held.person_id IS NULL OR bool_or(b.person_id = held.person_id))`;

/** SQL: the latest with a buyer: of thousands only of these the attendees are looked at. */
const MEETINGS = `(SELECT held.at, buyer.person_id, held.id FROM (${HELD} ORDER BY at DESC, id OFFSET 0) held
  CROSS JOIN LATERAL (${BUYER}) buyer ORDER BY held.at DESC, held.id LIMIT $4)`;

/**
 * SQL: the newest first, and those of one instant always in the same order. Those without a time have an order of their own:
 * where in the others' they belong only the zone tells.
 */
const NEWEST_FIRST = "ORDER BY at DESC, kind, crm_id DESC, meeting_id";

/** SQL: what an activity has in a timeline, and what says when it took place. */
const OF_ACTIVITY = "a.crm_id, a.person_id, a.happened_at, a.due_at, a.due_has_time, a.done_at, a.update_time";
/**
 * SQL: the done activities of a parent, by the key that it has, that may be among its latest: of tens of thousands only these are
 * read. When they began the zone tells, but no later than half a day behind their order, and no sooner than so many of them.
 */
const activitiesOf = (column: string, value: string) => {
  const own = `SELECT ${OF_ACTIVITY} FROM activity a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.${column} = ${value}`;
  return `(${own} AND a.happened_at >= (
      SELECT CASE count(*) WHEN $4 THEN min(LEAST(${HAPPENED_AT}, ${HAPPENED_ON} - ${EARLIEST_BEGIN})) - ${EARLIEST_BEGIN} ELSE '-infinity' END
      FROM (${own} AND a.happened_at IS NOT NULL ORDER BY a.happened_at DESC LIMIT $4) a)
    ORDER BY a.happened_at DESC OFFSET 0)`;
};
const ACTIVITIES = `(SELECT * FROM ${activitiesOf("deal_id", "parent.deal")} of_deal
  UNION ALL SELECT * FROM ${activitiesOf("person_id", "parent.person")} of_person)`;

const LATEST = "ORDER BY parent_id DESC, add_time DESC, crm_id DESC";
const notesOf = (
  column: string,
  value: string,
) => `(SELECT ${column} AS parent_id, add_time, crm_id, person_id, content FROM note t
    WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.${column} BETWEEN ${value} AND ${value}
    ORDER BY t.${column} DESC, t.add_time DESC, t.crm_id DESC)`;
/** SQL: the latest that are not ours, in the order of their index: of thousands only these are opened. */
const NOTES = `(SELECT * FROM (
    ${notesOf("deal_id", "parent.deal")} UNION ALL ${notesOf("person_id", "parent.person")} ${LATEST} OFFSET 0) n
  WHERE NOT ${isOurNote("n")} ${LATEST} LIMIT $4)`;

/** SQL: each parent of `around` once, a deal or a person. */
const PARENTS = `SELECT DISTINCT entity, id, CASE entity WHEN 'DEAL' THEN id END AS deal, CASE entity WHEN 'PERSON' THEN id END AS person
  FROM around`;

/** SQL: the latest that hang on each parent, each table by its key, whatever is known of it. */
const CONTACTS = `SELECT parent.entity, parent.id, own.* FROM (${PARENTS}) parent CROSS JOIN LATERAL (
    SELECT 'ACTIVITY', ${HAPPENED_AT}, ${HAPPENED_ON}, a.person_id, a.crm_id, NULL::uuid FROM ${ACTIVITIES} a
    UNION ALL SELECT 'NOTE', n.add_time, NULL, n.person_id, n.crm_id, NULL FROM ${NOTES} n
    UNION ALL SELECT 'MEETING', m.at, NULL, m.person_id, 0, m.id FROM ${MEETINGS} m) own`;

/** SQL: the deal that a meeting is about, or while that is not certain all that it could be; and its attendees that are known persons. */
const aroundOf = (
  meetingIds: Ids<string>,
) => `SELECT own.meeting_id, parent.* FROM ${matchesOf("$3", meetingIds)} own CROSS JOIN LATERAL (
    SELECT 'DEAL', d.crm_id FROM ${readableBy("own.meeting_id")} r CROSS JOIN LATERAL ${rowsOf("deal", "crm_id", "r.crm_id")} d
    WHERE r.entity = 'DEAL' AND r.crm_id = coalesce(own.deal_id, r.crm_id)
    UNION ALL SELECT 'PERSON', b.person_id FROM meeting_attendee b
    WHERE b.tenant_id = $1 AND b.meeting_id = own.meeting_id AND b.person_id IS NOT NULL
  ) parent WHERE own.copy_id = $2`;

/**
 * The latest contacts about the deals of meetings and with their attendees, each once, mails left out. None where a match is not
 * of the copy. What hangs on a deal or a person is read once, around however many meetings it is.
 * @param first how many around each meeting
 */
export async function readContacts(
  { tenantId, copyId, rows }: CopyScope,
  meetingIds: Ids<string>,
  first: number,
  now: Date,
): Promise<(ContactRow & { parent_id: string })[]> {
  const found = await rows<ContactRow & { parent_id: string; zone: string | null }>(
    `WITH around (parent_id, entity, id) AS MATERIALIZED (${aroundOf(meetingIds)}),
       contact (entity, id, kind, at, day, person_id, crm_id, meeting_id) AS MATERIALIZED (
         ${CONTACTS})
     SELECT parent_id, kind, at, day, ${ZONE} AS zone, person_id AS "personId", CASE kind WHEN 'ACTIVITY' THEN crm_id END AS "activityId",
       crm_id AS "crmId", meeting_id AS "meetingId"
     FROM (
       SELECT *, row_number() OVER (PARTITION BY parent_id, day IS NULL ${NEWEST_FIRST}) AS place FROM (
         SELECT DISTINCT parent_id, kind, at, day, person_id, crm_id, meeting_id FROM around JOIN contact USING (entity, id)) each
     ) placed WHERE place <= $4`,
    [tenantId, copyId, meetingIds, first, now],
    {
      ...{ parent_id: "text", kind: "text", at: "instant", personId: "number", activityId: "number" },
      ...{ crmId: "number", meetingId: "text", day: "instant", zone: "text" },
    },
  );
  return found.map(({ day, zone, ...contact }) => {
    const moment = momentOf({ at: contact.at.getTime(), day: day?.getTime() }, calendarIn(zone));
    return { ...contact, at: new Date(moment.at), day: moment.day === null ? null : new Date(moment.day) };
  });
}

/** A mail hangs on its person. */
function mail(kind: ContactKind, at: Date | null, crmId: number | null): ContactRow[] {
  return at && crmId !== null
    ? [{ kind, at, day: null, crmId, personId: crmId, activityId: null, meetingId: null }]
    : [];
}

/** What is known of the contacts around a meeting. */
export interface Around {
  /** What hangs on its deals and its attendees. */
  contacts: readonly ContactRow[];
  deals: readonly Pick<DealRow, "firstMailAt" | "firstMailPersonId">[];
  /** Its attendees and the people of the deals, by whom silence is judged; they may not be held. */
  people: ReadonlySet<number>;
  /** Of those that are. */
  mails: readonly Mails[];
}

/** The latest, newest first: with them our first mail to one of the people, which is kept. */
export function timelineOf({ contacts, deals, people, mails }: Around, first: number): InteractionRow[] {
  const firstMails = deals
    .filter(({ firstMailPersonId: to }) => to === null || people.has(to))
    .flatMap(({ firstMailAt, firstMailPersonId }) => mail("OUTGOING_MAIL", firstMailAt, firstMailPersonId ?? 0));
  const lastMails = mails.flatMap(({ crmId, incoming, outgoing }) => [
    ...mail("INCOMING_MAIL", incoming, crmId),
    ...mail("OUTGOING_MAIL", outgoing, crmId),
  ]);
  const each = new Map(
    [...contacts, ...lastMails, ...firstMails].map((contact) => {
      const { kind, at, crmId, meetingId } = contact;
      return [`${kind} ${at.getTime()} ${crmId} ${meetingId}`, contact];
    }),
  );
  return [...each.values()].sort(newestFirst).slice(0, first);
}

/** Of contacts at one instant always in the same order. */
function newestFirst(one: ContactRow, other: ContactRow): number {
  const byTime = other.at.getTime() - one.at.getTime();
  if (byTime !== 0) return byTime;
  if (one.kind !== other.kind) return one.kind < other.kind ? -1 : 1;
  return other.crmId - one.crmId || ((one.meetingId ?? "") < (other.meetingId ?? "") ? -1 : 1);
}

/** SQL: such a day is over by the instant $4 in some zones, and in others is not: of each there is one. */
const DAY_OF_NOW = `CASE WHEN NOT t.due_has_time AND t.due_at <= $4::timestamptz + ${EARLIEST_BEGIN} THEN t.due_at END`;

/**
 * The next planned activity of each deal: the earliest undone one that is due at or after `now`, or where it has no time on
 * this day of the zone that silence is judged in. What is overdue is not next. Deal by deal: for an ANY, PostgreSQL 15 went
 * through all that the copy has planned or done.
 */
export async function readNextActivities(
  { tenantId, copyId, entities }: CopyScope,
  dealIds: Ids,
  now: Date,
): Promise<(ActivityRow & OfParent)[]> {
  const found = await entities<ActivityRow, OfParent & { whole_day: boolean; zone: string | null }>(
    ActivityRow,
    `SELECT DISTINCT ON (t.deal_id, t.due_has_time, ${DAY_OF_NOW}) t.*, t.deal_id AS parent_id,
       NOT t.due_has_time AS whole_day, ${ZONE} AS zone
     FROM unnest($3::bigint[]) AS one (id) CROSS JOIN LATERAL (
       SELECT * FROM activity t WHERE t.tenant_id = $1 AND t.copy_id = $2 AND t.deal_id = one.id AND t.happened_at IS NULL OFFSET 0) t
     WHERE NOT t.done AND t.due_at >= $4::timestamptz - CASE WHEN t.due_has_time THEN interval '0' ELSE ${LAST_END_OF_DAY} END
     ORDER BY t.deal_id, t.due_has_time, ${DAY_OF_NOW}, t.due_at, t.crm_id`,
    [tenantId, copyId, dealIds, now],
    { ...OF_PARENT, whole_day: "flag", zone: "text" },
  );
  const next = new Map<number, { row: ActivityRow & OfParent; begins: number }>();
  for (const row of found) {
    const calendar = calendarIn(row.zone);
    const step = { dueAt: row.dueAt?.getTime() ?? 0, wholeDay: row.whole_day };
    const [begins, first] = [beginOf(step, calendar), next.get(row.parent_id)];
    const isFirst = !first || begins < first.begins || (begins === first.begins && row.crmId < first.row.crmId);
    if (isFirst && isAhead(step, calendar, now.getTime())) next.set(row.parent_id, { row, begins });
  }
  return [...next.values()].map(({ row }) => row);
}
