import { CrmError } from "../crm/errors";
import type { TenantScope } from "../database/tenant-door";
import { SyncRunRow } from "../entities/sync-run";
import type { SyncStepRow } from "../entities/sync-step";
import { recordGaps } from "./gaps";
import { LISTS, type ListResource, type ReadPage } from "./lists";
import { commitPiece, inRun, type StepChange, writeList } from "./page-commit";
import { beginAbsence, countAbsence, forgetAbsence, isRemovable, judgeRemoval, removeAbsent, seen } from "./reconcile";
import { type RunContext, scopeOf } from "./run-context";

/**
 * Walks a list of the CRM from the step's checkpoint, a page a commit. A reconciling run walks again where the first
 * walk did not see everything that the copy holds, and then removes what neither has seen.
 */
export async function* walkList(
  context: RunContext,
  step: SyncStepRow,
  resource: ListResource,
): AsyncGenerator<StepChange> {
  const reconciles = context.run.kind === "RECONCILE" && isRemovable(resource);
  if (reconciles && step.walk === 1 && step.cursor === null) {
    await inRun(context.door, context.run, context.clock(), ({ manager }) =>
      beginAbsence(manager, context.run.copyId, resource),
    );
  }
  yield* walkOnce(context, step, resource, reconciles);
  if (!reconciles) return;
  const { absent } = await countAbsence(scopeOf(context).manager, context.run.copyId, resource);
  if (absent > 0 && step.walk === 1) {
    await scopeOf(context).manager.update(
      "sync_step",
      { tenantId: step.tenantId, runId: step.runId, resource },
      { walk: 2, cursor: null },
    );
    yield* walkOnce(context, { ...step, walk: 2, cursor: null }, resource, true);
  }
  yield* removeUnseen(context, resource);
}

async function* walkOnce(
  context: RunContext,
  step: SyncStepRow,
  resource: ListResource,
  reconciles: boolean,
): AsyncGenerator<StepChange> {
  const { run, door, clock } = context;
  const before = new Set<string>();
  for (let cursor = step.cursor; ; ) {
    const committed = context.metrics?.syncPages.startTimer({ resource });
    const page = await readPage(context, resource, cursor, cursor === step.cursor);
    await noteCrmTime(context, page);
    const change = await commitPiece(door, run, resource, clock(), async (scope) => {
      if (reconciles) await seen(scope.manager, run.copyId, resource, shownIds(page));
      const written = await writeList(scope, run, resource, page, clock());
      return reconciles ? { ...written, done: false } : written;
    });
    const seconds = committed?.();
    context.logger.debug({ resource, ...change, seconds, correlationId: page.correlationId }, "a page was committed");
    yield change;
    if (page.next === null) return;
    // A CRM that hands out a cursor twice would be walked for ever.
    if (before.has(page.next)) throw new CrmError("UNREADABLE", `The CRM's paging of ${resource} goes in a circle.`);
    before.add(page.next);
    cursor = page.next;
  }
}

/** How long a cursor lives is not documented: one that an earlier run left and that is refused now begins anew. */
async function readPage(
  { api, run }: RunContext,
  resource: ListResource,
  cursor: string | null,
  isCheckpoint: boolean,
): Promise<ReadPage> {
  const { updatedSince } = run;
  try {
    return await LISTS[resource](api, { cursor, updatedSince });
  } catch (error) {
    if (!(isCheckpoint && cursor !== null && error instanceof CrmError && error.code === "REFUSED")) throw error;
    return LISTS[resource](api, { cursor: null, updatedSince });
  }
}

/** Records that could not be read are there all the same. */
function shownIds({ ids, rejected }: ReadPage): number[] {
  return [...ids, ...rejected.map(({ key }) => Number(key)).filter(Number.isSafeInteger)];
}

async function* removeUnseen(context: RunContext, resource: ListResource): AsyncGenerator<StepChange> {
  const { run, door, clock, logger } = context;
  const absence = await countAbsence(scopeOf(context).manager, run.copyId, resource);
  if (!(await mayRemove(context, resource, absence))) {
    logger.warn({ resource, ...absence }, "two walks did not see much of what is held; nothing was removed");
    await inRun(door, run, clock(), (scope) => keepAll(scope, context, resource, absence.absent));
    return;
  }
  for (let removed = 1; removed > 0; ) {
    yield await commitPiece(door, run, resource, clock(), async ({ manager }) => {
      removed = await removeAbsent(manager, run.copyId, resource);
      return {
        cursor: null,
        requests: 0,
        fetched: 0,
        written: 0,
        unchanged: 0,
        removed,
        rejected: 0,
        done: removed === 0,
      };
    });
  }
}

async function mayRemove(
  { api }: RunContext,
  _resource: ListResource,
  absence: { absent: number; held: number },
): Promise<boolean> {
  const verdict = judgeRemoval(absence);
  if (verdict === "PROVE_FIRST") return (await api.currentUser()).active;
  return verdict === "REMOVE" || absence.absent === 0;
}

async function keepAll(
  { manager }: TenantScope,
  { run, clock }: RunContext,
  resource: ListResource,
  absent: number,
): Promise<void> {
  await forgetAbsence(manager, run.copyId, resource);
  const message = `The CRM showed none of the ${absent} ${resource.toLowerCase()} held here; they are kept as they were last seen.`;
  await recordGaps(manager, run.copyId, resource, [{ code: "NOT_SHOWN", message }], clock());
}

/** The CRM's clock at the start of the run is what a later run goes on from; the first answer has it. */
async function noteCrmTime(context: RunContext, { date }: ReadPage): Promise<void> {
  const { run } = context;
  if (run.crmTimeAtStart || !date) return;
  run.crmTimeAtStart = date;
  await scopeOf(context).manager.update(
    SyncRunRow,
    { tenantId: run.tenantId, id: run.runId },
    { crmTimeAtStart: date },
  );
}
