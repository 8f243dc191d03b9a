import { isDeepStrictEqual } from "node:util";
import { type ListMarks, MARKS, oldestOf } from "../../connections/completeness";
import { PUSHES } from "../../connections/journal";
import type { CopyScope } from "../../database/database";
import { gathered, type Ids, listOf, ms, NamedIds, rowsOfEach, type Shape } from "../../database/rows";
import type { Standards } from "../../entities/silence";
import { DEAL, DEAL_COLUMNS, FOUND, FOUND_BY_DEAL, keptOf, OUR_WRITES } from "./fact-rows";
import type { ConnectionFacts, DealFacts } from "./facts";
import { byStandards, isStale, rulesOf, STANDARD } from "./rules";
import { HELD, type JudgingSql, READING } from "./silence-rows";
import { contactsOf, type OfOthers, type OurWrite, plannedOf, updatedByOthers } from "./situation";
import type { TakenPhase } from "./verdict";

/** What silence is judged by, read for deals at one instant, and put together. */

/** Where these are old nothing is judged: what the buyer did since is in them. */
const CONTACT_LISTS = ["PERSONS", "ACTIVITIES"] as const;
/** What a judgement is complete as of: its deal, and all that counts as a contact. */
const JUDGED_LISTS = [...CONTACT_LISTS, "DEALS", "NOTES"] as const;

/** How fresh a copy is; null before activities and persons were both read to their end. */
export async function readFreshness({ tenantId, copyId, rows }: CopyScope): Promise<Pick<ConnectionFacts, "readAt">> {
  const [found] = await rows<{ marks: ListMarks[] }>(`SELECT ${MARKS} AS marks`, [tenantId, copyId], { marks: "json" });
  return { readAt: oldestOf(found?.marks ?? [], CONTACT_LISTS) };
}

/** Whether a copy may be judged by. */
export const isFresh = async (copy: CopyScope, now: Date) => !isStale(await readFreshness(copy), now.getTime());

/** By stage the days after which the CRM shows a deal in it as rotting. */
export async function readRotting({ tenantId, copyId, rows }: CopyScope): Promise<Standards["rotting"]> {
  const stages = await rows<{ id: number; days: number }>(
    `SELECT s.crm_id AS id, s.days_to_rotten AS days FROM stage s
     WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.days_to_rotten > 0`,
    [tenantId, copyId],
    { id: "number", days: "number" },
  );
  return Object.fromEntries(stages.map(({ id, days }) => [id, days]));
}

/**
 * The matched deals of stages whose days are others by now, where nothing else is and they are as few as a transaction may
 * judge; null otherwise. A new stage has none: what moves into it in the same run is judged by its days.
 */
export async function readFewOfOtherStages(
  { tenantId, copyId, rows }: CopyScope,
  held: Standards,
  wanted: Standards,
  most: number,
): Promise<number[] | null> {
  if (!isDeepStrictEqual({ ...held, rotting: wanted.rotting }, wanted)) return null;
  const ids = Object.keys({ ...held.rotting, ...wanted.rotting });
  const others = ids.filter((id) => held.rotting?.[id] !== wanted.rotting?.[id]);
  const found = await rows<{ id: number }>(
    `SELECT s.deal_id AS id FROM deal_silence s
     WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.generation = ${HELD} AND s.is_listed AND s.stage_id = ANY ($3::bigint[]) LIMIT $4`,
    [tenantId, copyId, others, most + 1],
    { id: "number" },
  );
  return found.length > most ? null : found.map(({ id }) => id);
}

/** A deal with what a tenant's own days depend on, and with what is kept of it. */
export type FoundDeal = DealFacts & { pipelineId: number | null; ofOthers: OfOthers };
export interface QuietFacts {
  copy: ConnectionFacts;
  /** By the standards that hold. */
  deals: FoundDeal[];
  standards: Standards;
  generation: number;
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
  inactive: number[];
  /** 0: of the whole list. */
  unanswered: Of<At>[];
  unreadable: Of<At>[];
  lists: ListMarks[];
  copy: [createdAt: At, standards: Standards | null, coming: Standards | null, generation: number];
  writes: Of<OurWrite>[];
  begun: Record<number, TakenPhase[]> | null;
}
const FACTS: Shape<Found> = {
  deals: "json",
  ofOthers: "json",
  pushes: "json",
  inactive: "json",
  unanswered: "json",
  unreadable: "json",
  lists: "json",
  copy: "json",
  begun: "json",
  writes: "json",
};

/** Null where no deal fits. */
type Reading = Promise<QuietFacts | null>;
export type ReadFacts = (copy: CopyScope, dealIds: Ids, now: Date, judging?: JudgingSql) => Reading;

/** What the silence of deals is judged by, at one instant. */
export const readQuietFacts: ReadFacts = async (copy, dealIds, now, judging = READING) => {
  const sql = judging === READING ? READ.found : statementOf(judging, FOUND);
  return quietFactsOf(await readFound(copy, dealIds, now, sql));
};

/**
 * The same, with what was found when the deals were last judged. It is looked up where nobody has judged them yet, or other
 * rules have, which may have looked for something else.
 */
export const readKeptFacts: ReadFacts = async (copy, dealIds, now, judging = READING) => {
  const sql = judging === READING ? READ.kept : statementOf(judging, keptOf(judging));
  const known = await readFound(copy, dealIds, now, sql);
  const has = new Set(known?.ofOthers.map(([dealId]) => dealId));
  const unknown = known?.deals.map(([dealId]) => dealId).filter((dealId) => !has.has(dealId)) ?? [];
  if (!known || unknown.length === 0) return quietFactsOf(known);
  const looking = judging === READING ? READ.found : statementOf({ ...READING, of: judging.of }, FOUND);
  const found = await readFound(copy, unknown, now, looking);
  return quietFactsOf({ ...known, ofOthers: [...known.ofOthers, ...(found?.ofOthers ?? [])] });
};

/** @param ofOthers SQL */
function statementOf(judging: JudgingSql, ofOthers: string): string {
  const { which, of, taken, begun } = judging;
  const ofDeals = (column: string) => `ARRAY (SELECT ${column} FROM deals d)`;
  const gaps = `data_gap g WHERE g.tenant_id = $1 AND g.copy_id = $2
    AND g.resource IN ('DEAL_PARTICIPANTS', 'ACTIVITIES') AND g.crm_id = ANY (0 || known.ids)`;
  const rejected = `(SELECT r.deal_id, min(r.since) AS since FROM ${rowsOfEach("rejected_record", "deal_id", "known.ids")} r
    WHERE r.resource = 'ACTIVITIES' GROUP BY r.deal_id) r`;
  const rottingDeals = "ARRAY (SELECT d.crm_id FROM deals d WHERE j.standards -> 'rotting' ? d.stage_id::text)";
  // On who changed a deal no verdict hangs.
  const [rottingIds, writes] = judging === READING ? [rottingDeals, OUR_WRITES] : ["NULL", "'[]'::json"];
  return `WITH ${taken.map((part) => `${part}, `).join("")}deals AS MATERIALIZED (
       SELECT ${DEAL_COLUMNS} FROM ${of("deal", "crm_id", "$4::bigint[]")} d WHERE ${which}
     ), known AS MATERIALIZED (
       SELECT c.created_at, c.crm_company_id AS company, j.standards, j.coming, coalesce(j.generation, 0) AS generation, ${ofDeals("crm_id")} AS ids, ${rottingIds} AS rotting FROM synced_copy c
       LEFT JOIN judged_copy j ON j.tenant_id = $1 AND j.copy_id = c.id WHERE c.tenant_id = $1 AND c.id = $2)
     SELECT ${DEAL} AS deals, ${ofOthers} AS "ofOthers", ${listOf("p.deal_id", ms("p.seen_at"), PUSHES)} AS pushes,
       ${writes} AS writes,
       ${gathered(`SELECT u.crm_id FROM crm_user u
         WHERE u.tenant_id = $1 AND u.copy_id = $2 AND u.crm_id = ANY (${ofDeals("owner_id")}) AND NOT u.active`)} AS inactive,
       ${listOf("g.crm_id", ms("g.since"), gaps)} AS unanswered,
       ${listOf("r.deal_id", ms("r.since"), rejected)} AS unreadable,
       ${MARKS} AS lists,
       json_build_array(${ms("known.created_at")}, known.standards, known.coming, known.generation) AS copy, ${begun} AS begun
     FROM known`;
}
const READ = { found: statementOf(READING, FOUND_BY_DEAL), kept: statementOf(READING, keptOf(READING)) };

async function readFound(
  { tenantId, copyId, rows }: CopyScope,
  dealIds: Ids,
  now: Date,
  sql: string,
): Promise<Found | null> {
  const ids = dealIds instanceof NamedIds ? dealIds : [...new Set(dealIds)];
  const [found] = await rows<Found>(sql, [tenantId, copyId, now, ids], FACTS);
  return found && found.deals.length > 0 ? found : null;
}

const byDeal = <What>(found: readonly Of<What>[]): Map<number, What[]> => {
  const groups = new Map<number, What[]>();
  for (const [dealId, what] of found) if (!groups.get(dealId)?.push(what)) groups.set(dealId, [what]);
  return groups;
};

function quietFactsOf(found: Found | null): QuietFacts | null {
  if (!found) return null;
  const [watchedSince, standards, coming, generation] = found.copy;
  const [others, inactive] = [new Map(found.ofOthers), new Set(found.inactive)];
  const [pushes, unanswered, unreadable] = [found.pushes, found.unanswered, found.unreadable].map(byDeal);
  const writes = byDeal(found.writes);
  const deals = found.deals.flatMap((deal) => {
    const [dealId, isOpen, addedAt, inStageSince, stageId, pipelineId, ownerId, closeDay, updatedAt, known, snooze] =
      deal;
    const ofOthers = others.get(dealId);
    if (!ofOthers) return [];
    const gaps = [unanswered?.get(0), unanswered?.get(dealId), unreadable?.get(dealId)].flatMap((since) => since ?? []);
    return [
      {
        ...{ dealId, isOpen, addedAt, inStageSince, stageId, pipelineId, closeDay },
        updatedAt: updatedByOthers(updatedAt, writes.get(dealId) ?? []),
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
    generation,
    coming,
    begun: begun ?? {},
  };
}
