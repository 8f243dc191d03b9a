import type { CopyScope } from "../../database/database";
import type { Standards } from "../../entities/silence";
import { type DealFacts, isSilent, type QuietRules } from "./facts";
import { isFresh, readKeptFacts } from "./read-quiet";
import { byStandards, rulesOf } from "./rules";
import { isMatchedDeal, NO_MONEY } from "./silence-rows";
import { outlooksOf, snoozeEnd, verdictAt } from "./verdict";

/** Deals whose facts are held at once. */
const BATCH = 250;
/** As many as a list inside of something may show. */
export const MOST_PREVIEWED = 50;

export interface Preview {
  becomeQuiet: number;
  stopBeingQuiet: number;
  /** Those that would change, the most valuable of each currency first; the first of them. */
  dealIds: readonly number[];
}

interface Changing {
  id: number;
  currency: string | null;
  value: number | null;
}

/** Finds what other standards would change on the board: one way through the open deals, a batch at a time, and no call to the CRM. */
export async function previewQuiet(copy: CopyScope, proposed: Standards, now: Date): Promise<Preview> {
  let [becomeQuiet, stopBeingQuiet] = [0, 0];
  let changing: Changing[] = [];
  // On a stale copy all deals are UNKNOWN, by whatever standards.
  let last: number | undefined = (await isFresh(copy, now)) ? 0 : undefined;
  while (last !== undefined) {
    const batch: Changing[] = await readOpenDeals(copy, last);
    const { become, stop } = await quietBy(copy, batch, proposed, now);
    becomeQuiet += become.size;
    stopBeingQuiet += stop.size;
    changing = changing.concat(batch.filter(({ id }) => become.has(id) || stop.has(id)));
    changing = changing.sort(mostValuableFirst).slice(0, MOST_PREVIEWED);
    last = batch.length < BATCH ? undefined : batch.at(-1)?.id;
  }
  return { becomeQuiet, stopBeingQuiet, dealIds: changing.map(({ id }) => id) };
}

/** As the list of deals orders by value: amounts of two currencies are not compared. */
function mostValuableFirst(a: Changing, b: Changing): number {
  const [currencyA, currencyB] = [currencyOf(a), currencyOf(b)];
  if (currencyA !== currencyB) return currencyA < currencyB ? -1 : 1;
  return (b.value ?? 0) - (a.value ?? 0) || a.id - b.id;
}
const currencyOf = ({ currency, value }: Changing) => (value === null || currency === null ? NO_MONEY : currency);

/** A deal that is not open is ACTIVE by whatever standards. */
function readOpenDeals({ tenantId, copyId, rows }: CopyScope, after: number): Promise<Changing[]> {
  return rows<Changing>(
    `SELECT d.crm_id AS id, d.currency, d.value::float8 AS value FROM deal d
     WHERE d.tenant_id = $1 AND d.copy_id = $2 AND d.crm_id > $3 AND d.status = 'open' AND ${isMatchedDeal("d.crm_id")}
     ORDER BY d.crm_id LIMIT ${BATCH}`,
    [tenantId, copyId, after],
    { id: "number", currency: "text", value: "number" },
  );
}

interface Quieted {
  become: ReadonlySet<number>;
  stop: ReadonlySet<number>;
}

async function quietBy(copy: CopyScope, batch: readonly Changing[], proposed: Standards, now: Date): Promise<Quieted> {
  const found = await readKeptFacts(
    copy,
    batch.map(({ id }) => id),
    now,
  );
  const [become, stop] = [new Set<number>(), new Set<number>()];
  if (!found) return { become, stop };
  const rules = rulesOf(proposed);
  const wouldBe = byStandards(found.deals, proposed);
  for (const [index, facts] of wouldBe.entries()) {
    const present = found.deals[index];
    const was = present !== undefined && isOnBoard(present, found.copy.rules, now);
    const will = isOnBoard(facts, rules, now);
    if (will && !was) become.add(facts.dealId);
    if (was && !will) stop.add(facts.dealId);
  }
  return { become, stop };
}

/** Other two-way kinds end a snooze with what was our own word so far. */
function isOnBoard(facts: DealFacts, rules: QuietRules, now: Date): boolean {
  const at = now.getTime();
  const { verdict } = verdictAt(outlooksOf(facts, rules)(at), at);
  return facts.isOpen && isSilent(verdict) && (snoozeEnd(facts, rules, at) ?? at) <= at;
}
