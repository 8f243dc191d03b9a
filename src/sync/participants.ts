import pLimit, { type LimitFunction } from "p-limit";
import { KNOWN_PARTICIPANTS, type KnownParticipants, participantChanges, writeChanges } from "../connections/journal";
import type { CrmApi } from "../crm/api";
import { CrmError, isRefusal, stopBehind } from "../crm/errors";
import type { CrmDeal } from "../crm/parsing/records";
import { rowsOf, rowsOfEach } from "../database/rows";
import { jsonRows } from "../database/upsert";
import { SyncedCopyRow } from "../entities/connection";
import { SyncRunRow, type SyncStepRow } from "../entities/sync-run";
import { commitPiece, type HeldCopy, judged, type RunContext } from "./commit";
import { type FoundGap, GAP_CODE_OF, IF_PLANNED, isSubFetchFailure, recordGaps } from "./failures";
import {
  affordable,
  agreeing,
  analyzeDeals,
  confirmRule,
  countDue,
  GROUPS,
  type Group,
  isAnyDealDue,
  isRefutedBy,
  lonelyDeals,
  nearestMeetings,
  nextDeals,
  odd,
  planTurn,
  type QueuedDeal,
  type RuleOfOne,
  readRule,
  refuteRule,
} from "./participant-queue";
import { NO_CHANGE, type StepChange, setStepState } from "./runs";
import { writeDeals } from "./writers";

/** Deals that are asked and not committed yet: a crash repeats at most this many requests. */
const BATCH = 50;
/** While one part of a batch is being committed, the other is asked. */
const PART = BATCH / 2;
/** Deals whose order is looked up at once; between two parts that would be waited for. */
const LOOKED_UP = 500;
/** Deals that the rule of one answers between two commits. */
const DERIVED_BATCH = 1_000;

/** A way through the deals that are due. */
interface Walk {
  /** What each deal that it has asked is marked with: the same in all turns of the run, and no clock moves it. */
  mark: Date;
  rule: RuleOfOne;
  /** Of a deal it was told who takes part: others may be asked together. */
  isAnswered?: boolean;
}

/** What the CRM said for each deal of a batch: who takes part, or why that could not be read. */
interface Answers {
  known: (QueuedDeal & { personIds: number[] })[];
  failures: { dealId: number; error: CrmError }[];
  requests: number;
}

/** What the parts of a batch share while they are asked. */
interface Lanes {
  limit: LimitFunction;
  /** Why no more is asked; null: nothing ended it. */
  ending: unknown;
  /** Whoever asks has given up, or nothing at all could be read. */
  isClosed: boolean;
}

export const lanesOf = ({ concurrency }: RunContext): Lanes => ({
  limit: pLimit(concurrency),
  ending: null,
  isClosed: false,
});

/** How the asking of some deals ends. REFUSED: of none it was told who takes part; OVER: nor is it of others in this run. */
type Asking = "ASKED" | "REFUSED" | "OVER";

/**
 * Asks who takes part in deals, the important ones first, a batch a commit and each deal once in a run, until all that
 * are due have answered or the tokens for it are spent. What is left then is asked by later runs.
 * @returns whether the run is done with it; false: it was to pause
 */
export async function askParticipants(context: RunContext, step: SyncStepRow): Promise<boolean> {
  const { run, copy, logger } = context;
  const where = { tenantId: run.tenantId, id: run.runId };
  const { queuedAt } = await copy.typed((orm) => orm.findOneByOrFail(SyncRunRow, where));
  const walk: Walk = { mark: queuedAt, rule: await readRule(copy) };
  await analyzeDeals(copy).catch((err: unknown) => logger.warn({ err }, "the table of deals could not be analyzed"));
  const isAnyDue = await isAnyDealDue(copy, walk.mark);
  if (isAnyDue) await derive(context, walk);
  const asked = isAnyDue ? await countDue(copy, walk.mark, await context.left("PARTICIPANTS")) : 0;
  await setStepState(copy, run, "DEAL_PARTICIPANTS", "RUNNING", { expected: step.fetched + asked });
  for (const group of GROUPS.filter((one) => isAnyDue || one === "AGAIN")) {
    const outcome = await askGroup(context, walk, group);
    if (outcome === "OVER" || outcome === "PAUSED") return outcome === "OVER";
    if (outcome === "REFUSED") walk.isAnswered = false;
  }
  return true;
}

async function askGroup(context: RunContext, walk: Walk, group: Group): Promise<Asking | "PAUSED"> {
  const { run, copy, clock, mustPause } = context;
  const meetings = group === "OF_MEETINGS" ? await nearestMeetings(copy, clock()) : [];
  const queue = () => ({ mark: walk.mark, now: clock(), ruleOfOne: walk.rule.holds, meetings });
  const turn = group === "AGAIN" ? await planTurn(copy, queue(), run.kind, await context.left("PARTICIPANTS")) : null;
  for (let most = turn?.most ?? LOOKED_UP; ; ) {
    if (mustPause()) return "PAUSED";
    const { api, carried } = await payerOf(context, group);
    // At first as few as show whether anything can be read: each costs, and what cannot is no longer known.
    const size = Math.min(walk.isAnswered ? LOOKED_UP : fewestOf(context), most, carried);
    const deals =
      size > 0 ? await nextDeals(copy, group, { ...queue(), againBefore: turn?.before ?? walk.mark }, size) : [];
    if (deals.length === 0) break;
    if (turn) most -= deals.length;
    const { holds } = walk.rule;
    const outcome = await askInParts(context, api, walk, deals);
    // What was refused for those before says nothing of the others.
    if (outcome === "REFUSED" && group === "FAILED") return outcome;
    if (outcome !== "ASKED") return "OVER";
    if (walk.rule.holds && !holds) await derive(context, walk);
  }
  if (turn && turn.most > 0) {
    const { tenantId, copyId } = copy;
    await copy.typed((orm) => orm.update(SyncedCopyRow, { tenantId, id: copyId }, { askedAgainAt: clock() }));
  }
  return "ASKED";
}

/**
 * Asks deals in their order. While a part is being committed the next one is asked, and never further: what is asked and not
 * committed is a batch at most. When the rule of one changes, which deals are next is another question.
 */
async function askInParts(context: RunContext, api: CrmApi, walk: Walk, deals: readonly QueuedDeal[]): Promise<Asking> {
  const { holds, refuted } = walk.rule;
  const fewest = fewestOf(context);
  const lanes = lanesOf(context);
  const asked: Promise<Answers>[] = [];
  let [from, isHopeless, isRefused] = [0, false, true];
  const begin = () => {
    const isSameRule = walk.rule.holds === holds && walk.rule.refuted === refuted;
    if (from >= deals.length || !isSameRule || !mayGoOn(context, lanes)) return;
    asked.push(askBatch(context, api, deals.slice(from, from + PART), lanes));
    from += PART;
  };
  try {
    begin();
    begin();
    for (let part = asked.shift(); part; part = asked.shift()) {
      const answers = await part;
      walk.isAnswered ||= answers.known.length > 0;
      isHopeless = answers.known.length === 0 && (isHopeless || answers.failures.length >= fewest);
      if (isHopeless) lanes.isClosed = true;
      isRefused &&= answers.failures.every(({ error }) => isRefusal(error));
      await commitAnswers(context, api, walk, answers);
      begin();
    }
  } finally {
    lanes.isClosed = true;
    // Whoever ends the run gives back what is not spent: nothing may be on its way then.
    await Promise.all(asked);
  }
  if (isOver(lanes)) return "OVER";
  if (!isHopeless) return "ASKED";
  return isRefused ? "REFUSED" : "OVER";
}

/** So many that fail, with none that does not, say that nothing can be read. */
const fewestOf = ({ concurrency }: RunContext) => Math.min(concurrency, PART);

const mayGoOn = ({ mustPause }: RunContext, { ending, isClosed }: Lanes) =>
  ending === null && !isClosed && !mustPause();

/** What pays for a group's next deals, and for how many: those of meetings have a share of their own besides. */
async function payerOf({ apis, left }: RunContext, group: Group): Promise<{ api: CrmApi; carried: number }> {
  const carried = affordable(await left("PARTICIPANTS"));
  if (carried > 0 || group !== "OF_MEETINGS") return { api: apis.PARTICIPANTS, carried };
  return { api: apis.DEALS_OF_MEETINGS, carried: affordable(await left("DEALS_OF_MEETINGS")) };
}

/** What the rule of one tells without a request. */
async function derive(context: RunContext, { mark, rule }: Walk): Promise<void> {
  const { mustPause } = context;
  for (let after = 0; rule.holds && !mustPause(); ) {
    const deals = await lonelyDeals(context.copy, mark, after, DERIVED_BATCH);
    const last = deals.at(-1);
    if (!last) return;
    after = last.dealId;
    const known = deals.flatMap((deal) => (deal.personId === null ? [] : [{ ...deal, personIds: [deal.personId] }]));
    const derived = { known, failures: [], requests: 0 };
    await commitPiece(context, "DEAL_PARTICIPANTS", (copy) => writeAnswers(context, copy, derived, null));
  }
}

/** A request for each deal, at most `concurrency` in flight. Before each, the end of the turn and a stop are heard. */
export async function askBatch(
  context: RunContext,
  api: CrmApi,
  deals: readonly QueuedDeal[],
  lanes: Lanes,
): Promise<Answers> {
  const answers: Answers = { known: [], failures: [], requests: 0 };
  const goesOn = () => mayGoOn(context, lanes);
  const ask = async (deal: QueuedDeal) => {
    if (!goesOn()) return;
    answers.requests += 1;
    try {
      const personIds = await api.participantIds(deal.dealId, deal.count, goesOn);
      if (personIds) answers.known.push({ ...deal, personIds });
    } catch (error) {
      // Called off: it says nothing of the deal.
      if (context.isStopped()) return;
      const isOfDeal = isSubFetchFailure(error) && !error.detail.neverSent;
      if (isOfDeal) answers.failures.push({ dealId: deal.dealId, error });
      // Asked on, it would be refused a deal at a time, and end in a block (wire fact 8.5).
      if (!isOfDeal || error.code === "RATE_LIMITED") lanes.ending ??= error;
    }
  };
  api.expectParticipants(deals.length);
  await Promise.all(deals.map((deal) => lanes.limit(() => ask(deal))));
  for (const { dealId, error } of answers.failures) {
    context.logger.warn({ dealId, code: error.code, ...error.detail }, "a deal's participants could not be read");
  }
  return answers;
}

/** Whether the asking is over for this run: nothing is sent any more. @throws what ends the run */
function isOver({ ending }: Lanes): boolean {
  if (ending === null) return false;
  const isQuiet = ending instanceof CrmError && !stopBehind(ending);
  if (isQuiet && (ending.code === "RATE_LIMITED" || ending.detail.neverSent)) return true;
  throw ending;
}

/** Commits a batch, and learns from it whether the rule of one holds. */
export async function commitAnswers(context: RunContext, api: CrmApi, walk: Walk, answers: Answers): Promise<void> {
  const { copy } = context;
  const oddOnes = walk.rule.refuted ? [] : odd(answers.known);
  const shown = await readAgain(context, api, oddOnes);
  if (isRefutedBy(oddOnes, shown)) await refuteRule(copy);
  const known = notOvertaken(answers.known, shown);
  await commitPiece(context, "DEAL_PARTICIPANTS", async (inner) => {
    const again = await judged(context, inner, "DEALS", [], () => writeDeals(shown, 0)(inner, context.clock()));
    const answered = await writeAnswers(context, inner, { ...answers, known }, walk.mark);
    return { ...answered, written: answered.written + again.ids.length, removed: answered.removed + again.removed };
  });
  if (!walk.rule.refuted) walk.rule = await confirmRule(copy, agreeing(known));
}

/** Deals whose answer does not agree with what is held of them, as they are now. */
async function readAgain(
  { logger, mustPause }: RunContext,
  api: CrmApi,
  deals: readonly QueuedDeal[],
): Promise<CrmDeal[]> {
  if (deals.length === 0 || mustPause()) return [];
  try {
    return (await api.deals({ cursor: null, ids: deals.map(({ dealId }) => dealId) })).records;
  } catch (error) {
    if (!isSubFetchFailure(error)) throw error;
    logger.warn({ code: error.code, ...error.detail }, "deals with an odd participant could not be read again");
    return [];
  }
}

/** Without those whose deals by now say another number than they did, and than was answered: the answer may be the older. */
function notOvertaken(known: Answers["known"], shown: readonly CrmDeal[]): Answers["known"] {
  const now = new Map(shown.map(({ id, participantsCount }) => [id, participantsCount]));
  return known.filter(({ dealId, count, personIds }) => {
    const said = now.get(dealId) ?? null;
    return said === null || said === count || said === personIds.length;
  });
}

const GAP_MESSAGE = `The participants of some deals could not be read; what is shown may be older. A later sync asks again${IF_PLANNED}`;

/**
 * Stores a batch: what was read replaces what was known; where it could not be read the last known stays.
 * @param mark when it was asked for; null: it was not
 */
async function writeAnswers(
  { run, judging, clock }: RunContext,
  copy: HeldCopy,
  { known, failures, requests }: Answers,
  mark: Date | null,
): Promise<StepChange> {
  const { tenantId, copyId, rows, keyed } = copy;
  const present = jsonRows(known.map(({ dealId, personIds }) => ({ dealId, personIds })));
  const ids = known.map(({ dealId }) => dealId);
  const parameters = [tenantId, copyId, present, ids, mark, copy.hasMatchedDeals];
  const shape = { removed: "number", known: "json", isAwaited: "flag" } as const;
  const [gone] = await keyed<Forgotten>(FORGET, parameters, shape);
  if (gone?.isAwaited) await rows(TELL_RUN, [tenantId, run.runId]);
  const added = await keyed(ADD, [tenantId, copyId, present]);
  const now = new Map(known.map(({ dealId, personIds }) => [dealId, personIds]));
  const changes = participantChanges(gone?.known ?? [], ({ dealId }) => now.get(dealId) ?? []);
  await writeChanges(copy, changes, clock());
  if (copy.hasMatchedDeals) await judging.judge(copy, "DEAL_PARTICIPANTS", ids, []);
  const gaps = failures.map(
    ({ dealId, error }): FoundGap => ({ crmId: dealId, code: GAP_CODE_OF[error.code], message: GAP_MESSAGE }),
  );
  await recordGaps(copy, "DEAL_PARTICIPANTS", gaps, clock());
  const unread = failures.map(({ dealId }) => dealId);
  if (unread.length > 0)
    await rows(
      `UPDATE deal SET participants_known = false, participants_due = true, participants_asked_at = $4
       WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3)`,
      [tenantId, copyId, unread, mark],
    );
  const counted = { fetched: requests, written: added.length, removed: gone?.removed ?? 0 };
  return { ...NO_CHANGE, requests, ...counted };
}

interface Forgotten {
  removed: number;
  known: KnownParticipants[];
  /** A matched deal was due. */
  isAwaited: boolean;
}

const PRESENT = `SELECT r."dealId" AS deal_id, r."personIds" AS person_ids
    FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, "personIds" bigint[])`;

/**
 * The ids stand for themselves ($4) too: joined, a new copy without statistics was read whole for every batch; so it would be
 * where nobody has left, hence the one look before. No INSERT stands among these: a cluster would carry the results of the
 * parts over all its nodes, and fail while one is away; and it updates nothing by what is looked up one by one.
 */
const FORGET = `
  WITH absent AS MATERIALIZED (
    SELECT x.deal_id, x.person_id FROM (${PRESENT}) p CROSS JOIN LATERAL ${rowsOf("deal_participant", "deal_id", "p.deal_id")} x
    WHERE x.person_id <> ALL (p.person_ids)
  ), gone AS (
    DELETE FROM deal_participant x
    WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.deal_id = ANY ($4) AND EXISTS (SELECT 1 FROM absent)
      AND EXISTS (SELECT 1 FROM absent a WHERE a.deal_id = x.deal_id AND a.person_id = x.person_id)
    RETURNING 1
  ), known AS (
    UPDATE deal SET participants_due = false, participants_known = true, participants_once_known = true, participants_asked_at = $5
    WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($4)
  ), mended AS (
    DELETE FROM data_gap
    WHERE tenant_id = $1 AND copy_id = $2 AND resource = 'DEAL_PARTICIPANTS' AND crm_id = ANY ($4)
  )
  SELECT (SELECT count(*)::int FROM gone) AS removed, (${KNOWN_PARTICIPANTS("$4")}) AS known,
    $6::boolean AND EXISTS (SELECT 1 FROM ${rowsOfEach("deal", "crm_id", "$4")} d
      WHERE d.participants_due AND EXISTS (SELECT 1 FROM matched_record m
        WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = 'DEAL' AND m.crm_id = d.crm_id)) AS "isAwaited"`;

/** Whoever matches again hears of a matched deal that is due no more: a meeting may be in doubt until then, and nobody may have come or left. */
const TELL_RUN = "UPDATE sync_run SET written_beside = written_beside + 1 WHERE tenant_id = $1 AND id = $2";

const ADD = `
  INSERT INTO deal_participant (tenant_id, copy_id, deal_id, person_id)
  SELECT $1::bigint, $2::bigint, deal_id, unnest(person_ids) FROM (${PRESENT}) p
  ON CONFLICT DO NOTHING RETURNING 1`;
