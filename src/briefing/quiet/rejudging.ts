import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { holdCopyToJudge } from "../../connections/copies";
import { noteWaiting } from "../../connections/journal";
import { CONNECTION_CHANGED, notify } from "../../database/between-processes";
import type { CopyScope, Database, TenantScope } from "../../database/database";
import { enqueueJob, hasLiveJob, type JobKind } from "../../database/jobs";
import { jsonRows } from "../../database/upsert";
import { SyncedCopyRow } from "../../entities/connection";
import { JudgedCopyRow, type Standards } from "../../entities/silence";
import { QuietSettingsRow } from "../../entities/tenant";
import { type Clock, SECOND_MS } from "../../platform/clock";
import type { Logger } from "../../platform/logger";
import { forEachLogged } from "../../platform/work";
import { endSnoozes } from "../snoozing";
import { tellBegun } from "./boundaries";
import { isFresh, readFewOfOtherStages, readKeptFacts, readRotting } from "./read-quiet";
import { NO_WISHES, RULES, RULES_OF_WORKERS, standardsOf, type Wishes } from "./rules";
import { FORGET_OTHERS, JUDGED_BY_COMING, STORE } from "./silence-rows";
import { comingPhases, judgeDeals, markHolding } from "./stored-silence";

/**
 * Judging all deals of a copy by other standards: other settings, other days of a stage, another zone of its user, other rules
 * of a release. What is coming is judged beside what holds, a batch a transaction, and takes its place at once: as another
 * generation of schedules (decision 0079). What held before goes a batch a transaction as well.
 */

/** A copy gives its place to other work after this, and goes on from where it stood. */
const TURN_MS = 15 * SECOND_MS;

/** Deals judged in one transaction: a sync's page waits for it. */
const BATCH = 250;

/** Schedules that go in one transaction. */
const FORGOTTEN = 2_500;

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
 * that hold by now are marked for lists. @param walk sees to it that somebody walks
 */
export async function judgeByPresentRules(copy: CopyScope, now: Date, walk = enqueue): Promise<void> {
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
  const last = judged.coming ?? judged.standards;
  if (last.version !== RULES) {
    const [newest] = await copy.rows<{ version: number | null }>(RULES_OF_WORKERS, [], { version: "number" });
    wanted.version = newest?.version ?? RULES;
  }
  if (isDeepStrictEqual(last, wanted)) return;
  if (judged.coming === null) {
    const few = await readFewOfOtherStages(copy, judged.standards, wanted, BATCH);
    if (few) {
      await typed((orm) => orm.update(JudgedCopyRow, { tenantId, copyId }, { standards: wanted }));
      return judgeDeals(copy, few, now, "EACH", readKeptFacts);
    }
  }
  await walk(copy);
  if (isDeepStrictEqual(judged.standards, wanted)) return settle(copy, judged);
  const comingTotal = (await readMatchedDeals(copy, 0, null)).length;
  const begun = { coming: wanted, walkedTo: 0, comingDone: 0, comingTotal };
  await typed((orm) => orm.update(JudgedCopyRow, { tenantId, copyId }, begun));
}

const enqueue = (copy: CopyScope): Promise<void> =>
  enqueueJob(copy, REJUDGE, { tenantId: copy.tenantId, copyId: copy.copyId });

type Held = Pick<JudgedCopyRow, "standards" | "generation">;

/** From this commit on this generation is held, and nothing else is coming. Told once, for the connection. */
async function settle(copy: CopyScope, { standards, generation }: Held): Promise<void> {
  const { tenantId, copyId, typed } = copy;
  const settled = { standards, generation, coming: null, walkedTo: 0, comingDone: 0, comingTotal: 0 };
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

/** Judges those of these deals that are matched by what is coming; what is held of them stands. */
async function judgeByComing(copy: CopyScope, dealIds: readonly number[], now: Date): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  const found = await readKeptFacts(copy, dealIds, now, JUDGED_BY_COMING);
  if (found) await rows(STORE, [tenantId, copyId, jsonRows(comingPhases(found, now))]);
}

/** What was stored by other standards than those that hold. @returns whether there may be more */
async function forgetOthers({ tenantId, copyId, rows, typed }: CopyScope, after: number): Promise<boolean> {
  const [walked] = await rows<{ last: number }>(FORGET_OTHERS, [tenantId, copyId, after, FORGOTTEN], {
    last: "number",
  });
  await typed((orm) => orm.update(JudgedCopyRow, { tenantId, copyId }, { walkedTo: walked?.last ?? null }));
  return walked !== undefined;
}

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
      `WITH rejudged AS MATERIALIZED (SELECT tenant_id, copy_id FROM judged_copy WHERE walked_to IS NOT NULL)
       SELECT tenant_id AS "tenantId", copy_id AS "copyId" FROM rejudged
       WHERE NOT ${hasLiveJob(REJUDGE, "rejudged.copy_id", "now() - interval '1 minute'")}`,
      [],
      { tenantId: "number", copyId: "number" },
    );
    const again = ({ tenantId, copyId }: RejudgeRef) => enqueue({ ...this.database.tenant(tenantId), copyId });
    await forEachLogged(lost, again, this.logger);
  }

  /** A batch in a transaction of its own: pages of a sync come in between. @returns whether there is more to do */
  #step(tenant: TenantScope, copyId: number): Promise<boolean> {
    return tenant.transaction(async (scope) => {
      const { tenantId, typed } = scope;
      const copy = { ...scope, copyId };
      // Retired meanwhile, its rows are being deleted.
      if (!(await holdCopyToJudge(scope, copyId))) return false;
      const now = this.clock();
      // Another job would do the same beside this one, and begin another one in its turn.
      await judgeByPresentRules(copy, now, async () => undefined);
      const judged = await typed((orm) => orm.findOneBy(JudgedCopyRow, { tenantId, copyId }));
      if (!judged || judged.walkedTo === null) return false;
      // Left to a worker that has these rules, to which a sweep brings it.
      if (judged.coming && judged.coming.version !== RULES) return false;
      // What has begun by what holds is told before something else does, and of what is coming never.
      if (await tellBegun(copy, now)) return true;
      if (!judged.coming) return forgetOthers(copy, judged.walkedTo);
      const ids = await readMatchedDeals(copy, judged.walkedTo, BATCH);
      const last = ids.at(-1);
      if (last === undefined)
        return this.#takeOver(copy, { standards: judged.coming, generation: judged.generation + 1 });
      await judgeByComing(copy, ids, now);
      const comingDone = Math.min(judged.comingTotal, judged.comingDone + ids.length);
      await typed((orm) => orm.update(JudgedCopyRow, { tenantId, copyId }, { walkedTo: last, comingDone }));
      return true;
    });
  }

  /**
   * The one place where verdicts change because of settings, and not because of a deal: no deal is told of here. One row says
   * which generation is held, so it takes as long for any number of deals.
   */
  async #takeOver(copy: CopyScope, coming: Held): Promise<true> {
    const { tenantId, copyId, rows } = copy;
    // Before the instant until which is told: what a worker claims is claimed until then, or not before this ends.
    await rows("SELECT 1 FROM judged_copy WHERE tenant_id = $1 AND copy_id = $2 FOR UPDATE", [tenantId, copyId]);
    const now = this.clock();
    if (await tellBegun(copy, now)) return true;
    // Of a stale copy: each answer was UNKNOWN until now, and by what holds from now on it may never have been so.
    await noteWaiting(copy, now, await isFresh(copy, now));
    await settle(copy, coming);
    await endSnoozes(copy, now);
    copy.afterCommit(() => this.logger.info({ tenantId, copyId }, "all deals are judged by other standards"));
    return true;
  }
}
