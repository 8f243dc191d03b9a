import { gathered, listOf, ms, rowsOf, rowsOfEach } from "../../database/rows";
import { isOurNote } from "../notes";
import type { JudgingSql } from "./silence-rows";
import { MOST_AHEAD } from "./situation";

/**
 * SQL of what silence is judged by: of deals themselves, and of what others say of them. $1 is the tenant, $2 the copy, $3 the
 * instant, and `d` a row of `deal`. What is left out of a deal changes no answer from that instant on.
 */

/** SQL of what deals are judged by, as far as they have it themselves. */
export const DEAL = listOf(
  ...["d.crm_id", "d.status = 'open'", ms("d.add_time"), ms("coalesce(d.stage_change_time, d.add_time)")],
  ...["d.stage_id", "d.pipeline_id", "d.owner_id", ms("d.expected_close_date::timestamp AT TIME ZONE 'UTC'")],
  ...[ms("d.update_time"), "d.participants_known"],
  `CASE WHEN d.snooze_ends_at > $3 THEN json_build_array(${ms("d.snoozed_at")}, ${ms("d.snoozed_until")}) END`,
  "deals d",
);
export const DEAL_COLUMNS = `d.crm_id, d.status, d.add_time, d.stage_change_time, d.stage_id, d.pipeline_id, d.owner_id, d.person_id,
  d.update_time, d.expected_close_date, d.participants_known, d.participants_count, d.first_mail_at, d.first_mail_person_id,
  d.snoozed_at, d.snoozed_until, d.snooze_ends_at`;

/** The deal's person and its participants. */
const PEOPLE = `SELECT array_agg(p.person_id) AS ids FROM (
    SELECT x.person_id FROM ${rowsOf("deal_participant", "deal_id", "d.crm_id")} x
    UNION SELECT d.person_id WHERE d.person_id IS NOT NULL) p`;

/** SQL: a contact that is the earliest or latest of some, as an array that is in the order of time; of one instant the first id is taken. */
const earliest = (id: string, ...at: string[]) => `min(ARRAY[${[...at.map((one) => ms(one)), id]}])`;
const latest = (id: string, ...at: string[]) => `max(ARRAY[${[...at.map((one) => ms(one)), `-${id}`]}])`;

/** SQL: whether the person to whom the first mail about a deal went is gone from the CRM: most of them were merged into another. */
export const firstMailIsToNobody = (deal: string) => `${deal}.first_mail_person_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM person p WHERE p.tenant_id = $1 AND p.copy_id = $2 AND p.crm_id = ${deal}.first_mail_person_id OFFSET 0)`;

/**
 * The latest of both sides, and the earliest of ours since the deal was added; and whether our first mail stays: as long as
 * who got it is one of the deal's `people`, or is no other person.
 */
const MAILS = `SELECT ${latest("p.crm_id", "p.last_incoming_mail_time")} FILTER (WHERE p.last_incoming_mail_time IS NOT NULL) AS incoming,
    ${latest("p.crm_id", "p.last_outgoing_mail_time")} FILTER (WHERE p.last_outgoing_mail_time IS NOT NULL) AS outgoing,
    ${earliest("p.crm_id", "p.last_outgoing_mail_time")} FILTER (WHERE p.last_outgoing_mail_time >= coalesce(d.add_time, '-infinity')) AS first_of_ours,
    coalesce(d.first_mail_person_id = ANY (people.ids), false) OR ${firstMailIsToNobody("d")} AS keeps_first
  FROM ${rowsOfEach("person", "crm_id", "people.ids")} p`;

/** SQL: joins to a deal `d` its `people`, and their `mails`. */
const WITH_MAILS = `CROSS JOIN LATERAL (${PEOPLE}) people
     CROSS JOIN LATERAL (${MAILS}) mails`;

/** SQL: what is kept is of this deal, and no earlier one of `mails` has become known since: of somebody who takes part by now. */
const KEEPS_THE_FIRST = `mails.keeps_first AND (d.first_mail_at < d.add_time) IS NOT TRUE
  AND (mails.first_of_ours[1] < ${ms("d.first_mail_at")}) IS NOT TRUE`;

/**
 * Within half of the 30 days in which a step is near, all that lie between the first and the last change nothing: a deal that
 * has more of them than are looked at is planned for years.
 */
const APART_SECONDS = 15 * 86_400;
/** A day begins, somewhere on earth, so long before its midnight in UTC. */
export const EARLIEST_BEGIN = "interval '14 hours'";
/** A day without a time ends, somewhere on earth, so long after its midnight in UTC. */
export const LAST_END_OF_DAY = "interval '38 hours'";
/** SQL: whose days count for a copy; null where nothing was judged of it yet. */
export const ZONE = "(SELECT j.standards ->> 'timeZone' FROM judged_copy j WHERE j.tenant_id = $1 AND j.copy_id = $2)";

/** SQL: when a done activity `a` was ticked off, as far as the CRM says. */
export const TICKED_OFF = "coalesce(a.done_at, a.update_time)";
/** No zone's day begins later after its midnight in UTC, or earlier before it but on a few islands. */
const HALF_A_DAY = "interval '12 hours'";
/**
 * SQL: of a done activity `a` that has a day and no time that day's midnight in UTC, null for others: when it began is the
 * zone's. One that was ticked off before took place then.
 */
export const HAPPENED_ON = `CASE WHEN NOT a.due_has_time AND a.due_at IS NOT NULL
  AND (${TICKED_OFF} < a.happened_at - ${HALF_A_DAY}) IS NOT TRUE THEN a.happened_at END`;
/**
 * SQL: a done activity took place when it was due, and not after somebody ticked it off. Of a day without a time it is the
 * latest that it can have been.
 */
export const HAPPENED_AT = `LEAST(coalesce(${HAPPENED_ON} + ${HALF_A_DAY}, a.happened_at), ${TICKED_OFF})`;
/** SQL: by when it is known to have taken place; one of a day without a time when it was ticked off, be it on another day. */
const KNOWN_AT = `CASE WHEN ${HAPPENED_ON} IS NULL THEN ${HAPPENED_AT} ELSE coalesce(${TICKED_OFF}, ${HAPPENED_AT}) END`;
/** SQL: such a day that began in some zones before the deal was added and in others after it: of each the earliest is found. */
const DAY_OF_ADDING = `CASE WHEN a.day BETWEEN d.add_time - ${HALF_A_DAY} AND d.add_time + ${EARLIEST_BEGIN} THEN a.day END`;

/** SQL: such a day on which a snooze may have begun, or the one beside it: of each the one that was ticked off last is found. */
const DAY_OF_SNOOZE = `CASE WHEN a.day BETWEEN d.snoozed_at - ${LAST_END_OF_DAY} AND d.snoozed_at + ${LAST_END_OF_DAY} THEN a.day END`;

/** With nobody outside they speak of our house alone, and only the latest is ever looked at. Most are not ours. */
const LATEST_NOTE = `SELECT ARRAY[${ms("n.add_time")}, -n.crm_id] FROM note n
  WHERE n.tenant_id = $1 AND n.copy_id = $2 AND n.deal_id BETWEEN d.crm_id AND d.crm_id AND NOT ${isOurNote("n")}
  ORDER BY n.deal_id DESC, n.add_time DESC, n.crm_id LIMIT 1`;

/**
 * SQL: whether an activity `a` took place. By an index of others a kept plan went for each deal through all that the tenant has
 * planned: for such plans it is said so that no index holds it.
 */
const BY_INDEX = { happened: "a.happened_at IS NOT NULL", planned: "a.happened_at IS NULL" };
const BY_DEAL = { happened: "num_nulls(a.happened_at) = 0", planned: "num_nulls(a.happened_at) = 1" };

/** A first mail that is to be replaced by an earlier one is none any more: what is judged is what will be read. */
const endsOf = (
  happened: string,
) => `SELECT 'INCOMING_MAIL' AS kind, NULL AS type, true AS with_person, mails.incoming AS latest, NULL::bigint[] AS earliest
  UNION ALL
  SELECT 'OUTGOING_MAIL', NULL, true, mails.outgoing, mails.first_of_ours
  UNION ALL
  SELECT 'OUTGOING_MAIL', NULL, true, NULL, ARRAY[${ms("d.first_mail_at")}, d.first_mail_person_id] WHERE ${KEEPS_THE_FIRST}
  UNION ALL
  SELECT 'ACTIVITY', a.type, a.with_person, ${latest("a.crm_id", "a.day", "a.known_at")},
    ${earliest("a.crm_id", "a.day", "a.known_at")} FILTER (WHERE a.at >= coalesce(d.add_time, '-infinity'))
  FROM (SELECT a.type, a.crm_id, ${HAPPENED_ON} AS day, ${HAPPENED_AT} AS at, ${KNOWN_AT} AS known_at,
          coalesce(a.person_id = ANY (people.ids) OR a.participant_ids && people.ids, false) AS with_person
        FROM ${rowsOf("activity", "deal_id", "d.crm_id")} a WHERE ${happened}) a
  GROUP BY a.type, a.with_person, a.day IS NULL, ${DAY_OF_ADDING}, ${DAY_OF_SNOOZE}
  UNION ALL
  SELECT 'NOTE', NULL, false, (${LATEST_NOTE}), NULL`;
/** The latest, and the earliest since the deal was added, of those that count alike. */
const endsOfContacts = (happened: string) =>
  listOf("e.kind", "e.type", "e.with_person", "e.latest", "e.earliest", `(${endsOf(happened)}) e`);

const OF_MEETINGS = `SELECT m.id, m.starts_at, coalesce(m.ends_at, m.starts_at) AS ends_at FROM ${rowsOf("meeting_match", "deal_id", "d.crm_id")} mm
  CROSS JOIN LATERAL (SELECT * FROM meeting t
    WHERE t.tenant_id = $1 AND t.id BETWEEN mm.meeting_id AND mm.meeting_id ORDER BY t.id) m
  WHERE mm.status = 'MATCHED'`;

/** Looked at of one after the other, and no more of a deal's meetings than it takes. */
const WITH_BUYER = `(SELECT count(*) > 0 FROM meeting_attendee b
    WHERE b.tenant_id = $1 AND b.meeting_id = m.id AND b.side = 'BUYER')`;

/** Those ahead, and the latest held one with a buyer. */
const MEETINGS = gathered(`WITH matched AS MATERIALIZED (${OF_MEETINGS})
  SELECT json_build_object('meetingId', m.id, 'startsAt', ${ms("m.starts_at")}, 'endsAt', ${ms("m.ends_at")}, 'withBuyer', m.with_buyer)
  FROM (SELECT m.*, ${WITH_BUYER} AS with_buyer
        FROM (SELECT * FROM matched WHERE ends_at > $3 ORDER BY starts_at, id LIMIT ${MOST_AHEAD}) m
        UNION ALL
        (SELECT m.*, true FROM (SELECT * FROM matched WHERE ends_at <= $3 ORDER BY ends_at DESC, id) m WHERE ${WITH_BUYER} LIMIT 1)) m`);

/** With and without a time: of those that may be ahead the first and the last of each half month, and the first of those before. */
const plannedOf = (planned: string) =>
  listOf(
    ...["p.whole_day", "p.first", "CASE WHEN p.part IS NOT NULL THEN p.last END"],
    `(SELECT u.whole_day, u.part, ${earliest("u.crm_id", "u.due_at")} AS first, ${latest("u.crm_id", "u.due_at")} AS last
        FROM (SELECT a.crm_id, a.due_at, NOT a.due_has_time AS whole_day,
                CASE WHEN a.due_at > $3 - ${LAST_END_OF_DAY} THEN floor(date_part('epoch', a.due_at) / ${APART_SECONDS}) END AS part
              FROM ${rowsOf("activity", "deal_id", "d.crm_id")} a
              WHERE ${planned} AND NOT a.done AND a.due_at IS NOT NULL) u
        GROUP BY u.whole_day, u.part ORDER BY u.part NULLS FIRST LIMIT ${MOST_AHEAD}) p`,
  );

/** SQL over `deals`: by deal what others say of it, looked up. */
const foundOf = ({ happened, planned }: typeof BY_INDEX) =>
  listOf(
    "d.crm_id",
    `json_build_object('contacts', ${endsOfContacts(happened)}, 'meetings', ${MEETINGS}, 'planned', ${plannedOf(planned)}, 'hasMail',
    coalesce(mails.incoming, mails.outgoing) IS NOT NULL OR mails.keeps_first, 'hasFirstMail', ${KEEPS_THE_FIRST},
    'firstMailLeft', d.first_mail_person_id IS NOT NULL AND NOT mails.keeps_first)`,
    `deals d ${WITH_MAILS}`,
  );
export const FOUND = foundOf(BY_INDEX);
/** The same for kept plans. */
export const FOUND_BY_DEAL = foundOf(BY_DEAL);
/** Half of what a page of deals costs is to look the others up. */
export const keptOf = ({ kept }: JudgingSql) =>
  listOf("s.deal_id", "s.of_others", `${kept} AND s.of_others IS NOT NULL`);

/** The CRM's clock and ours may differ by so much. */
const SKEW = "interval '1 minute'";
/** A write whose answer was lost may still take effect for so long. */
const LATE_EFFECT = "interval '3 minutes'";
const OF_WRITE = "deal_id, crm_company_id, state, error_code, deal_updated_before, requested_at, sent_at, settled_at";
const writesTo = (table: string) => `
  SELECT w.deal_id, w.deal_updated_before AS before, w.requested_at - ${SKEW} AS opens,
    CASE WHEN w.settled_at = w.sent_at THEN w.sent_at ELSE coalesce(w.sent_at, w.requested_at) + ${LATE_EFFECT} END + ${SKEW} AS closes
  FROM (SELECT ${OF_WRITE} FROM ${table} t WHERE t.tenant_id = $1 AND t.deal_id BETWEEN one.id AND one.id ORDER BY t.deal_id) w
  WHERE w.crm_company_id = known.company AND (w.state <> 'FAILED' OR w.error_code = 'NOT_APPLIED')`;
/** SQL: by deal each {@link OurWrite} to the deals `known.rotting`: only where a stage rots does it matter who changed a deal. */
export const OUR_WRITES = listOf(
  ...["w.deal_id", `json_build_array(${[ms("w.before"), ms("w.opens"), ms("w.closes")]})`],
  `unnest(known.rotting) AS one (id) CROSS JOIN LATERAL (${writesTo("note_write")} UNION ALL ${writesTo("field_write")}) w`,
);
