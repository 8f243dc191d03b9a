import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { holdCopyToJudge } from "../../connections/copies";
import { CONNECTION_CHANGED, notify } from "../../database/between-processes";
import type { CopyScope, Database, TenantScope } from "../../database/database";
import { enqueueJob, hasLiveJob, type JobKind } from "../../database/jobs";
import { SyncedCopyRow } from "../../entities/connection";
import { ComingSilenceRow, JudgedCopyRow, type Standards } from "../../entities/silence";
import { QuietSettingsRow } from "../../entities/tenant";
import { type Clock, SECOND_MS } from "../../platform/clock";
import type { Logger } from "../../platform/logger";
import { forEachLogged } from "../../platform/work";
import { readFewOfOtherStages, readFreshness, readKeptFacts, readRotting } from "./read-quiet";
import { NO_WISHES, staleFrom, standardsOf, type Wishes } from "./rules";
import { begunOf, FORGET_LET_GO, JUDGED_BY_COMING, snoozedDeals, TAKE_OVER } from "./silence-rows";
import { judgeDeals, keepSnoozeEnds, markHolding, storeComing, type Taken } from "./stored-silence";
import { flipsOf, tellFlips } from "./verdict";

/**
 * Judging all deals of a copy by other standards: other settings, other days of a stage, another zone of its user, other rules
 * of a release. What is coming is judged beside what holds, a batch a transaction, and takes its place at once (decision 0079).
 */

/** A copy gives its place to other work after this, and goes on from where it stood. */
const TURN_MS = 15 * SECOND_MS;

/** Deals judged in one transaction: a sync's page waits for it. */
const BATCH = 250;

const REJUDGE_REF = z.object({ tenantId: z.number(), copyId: z.number() });
type RejudgeRef = z.infer<typeof REJUDGE_REF>;

export const REJUDGE: JobKind<RejudgeRef> = {
  name: "rejudge",
  payload: REJUDGE_REF,
  subjectOf: ({ copyId }) => copyId,
};

/** What the deals of a copy are to be judged by: pipelines and stages of another company than the copy's mean nothing. */
export function wantedBy(
  settings: (Wishes & Pick<QuietSettingsRow, "crmCompanyId">) | null,
  copy: Pick<SyncedCopyRow, "crmCompanyId" | "timeZone">,
  rotting: Standards["rotting"],
): Standards {
  if (!settings) return standardsOf(NO_WISHES, copy.timeZone, rotting);
  const isSame = settings.crmCompanyId === copy.crmCompanyId;
  const thresholds = settings.thresholds.filter(({ scope }) => isSame || scope === "ALL");
  return standardsOf({ ...settings, thresholds }, copy.timeZone, rotting);
}

/**
 * Sees to it that the deals of a copy are judged by what its tenant and its user say by now. Within a transaction that
 * holds the copy to judge. Until what is coming has been judged of every deal, each answer counts by what holds. The phases
 * that hold by now are marked for lists.
 */
export async function judgeByPresentRules(copy: CopyScope, now: Date): Promise<void> {
  const { tenantId, copyId, typed } = copy;
  await markHolding(copy, now);
  const present = await typed((orm) => orm.findOneByOrFail(SyncedCopyRow, { tenantId, id: copyId }));
  const settings = await typed((orm) => orm.findOneBy(QuietSettingsRow, { tenantId }));
  const judged = await typed((orm) => orm.findOneBy(JudgedCopyRow, { tenantId, copyId }));
  const wanted = wantedBy(settings, present, await readRotting(copy));
  if (!judged) {
    // A new copy has hardly a deal that is matched.
    await typed((orm) => orm.insert(JudgedCopyRow, { tenantId, copyId, standards: wanted }));
    const matched = await readMatchedDeals(copy, 0, null);
    if (matched.length === 0) return;
    await judgeDeals(copy, matched, now, "AS_A_WHOLE");
    return notify(copy, CONNECTION_CHANGED);
  }
  if (isDeepStrictEqual(judged.coming ?? judged.standards, wanted)) return;
  if (judged.coming === null) {
    const few = await readFewOfOtherStages(copy, judged.standards, wanted, BATCH);
    if (few) {
      await typed((orm) => orm.update(JudgedCopyRow, { tenantId, copyId }, { standards: wanted }));
      return judgeDeals(copy, few, now, "EACH", readKeptFacts);
    }
  }
  await typed((orm) => orm.delete(ComingSilenceRow, { tenantId, copyId }));
  if (isDeepStrictEqual(judged.standards, wanted)) return settle(copy, wanted);
  const comingTotal = (await readMatchedDeals(copy, 0, null)).length;
  const begun = { coming: wanted, comingAfter: 0, comingDone: 0, comingTotal };
  await typed((orm) => orm.update(JudgedCopyRow, { tenantId, copyId }, begun));
  await enqueue(copy);
}

const enqueue = (copy: CopyScope): Promise<void> =>
  enqueueJob(copy, REJUDGE, { tenantId: copy.tenantId, copyId: copy.copyId });

/** From this commit on these standards hold, and nothing else is coming. Told once, for the connection. */
async function settle(copy: CopyScope, standards: Standards): Promise<void> {
  const { tenantId, copyId, typed } = copy;
  const settled = { standards, coming: null, comingAfter: 0, comingDone: 0, comingTotal: 0 };
  await typed((orm) => orm.update(JudgedCopyRow, { tenantId, copyId }, settled));
  await notify(copy, CONNECTION_CHANGED);
}

/** In the order of their ids. @param most null: all that follow */
async function readMatchedDeals(
  { tenantId, copyId, rows }: CopyScope,
  after: number,
  most: number | null,
): Promise<number[]> {
  const found = await rows<{ id: number }>(
    `SELECT DISTINCT m.crm_id AS id FROM matched_record m
     WHERE m.tenant_id = $1 AND m.copy_id = $2 AND m.entity = 'DEAL' AND m.crm_id > $3 ORDER BY id LIMIT $4`,
    [tenantId, copyId, after, most],
    { id: "number" },
  );
  return found.map(({ id }) => id);
}

/** Judges those of these deals that are matched by what is coming; what is stored of them stands. */
async function judgeByComing(copy: CopyScope, dealIds: readonly number[], now: Date): Promise<void> {
  const found = await readKeptFacts(copy, dealIds, now, JUDGED_BY_COMING);
  if (found) await storeComing(copy, found, now);
}

/**
 * What is coming takes the place of what is stored, of all deals of a copy at once. What time has changed before is told of
 * each deal; what the standards change is told for the connection, by the caller.
 */
async function storeAllComing(copy: CopyScope, now: Date): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  // An array, because nothing is known yet of a table that was just filled: as a join it took a minute for 12,000 deals.
  const those = `ARRAY (SELECT c.deal_id FROM coming_silence c WHERE c.tenant_id = $1 AND c.copy_id = $2)`;
  const sql = `WITH ${begunOf(those)} SELECT deal_id AS "dealId", phases AS begun FROM begun
    WHERE jsonb_path_exists(phases, '$[1 to last] ? (@.isTold == false)')`;
  const left = await rows<Taken>(sql, [tenantId, copyId, now], { dealId: "number", begun: "json" });
  const flips = left.flatMap(({ dealId, begun }) => flipsOf(dealId, begun, null, now.getTime()));
  await tellFlips(copy, flips, staleFrom(await readFreshness(copy)), now);
  await rows(FORGET_LET_GO, [tenantId, copyId]);
  await rows(TAKE_OVER, [tenantId, copyId, now]);
}

/** By other standards a contact since may be the buyer's, or of a later hour. Snoozed deals are few, and their verdicts stand. */
async function endSnoozes(copy: CopyScope, now: Date): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  const snoozed = await rows<{ id: number }>(SNOOZED, [tenantId, copyId, now], { id: "number" });
  for (let begin = 0; begin < snoozed.length; begin += BATCH) {
    const ids = snoozed.slice(begin, begin + BATCH).map(({ id }) => id);
    const found = await readKeptFacts(copy, ids, now);
    if (found) await keepSnoozeEnds(copy, found, now);
  }
}
const SNOOZED = `SELECT z.id FROM (${snoozedDeals("$3")}) z (id)`;

export class Rejudging {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Goes on from where the copy stands: a worker that was killed has lost a batch, and two of them do no harm. */
  async run({ tenantId, copyId }: RejudgeRef, stop: AbortSignal): Promise<void> {
    const scope = this.database.tenant(tenantId);
    const turnEnds = performance.now() + TURN_MS;
    while (await this.#step(scope, copyId)) {
      if (stop.aborted || performance.now() >= turnEnds) return enqueue({ ...scope, copyId });
    }
  }

  /** Enqueues again what a worker took and died with. */
  async sweep(): Promise<void> {
    const lost = await this.database.acrossTenants<RejudgeRef>(
      `WITH rejudged AS MATERIALIZED (SELECT tenant_id, copy_id FROM judged_copy WHERE coming IS NOT NULL)
       SELECT tenant_id AS "tenantId", copy_id AS "copyId" FROM rejudged
       WHERE NOT ${hasLiveJob(REJUDGE, "rejudged.copy_id", "now() - interval '1 minute'")}`,
      [],
      { tenantId: "number", copyId: "number" },
    );
    await forEachLogged(
      lost,
      ({ tenantId, copyId }) => enqueue({ ...this.database.tenant(tenantId), copyId }),
      this.logger,
    );
  }

  /** A batch in a transaction of its own: pages of a sync come in between. @returns whether there is more to do */
  #step(tenant: TenantScope, copyId: number): Promise<boolean> {
    return tenant.transaction(async (scope) => {
      const { tenantId, typed } = scope;
      const copy = { ...scope, copyId };
      // Retired meanwhile, its rows are being deleted.
      if (!(await holdCopyToJudge(scope, copyId))) return false;
      await judgeByPresentRules(copy, this.clock());
      const judged = await typed((orm) => orm.findOneBy(JudgedCopyRow, { tenantId, copyId }));
      if (!judged?.coming) return false;
      const ids = await readMatchedDeals(copy, judged.comingAfter, BATCH);
      const last = ids.at(-1);
      if (last === undefined) {
        await this.#takeOver(copy, judged.coming);
        return false;
      }
      await judgeByComing(copy, ids, this.clock());
      const comingDone = Math.min(judged.comingTotal, judged.comingDone + ids.length);
      await typed((orm) => orm.update(JudgedCopyRow, { tenantId, copyId }, { comingAfter: last, comingDone }));
      return true;
    });
  }

  /** The one place where verdicts change because of settings, and not because of a deal: no deal is told of here. */
  async #takeOver(copy: CopyScope, coming: Standards): Promise<void> {
    const { tenantId, copyId, typed } = copy;
    await storeAllComing(copy, this.clock());
    await typed((orm) => orm.delete(ComingSilenceRow, { tenantId, copyId }));
    await settle(copy, coming);
    await endSnoozes(copy, this.clock());
    copy.afterCommit(() => this.logger.info({ tenantId, copyId }, "all deals are judged by other standards"));
  }
}
