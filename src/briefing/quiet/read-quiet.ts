import { oldestOf, WITH_GAP } from "../../connections/completeness";
import { PUSHES } from "../../connections/journal";
import { type CopyScope, ms, rowsOf } from "../../database/database";
import type { Shape } from "../../database/reads";
import type { Standards } from "../../entities/silence";
import { isOurNote, updatedByOthers } from "../notes";
import type { CopyFacts, DealFacts } from "./facts";
import { byStandards, rulesOf, STANDARD } from "./rules";
import { earliest, type Judging, KEEPS_FIRST_MAIL, KEEPS_THE_FIRST, latest, READING, WITH_MAILS } from "./silence-rows";
import { contactsOf, MOST_AHEAD, type OfOthers, plannedOf } from "./situation";
import type { TakenPhase } from "./verdict";

/**
 * What silence is judged by, read for deals at one instant. In the SQL below $1 is the tenant, $2 the copy, $3 the instant,
 * $4 the deals and `d` a row of `deal`. What it leaves out of a deal changes no answer from that instant on.
 */

/**
 * Within half of the 30 days in which a step is near, all that lie between the first and the last change nothing: a deal that
 * has more of them than are looked at is planned for years.
 */
const APART_SECONDS = 15 * 86_400;
/** A day without a time ends, somewhere on earth, so long after its midnight in UTC. */
const LAST_END_OF_DAY = "interval '38 hours'";

/** Where these are old nothing is judged: what the buyer did since is in them. */
const CONTACT_LISTS = ["PERSONS", "ACTIVITIES"];
/** What a judgement is complete as of: its deal, and all that counts as a contact. */
const JUDGED_LISTS = [...CONTACT_LISTS, "DEALS", "NOTES"];

/** How fresh a copy is; null before activities and persons were both read to their end. */
export async function readFreshness({ tenantId, copyId, rows }: CopyScope): Promise<Pick<CopyFacts, "readAt">> {
  const sql = `SELECT ${ms(oldestOf(CONTACT_LISTS))} AS "readAt" FROM sync_list l WHERE l.tenant_id = $1 AND l.copy_id = $2`;
  const [found] = await rows<Pick<CopyFacts, "readAt">>(sql, [tenantId, copyId], { readAt: "number" });
  return { readAt: found?.readAt ?? null };
}

/** Of all deals of the copy; they are judged by what the stored schedules are, as both change in one transaction. */
interface OfCopy {
  readAt: number | null;
  asOf: number | null;
  watchedSince: number;
  standards: Standards | null;
  coming: Standards | null;
  begun: Record<number, TakenPhase[]> | null;
}
/** With one row of many: a tenant may have hundreds of thresholds. */
const ofCopy = (begun: string) => `CASE WHEN row_number() OVER () = 1 THEN jsonb_build_object('begun', ${begun})
  || (SELECT jsonb_build_object('readAt', ${ms(oldestOf(CONTACT_LISTS))}, 'asOf', ${ms(oldestOf(JUDGED_LISTS))})
    FROM sync_list l WHERE l.tenant_id = $1 AND l.copy_id = $2)
  || (SELECT jsonb_build_object('watchedSince', ${ms("c.created_at")}, 'standards', j.standards, 'coming', j.coming)
    FROM synced_copy c LEFT JOIN judged_copy j ON j.tenant_id = $1 AND j.copy_id = c.id WHERE c.tenant_id = $1 AND c.id = $2) END`;

/** SQL: a done activity took place when it was due, and not after somebody ticked it off. */
export const HAPPENED_AT = "LEAST(a.happened_at, coalesce(a.done_at, a.update_time))";

/** With nobody outside they speak of our house alone, and only the latest is ever looked at. Most are not ours. */
const LATEST_NOTE = `SELECT ARRAY[${ms("n.add_time")}, -n.crm_id] FROM note n
  WHERE n.tenant_id = $1 AND n.copy_id = $2 AND n.deal_id BETWEEN d.crm_id AND d.crm_id AND NOT ${isOurNote("n")}
  ORDER BY n.deal_id DESC, n.add_time DESC, n.crm_id LIMIT 1`;

/** A first mail that is to be replaced by an earlier one is none any more: what is judged is what will be read. */
const ENDS = `SELECT 'INCOMING_MAIL' AS kind, NULL AS type, true AS with_person, mails.incoming AS latest, NULL::bigint[] AS earliest
  UNION ALL
  SELECT 'OUTGOING_MAIL', NULL, true, mails.outgoing, mails.first_of_ours
  UNION ALL
  SELECT 'OUTGOING_MAIL', NULL, true, NULL, ARRAY[${ms("d.first_mail_at")}, d.first_mail_person_id] WHERE ${KEEPS_THE_FIRST}
  UNION ALL
  SELECT 'ACTIVITY', a.type, a.with_person, ${latest("a.at", "a.crm_id")},
    ${earliest("a.at", "a.crm_id")} FILTER (WHERE a.at >= coalesce(d.add_time, '-infinity'))
  FROM (SELECT a.type, a.crm_id, ${HAPPENED_AT} AS at,
          coalesce(a.person_id = ANY (people.ids) OR a.participant_ids && people.ids, false) AS with_person
        FROM ${rowsOf("activity", "deal_id", "d.crm_id")} a WHERE a.happened_at IS NOT NULL) a
  GROUP BY a.type, a.with_person
  UNION ALL
  SELECT 'NOTE', NULL, false, (${LATEST_NOTE}), NULL`;
/** The latest, and the earliest since the deal was added, of those that count alike. */
const ENDS_OF_CONTACTS = `SELECT coalesce(json_agg(json_build_array(e.kind, e.type, e.with_person, e.latest, e.earliest)), '[]') FROM (${ENDS}) e`;

const OF_MEETINGS = `SELECT m.id, m.starts_at, coalesce(m.ends_at, m.starts_at) AS ends_at,
    (SELECT count(*) > 0 FROM meeting_attendee b
     WHERE b.tenant_id = $1 AND b.meeting_id = m.id AND b.side = 'BUYER') AS with_buyer
  FROM ${rowsOf("meeting_match", "deal_id", "d.crm_id")} mm
  CROSS JOIN LATERAL (SELECT * FROM meeting t
    WHERE t.tenant_id = $1 AND t.id BETWEEN mm.meeting_id AND mm.meeting_id ORDER BY t.id) m
  WHERE mm.status = 'MATCHED'`;

/** Those ahead, and the latest held one with a buyer. */
const MEETINGS = `WITH matched AS MATERIALIZED (${OF_MEETINGS}) SELECT coalesce(json_agg(json_build_object('meetingId', m.id, 'startsAt', ${ms("m.starts_at")},
    'endsAt', ${ms("m.ends_at")}, 'withBuyer', m.with_buyer)), '[]')
  FROM ((SELECT * FROM matched WHERE ends_at > $3 ORDER BY starts_at, id LIMIT ${MOST_AHEAD})
        UNION ALL
        (SELECT * FROM matched WHERE ends_at <= $3 AND with_buyer ORDER BY ends_at DESC, id LIMIT 1)) m`;

/** With and without a time: of those that may be ahead the first and the last of each half month, and the first of those before. */
const PLANNED = `SELECT coalesce(json_agg(json_build_array(p.whole_day, p.first, CASE WHEN p.part IS NOT NULL THEN p.last END)), '[]')
  FROM (SELECT u.whole_day, u.part, ${earliest("u.due_at", "u.crm_id")} AS first, ${latest("u.due_at", "u.crm_id")} AS last
        FROM (SELECT a.crm_id, a.due_at, NOT a.due_has_time AS whole_day,
                CASE WHEN a.due_at > $3 - ${LAST_END_OF_DAY} THEN floor(date_part('epoch', a.due_at) / ${APART_SECONDS}) END AS part
              FROM ${rowsOf("activity", "deal_id", "d.crm_id")} a
              WHERE a.happened_at IS NULL AND NOT a.done AND a.due_at IS NOT NULL) u
        GROUP BY u.whole_day, u.part ORDER BY u.part NULLS FIRST LIMIT ${MOST_AHEAD}) p`;

const FOUND = {
  ofOthers: `json_build_object('contacts', (${ENDS_OF_CONTACTS}), 'meetings', (${MEETINGS}), 'planned', (${PLANNED}), 'hasMail',
    coalesce(mails.incoming, mails.outgoing) IS NOT NULL OR ${KEEPS_FIRST_MAIL}, 'hasFirstMail', ${KEEPS_THE_FIRST})`,
  joined: WITH_MAILS,
};
/** Half of what a page of deals costs is to look the others up. */
const kept = ({ fits }: Judging) => ({
  ofOthers: `(SELECT of_others FROM ${rowsOf("deal_silence", "deal_id", "d.crm_id")} s WHERE phase = 0 AND ${fits})`,
  joined: "",
});

/** A deal with what a tenant's own days depend on, and with what is kept of it. */
export type FoundDeal = DealFacts & { pipelineId: number | null; ofOthers: OfOthers };
export interface QuietFacts {
  copy: CopyFacts;
  /** By the standards that hold. */
  deals: FoundDeal[];
  standards: Standards;
  /** By what the copy's deals are being judged anew; null: they are not. */
  coming: Standards | null;
  /** By deal, where stored schedules were taken: of each the phases that had begun. */
  begun: Record<number, TakenPhase[]>;
}

interface FactsRow extends Omit<FoundDeal, "ownDays" | "ofOthers" | keyof OfOthers> {
  ofOthers: OfOthers | null;
  ofCopy: OfCopy | null;
}
const FACTS: Shape<FactsRow> = {
  dealId: "number",
  isOpen: "flag",
  addedAt: "number",
  inStageSince: "number",
  stageId: "number",
  pipelineId: "number",
  daysToRotten: "number",
  updatedAt: "number",
  closeDay: "number",
  pushes: "json",
  inactiveOwnerId: "number",
  isIncomplete: "flag",
  incompleteSince: "number",
  snooze: "json",
  ofOthers: "json",
  ofCopy: "json",
};

/** Null where no deal fits. */
type Reading = Promise<QuietFacts | null>;
export type ReadFacts = (copy: CopyScope, dealIds: readonly number[], now: Date, judging?: Judging) => Reading;

/**
 * What the silence of deals is judged by, at one instant and in one statement. Each deal is looked up by itself, with what
 * belongs to it.
 */
export const readQuietFacts: ReadFacts = async (copy, dealIds, now, judging = READING) =>
  quietFactsOf(await readRows(copy, dealIds, now, judging, FOUND));

/**
 * The same, with what was found when the deals were last judged. It is looked up where nobody has judged them yet, or other
 * rules have, which may have looked for something else.
 */
export const readKeptFacts: ReadFacts = async (copy, dealIds, now, judging = READING) => {
  const known = await readRows(copy, dealIds, now, judging, kept(judging));
  const unknown = known.filter(({ ofOthers }) => ofOthers === null).map(({ dealId }) => dealId);
  const found = unknown.length > 0 ? await readRows(copy, unknown, now, READING, FOUND) : [];
  return quietFactsOf([...known, ...found]);
};

function readRows(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: readonly number[],
  now: Date,
  { which, taken, begun }: Judging,
  { ofOthers, joined }: typeof FOUND,
): Promise<FactsRow[]> {
  return rows<FactsRow>(
    `${taken}
     SELECT d.crm_id AS "dealId", d.status = 'open' AS "isOpen", ${ms("d.add_time")} AS "addedAt",
       ${ms("coalesce(d.stage_change_time, d.add_time)")} AS "inStageSince", d.stage_id AS "stageId",
       d.pipeline_id AS "pipelineId",
       rotting.days AS "daysToRotten", CASE WHEN rotting.days > 0 THEN ${ms(updatedByOthers("d"))} END AS "updatedAt",
       ${ms("d.expected_close_date::timestamp AT TIME ZONE 'UTC'")} AS "closeDay",
       to_jsonb(ARRAY (SELECT ${ms("p.seen_at")} FROM (${PUSHES}) p)) AS pushes,
       (SELECT u.crm_id FROM ${rowsOf("crm_user", "crm_id", "d.owner_id")} u WHERE NOT u.active) AS "inactiveOwnerId",
       NOT d.participants_known OR gap.since IS NOT NULL AS "isIncomplete", ${ms("gap.since")} AS "incompleteSince",
       CASE WHEN d.snooze_ends_at > $3 THEN jsonb_build_object('at', ${ms("d.snoozed_at")}, 'until', ${ms("d.snoozed_until")}) END AS snooze,
       ${ofOthers} AS "ofOthers", ${ofCopy(begun)} AS "ofCopy"
     FROM (SELECT DISTINCT unnest($4::bigint[]) AS id) one CROSS JOIN LATERAL ${rowsOf("deal", "crm_id", "one.id")} d
     LEFT JOIN LATERAL (SELECT s.days_to_rotten FROM ${rowsOf("stage", "crm_id", "d.stage_id")} s WHERE s.days_to_rotten > 0) rotting (days) ON true
     ${joined}
     ${WITH_GAP}
     WHERE ${which}`,
    [tenantId, copyId, now, dealIds],
    FACTS,
  );
}

function quietFactsOf(found: readonly FactsRow[]): QuietFacts | null {
  const whole = found.find(({ ofCopy }) => ofCopy !== null)?.ofCopy;
  if (!whole) return null;
  const standards = whole.standards ?? STANDARD;
  const deals = found.flatMap((row) => {
    if (!row.ofOthers) return [];
    // Not by a rest: what that leaves is slow to read.
    const deal = { ...row, ...row.ofOthers, ofOthers: row.ofOthers, ofCopy: null };
    return [{ ...deal, contacts: contactsOf(deal.contacts), planned: plannedOf(deal.planned) }];
  });
  const { readAt, asOf, watchedSince, coming, begun } = whole;
  const copy = { readAt, asOf, watchedSince, rules: rulesOf(standards) };
  return { copy, deals: byStandards(deals, standards), standards, coming, begun: begun ?? {} };
}
