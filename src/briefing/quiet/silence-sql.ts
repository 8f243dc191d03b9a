import { isOurNote } from "../our-notes";
import { ANSWER_DAYS, COOLING_SECONDS_PER_DAY, NEAR_STEP_DAYS, THRESHOLD_DAYS } from "./thresholds";

/**
 * The facts of silence as SQL over a row of `deal`, and the verdict over them. $1 is the tenant and $2 the copy; the
 * instant of the judgement is given as SQL. The same rules as `judge`, and a test holds the two together.
 */

/** Intervals in days would follow the session's time zone; a day of silence has 24 hours. */
const days = (count: number) => `interval '${count * 24} hours'`;

/** Where these are old nothing is judged: what the buyer did since is in them. */
const CONTACT_LISTS = ["PERSONS", "ACTIVITIES"];
/** What a judgement is complete as of: its deal, and all that counts as a contact. */
const JUDGED_LISTS = [...CONTACT_LISTS, "DEALS", "NOTES"];

/** SQL: the oldest watermark of lists; null where one of them was never read to its end. */
const oldestOf = (
  lists: readonly string[],
) => `(SELECT CASE WHEN count(l.watermark) = ${lists.length} THEN min(l.watermark) END
    FROM sync_list l WHERE l.tenant_id = $1 AND l.copy_id = $2 AND l.resource IN (${lists.map((list) => `'${list}'`)}))`;

/** A statement that uses what is below begins `WITH ${quietCopy}`. */
export const quietCopy = `quiet_copy AS MATERIALIZED (
  SELECT ${oldestOf(CONTACT_LISTS)} AS read_at, ${oldestOf(JUDGED_LISTS)} AS as_of,
    EXISTS (SELECT 1 FROM person WHERE tenant_id = $1 AND copy_id = $2
      AND (last_incoming_mail_time IS NOT NULL OR last_outgoing_mail_time IS NOT NULL)) AS has_mail)`;

/** A done activity took place when it was due, and not after somebody ticked it off. */
export const HAPPENED_AT = "LEAST(a.happened_at, coalesce(a.done_at, a.update_time))";

/** Rows (kind, at, ref): contacts of deal `d` that the CRM knows of. */
export const contactsOf = (d: string) => `
  SELECT mail.kind, mail.at, p.crm_id AS ref
  FROM (SELECT x.person_id FROM deal_participant x WHERE x.tenant_id = $1 AND x.copy_id = ${d}.copy_id AND x.deal_id = ${d}.crm_id
        UNION SELECT ${d}.person_id) people
  JOIN person p ON p.tenant_id = $1 AND p.copy_id = ${d}.copy_id AND p.crm_id = people.person_id
  CROSS JOIN LATERAL (VALUES ('INCOMING_MAIL', p.last_incoming_mail_time),
                             ('OUTGOING_MAIL', p.last_outgoing_mail_time)) mail (kind, at)
  WHERE mail.at IS NOT NULL
  UNION ALL
  SELECT 'ACTIVITY', ${HAPPENED_AT}, a.crm_id FROM activity a
  WHERE a.tenant_id = $1 AND a.copy_id = ${d}.copy_id AND a.deal_id = ${d}.crm_id AND a.happened_at IS NOT NULL
  UNION ALL
  SELECT 'NOTE', n.add_time, n.crm_id FROM note n
  WHERE n.tenant_id = $1 AND n.copy_id = ${d}.copy_id AND n.deal_id = ${d}.crm_id AND NOT ${isOurNote("n")}`;

/** Rows (meeting_id, starts_at, ends_at, with_buyer): the recorded meetings that are about deal `d`. */
export const meetingsOf = (d: string) => `
  SELECT m.id AS meeting_id, m.starts_at, coalesce(m.ends_at, m.starts_at) AS ends_at,
    EXISTS (SELECT 1 FROM meeting_attendee b
      WHERE b.tenant_id = $1 AND b.meeting_id = m.id AND b.side = 'BUYER') AS with_buyer
  FROM meeting_match mm JOIN meeting m ON m.tenant_id = $1 AND m.id = mm.meeting_id
  WHERE mm.tenant_id = $1 AND mm.copy_id = ${d}.copy_id AND mm.deal_id = ${d}.crm_id AND mm.status = 'MATCHED'`;

/** Rows (crm_id, due_at, whole_day, ahead, due_end): the activities of deal `d` that are not done. */
export const plannedOf = (d: string, now: string) => `
  SELECT a.crm_id, a.due_at, NOT a.due_has_time AS whole_day,
    CASE WHEN a.due_has_time THEN a.due_at >= ${now} ELSE a.due_at + ${days(1)} > ${now} END AS ahead,
    CASE WHEN a.due_has_time THEN a.due_at ELSE a.due_at + ${days(1)} END AS due_end
  FROM activity a
  WHERE a.tenant_id = $1 AND a.copy_id = ${d}.copy_id AND a.deal_id = ${d}.crm_id AND a.happened_at IS NULL AND NOT a.done
    AND a.due_at IS NOT NULL`;

/** One row (verdict, quiet_since) of deal `d`, for a LATERAL join beside `quiet_copy`. */
export const silenceOf = (d: string, now: string) => `
  SELECT judged.verdict, CASE WHEN judged.verdict IN ('COOLING', 'QUIET', 'GHOSTED') THEN known.touch END AS quiet_since
  FROM (
    SELECT max(c.at) FILTER (WHERE c.kind = 'INCOMING_MAIL') AS incoming,
      max(c.at) FILTER (WHERE c.kind <> 'INCOMING_MAIL') AS outbound,
      min(c.at) FILTER (WHERE c.kind <> 'INCOMING_MAIL') AS first_outbound
    FROM (${contactsOf(d)}) c
  ) said
  CROSS JOIN (
    SELECT max(m.ends_at) FILTER (WHERE m.with_buyer AND m.ends_at <= ${now}) AS held,
      min(m.starts_at) FILTER (WHERE m.ends_at > ${now}) AS step
    FROM (${meetingsOf(d)}) m
  ) met
  CROSS JOIN (SELECT min(p.due_at) FILTER (WHERE p.ahead) AS step FROM (${plannedOf(d, now)}) p) planned
  CROSS JOIN LATERAL (
    SELECT GREATEST(said.incoming, met.held) AS inbound, LEAST(met.step, planned.step) AS step,
      coalesce(GREATEST(said.incoming, met.held, said.outbound), ${d}.add_time) AS touch,
      coalesce(${d}.stage_change_time, ${d}.add_time) AS in_stage_since,
      coalesce((SELECT s.days_to_rotten FROM stage s WHERE s.tenant_id = $1 AND s.copy_id = ${d}.copy_id AND s.crm_id = ${d}.stage_id
        AND s.days_to_rotten > 0), ${THRESHOLD_DAYS.NO_RECENT_ACTIVITY}) AS silence_days
  ) known
  CROSS JOIN LATERAL (SELECT ${verdict(d, now)} AS verdict) judged`;

/** The conditions of `verdictOf`, in its order. A comparison with what is not known counts as not met. */
function verdict(d: string, now: string): string {
  const ghosted = `said.outbound > known.inbound AND ${now} >= known.inbound + ${days(THRESHOLD_DAYS.GHOSTED)}
    AND ${now} >= said.outbound + ${days(ANSWER_DAYS)}`;
  const neverReplied = `known.inbound IS NULL AND ${now} >= said.first_outbound + ${days(THRESHOLD_DAYS.NEVER_REPLIED)}`;
  const noNextStep = `known.step IS NULL AND ${now} > known.touch + ${days(THRESHOLD_DAYS.NO_NEXT_STEP)}`;
  return `CASE
    WHEN ${d}.status <> 'open' THEN 'ACTIVE'
    WHEN quiet_copy.read_at IS NULL OR ${now} > quiet_copy.read_at + ${days(THRESHOLD_DAYS.DATA_STALE)} THEN 'UNKNOWN'
    WHEN quiet_copy.has_mail AND known.step IS NULL AND ((${ghosted}) OR (${neverReplied})) THEN 'GHOSTED'
    WHEN ${now} >= known.touch + known.silence_days * ${days(1)}
      AND (known.step IS NULL OR known.step > ${now} + ${days(NEAR_STEP_DAYS)}) THEN 'QUIET'
    WHEN ${now} >= known.touch + known.silence_days * interval '${COOLING_SECONDS_PER_DAY} seconds'
      OR (${noNextStep}) OR ${now} >= known.in_stage_since + ${days(THRESHOLD_DAYS.STALLED_IN_STAGE)} THEN 'COOLING'
    ELSE 'ACTIVE' END`;
}
