import { LISTS, type ListState, oldestOf } from "../../connections/completeness";
import { PUSHES } from "../../connections/journal";
import { type CopyScope, listOf, ms, rowsOf } from "../../database/database";
import { type Ids, NamedIds } from "../../database/joint-reads";
import type { Shape } from "../../database/rows";
import type { Standards } from "../../entities/silence";
import { isOurNote, type OurWrite, readOurWrites, updatedByOthers, writesByDeal } from "../notes";
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
const CONTACT_LISTS = ["PERSONS", "ACTIVITIES"] as const;
/** What a judgement is complete as of: its deal, and all that counts as a contact. */
const JUDGED_LISTS = [...CONTACT_LISTS, "DEALS", "NOTES"] as const;

/** How fresh a copy is; null before activities and persons were both read to their end. */
export async function readFreshness({ tenantId, copyId, rows }: CopyScope): Promise<Pick<CopyFacts, "readAt">> {
  const [found] = await rows<{ lists: ListState[] }>(`SELECT ${LISTS} AS lists`, [tenantId, copyId], { lists: "json" });
  return { readAt: oldestOf(found?.lists ?? [], CONTACT_LISTS) };
}

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

/** SQL over `deals`: by deal what others say of it, looked up. */
const FOUND = listOf(
  "d.crm_id",
  `json_build_object('contacts', (${ENDS_OF_CONTACTS}), 'meetings', (${MEETINGS}), 'planned', (${PLANNED}), 'hasMail',
    coalesce(mails.incoming, mails.outgoing) IS NOT NULL OR ${KEEPS_FIRST_MAIL}, 'hasFirstMail', ${KEEPS_THE_FIRST})`,
  `deals d ${WITH_MAILS}`,
);
/** Half of what a page of deals costs is to look the others up. */
const kept = ({ kept: silence }: Judging) =>
  listOf("s.deal_id", "s.of_others", `${silence} AND s.of_others IS NOT NULL`);

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

type At = number;
type Of<What> = [dealId: number, what: What];
/** Each table is gone through once, however many the deals are: what belongs together is put together here. */
interface Found {
  deals: [
    ...[dealId: number, isOpen: boolean, addedAt: At | null, inStageSince: At | null, stageId: number | null],
    ...[pipelineId: number | null, ownerId: number | null, closeDay: At | null, updatedAt: At | null],
    ...[participantsKnown: boolean, snooze: [at: At, until: At] | null],
  ][];
  ofOthers: Of<OfOthers>[];
  pushes: Of<At>[];
  rotting: [stageId: number, days: number][];
  inactive: number[];
  /** 0: of the whole list. */
  unanswered: Of<At>[];
  unreadable: Of<At>[];
  lists: ListState[];
  copy: [createdAt: At, standards: Standards | null, coming: Standards | null];
  begun: Record<number, TakenPhase[]> | null;
}
const FACTS: Shape<Found> = {
  deals: "json",
  ofOthers: "json",
  pushes: "json",
  rotting: "json",
  inactive: "json",
  unanswered: "json",
  unreadable: "json",
  lists: "json",
  copy: "json",
  begun: "json",
};

/** Null where no deal fits. */
type Reading = Promise<QuietFacts | null>;
export type ReadFacts = (copy: CopyScope, dealIds: Ids, now: Date, judging?: Judging) => Reading;

/** What the silence of deals is judged by, at one instant. */
export const readQuietFacts: ReadFacts = async (copy, dealIds, now, judging = READING) => {
  const found = await readFound(copy, dealIds, now, { judging, ofOthers: FOUND });
  return quietFactsOf(found, await readWritesTo(copy, found, judging));
};

/**
 * The same, with what was found when the deals were last judged. It is looked up where nobody has judged them yet, or other
 * rules have, which may have looked for something else.
 */
export const readKeptFacts: ReadFacts = async (copy, dealIds, now, judging = READING) => {
  const known = await readFound(copy, dealIds, now, { judging, ofOthers: kept(judging) });
  const has = new Set(known?.ofOthers.map(([dealId]) => dealId));
  const unknown = known?.deals.map(([dealId]) => dealId).filter((dealId) => !has.has(dealId)) ?? [];
  const looking = { judging: { ...READING, of: judging.of }, ofOthers: FOUND };
  const [found, writes] = await Promise.all([
    unknown.length > 0 ? readFound(copy, unknown, now, looking) : null,
    readWritesTo(copy, known, judging),
  ]);
  return quietFactsOf(known && { ...known, ofOthers: [...known.ofOthers, ...(found?.ofOthers ?? [])] }, writes);
};

/** Only where a stage rots does it matter who changed a deal, and to no verdict. */
async function readWritesTo(copy: CopyScope, found: Found | null, judging: Judging): Promise<OurWrite[]> {
  if (!found || judging !== READING) return [];
  const rotting = new Set(found.rotting.map(([stageId]) => stageId));
  const ids = found.deals.filter(([, , , , stageId]) => rotting.has(stageId ?? 0)).map(([dealId]) => dealId);
  return ids.length > 0 ? readOurWrites(copy, ids) : [];
}

/** SQL of what deals are judged by, as far as they have it themselves. */
const DEAL = listOf(
  ...["d.crm_id", "d.status = 'open'", ms("d.add_time"), ms("coalesce(d.stage_change_time, d.add_time)")],
  ...["d.stage_id", "d.pipeline_id", "d.owner_id", ms("d.expected_close_date::timestamp AT TIME ZONE 'UTC'")],
  ...[ms("d.update_time"), "d.participants_known"],
  `CASE WHEN d.snooze_ends_at > $3 THEN json_build_array(${ms("d.snoozed_at")}, ${ms("d.snoozed_until")}) END`,
  "deals d",
);
const COLUMNS = [
  "crm_id",
  "status",
  "add_time",
  "stage_change_time",
  "stage_id",
  "pipeline_id",
  "owner_id",
  "person_id",
]
  .concat("update_time", "expected_close_date", "participants_known", "participants_count", "first_mail_at")
  .concat("first_mail_person_id", "snoozed_at", "snoozed_until", "snooze_ends_at")
  .map((column) => `d.${column}`);

async function readFound(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: Ids,
  now: Date,
  { judging, ofOthers }: { judging: Judging; ofOthers: string },
): Promise<Found | null> {
  const { which, of, taken, begun } = judging;
  const ids = dealIds instanceof NamedIds ? dealIds : [...new Set(dealIds)];
  const ofDeals = (column: string) => `ARRAY (SELECT d.${column} FROM deals d)`;
  const [found] = await rows<Found>(
    `WITH ${taken.map((part) => `${part}, `).join("")}deals AS MATERIALIZED (
       SELECT ${COLUMNS} FROM ${of("deal", "crm_id", "$4::bigint[]")} d WHERE ${which}
     ), known AS MATERIALIZED (SELECT ${ofDeals("crm_id")} AS ids)
     SELECT ${DEAL} AS deals, ${ofOthers} AS "ofOthers", ${listOf("p.deal_id", ms("p.seen_at"), PUSHES)} AS pushes,
       ${listOf("s.crm_id", "s.days_to_rotten", `stage s WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.days_to_rotten > 0`)} AS rotting,
       (SELECT coalesce(json_agg(u.crm_id), '[]') FROM crm_user u WHERE u.tenant_id = $1 AND u.copy_id = $2
         AND u.crm_id = ANY (${ofDeals("owner_id")}) AND NOT u.active) AS inactive,
       ${listOf(
         ...["g.crm_id", ms("g.since")],
         `data_gap g WHERE g.tenant_id = $1 AND g.copy_id = $2 AND g.resource IN ('DEAL_PARTICIPANTS', 'ACTIVITIES') AND g.crm_id = ANY (0 || known.ids)`,
       )} AS unanswered,
       ${listOf(
         ...["r.deal_id", ms("r.since")],
         `${of("rejected_record", "deal_id", "known.ids")} r WHERE r.resource = 'ACTIVITIES'`,
       )} AS unreadable,
       ${LISTS} AS lists,
       (SELECT json_build_array(${ms("c.created_at")}, j.standards, j.coming) FROM synced_copy c
         LEFT JOIN judged_copy j ON j.tenant_id = $1 AND j.copy_id = c.id WHERE c.tenant_id = $1 AND c.id = $2) AS copy,
       ${begun} AS begun
     FROM known`,
    [tenantId, copyId, now, ids],
    FACTS,
  );
  return found && found.deals.length > 0 ? found : null;
}

const byDeal = <What>(found: readonly Of<What>[]): Map<number, What[]> => {
  const groups = new Map<number, What[]>();
  for (const [dealId, what] of found) groups.set(dealId, [...(groups.get(dealId) ?? []), what]);
  return groups;
};

function quietFactsOf(found: Found | null, ourWrites: readonly OurWrite[]): QuietFacts | null {
  if (!found) return null;
  const [watchedSince, standards, coming] = found.copy;
  const [others, rotting, inactive] = [new Map(found.ofOthers), new Map(found.rotting), new Set(found.inactive)];
  const [pushes, unanswered, unreadable] = [found.pushes, found.unanswered, found.unreadable].map(byDeal);
  const writes = writesByDeal(ourWrites);
  const deals = found.deals.flatMap((deal): FoundDeal[] => {
    const [dealId, isOpen, addedAt, inStageSince, stageId, pipelineId, ownerId, closeDay, updatedAt, known, snooze] =
      deal;
    const ofOthers = others.get(dealId);
    if (!ofOthers) return [];
    const daysToRotten = rotting.get(stageId ?? 0) ?? null;
    const gaps = [unanswered?.get(0), unanswered?.get(dealId), unreadable?.get(dealId)].flatMap((since) => since ?? []);
    return [
      {
        ...{ dealId, isOpen, addedAt, inStageSince, stageId, pipelineId, daysToRotten, closeDay },
        updatedAt: daysToRotten === null ? null : updatedByOthers(updatedAt, writes.get(dealId) ?? []),
        pushes: pushes?.get(dealId) ?? [],
        inactiveOwnerId: ownerId !== null && inactive.has(ownerId) ? ownerId : null,
        isIncomplete: !known || gaps.length > 0,
        incompleteSince: gaps.length > 0 ? Math.min(...gaps) : null,
        snooze: snooze && { at: snooze[0], until: snooze[1] },
        ...ofOthers,
        ofOthers,
        contacts: contactsOf(ofOthers.contacts),
        planned: plannedOf(ofOthers.planned),
      },
    ];
  });
  const present = standards ?? STANDARD;
  const { lists, begun } = found;
  const copy = { readAt: oldestOf(lists, CONTACT_LISTS), asOf: oldestOf(lists, JUDGED_LISTS), watchedSince };
  return {
    copy: { ...copy, rules: rulesOf(present) },
    deals: byStandards(deals, present),
    standards: present,
    coming,
    begun: begun ?? {},
  };
}
