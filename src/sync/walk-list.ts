import { CrmError } from "../crm/errors";
import type { TenantScope } from "../database/tenant-door";
import { SyncRunRow } from "../entities/sync-run";
import type { SyncStepRow } from "../entities/sync-step";
import { recordGaps } from "./gaps";
import { LISTS, type ListResource, type ReadPage } from "./lists";
import { commitPiece, inRun, type StepChange, writeList } from "./page-commit";
import { beginAbsence, countAbsence, forgetAbsence, isRemovable, judgeRemoval, removeAbsent, seen } from "./reconcile";
import { type RunContext, scopeOf } from "./run-context";

/** A step whose walks are over: what neither has seen is being removed. */
const WALKS_OVER = 3;

/**
 * Walks a list of the CRM from the step's checkpoint, a page a commit. A reconciling run walks again where the first
 * walk did not see everything that the copy holds, and then removes what neither has seen.
 */
export async function* walkList(
  context: RunContext,
  step: SyncStepRow,
  resource: ListResource,
): AsyncGenerator<StepChange> {
  const { run, door, clock } = context;
  if (run.kind !== "RECONCILE" || !isRemovable(resource)) {
    yield* walkOnce(context, step, (page) => (scope) => writeList(scope, run, resource, page, clock()), resource);
    return;
  }
  if (step.walk === 1 && step.cursor === null) {
    await inRun(door, run, clock(), ({ manager }) => beginAbsence(manager, run.copyId, resource));
  }
  let { walk, cursor } = step;
  while (walk < WALKS_OVER) {
    const write = (page: ReadPage) => (scope: TenantScope) => writeAndSee(scope, context, resource, page, walk);
    const last = yield* walkOnce(context, { ...step, cursor }, write, resource);
    walk = last.walk ?? WALKS_OVER;
    cursor = null;
  }
  yield* removeUnseen(context, resource);
}

/** @returns the change of the last page */
async function* walkOnce(
  context: RunContext,
  { cursor: checkpoint }: Pick<SyncStepRow, "cursor">,
  write: (page: ReadPage) => (scope: TenantScope) => Promise<StepChange>,
  resource: ListResource,
): AsyncGenerator<StepChange, StepChange> {
  const { run, door, clock } = context;
  const before = new Set<string>();
  for (let cursor = checkpoint; ; ) {
    const committed = context.metrics?.syncPages.startTimer({ resource });
    const page = await readPage(context, resource, cursor, cursor === checkpoint);
    await noteCrmTime(context, page);
    const change = await commitPiece(door, run, resource, clock(), write(page));
    const seconds = committed?.();
    context.logger.debug({ resource, ...change, seconds, correlationId: page.correlationId }, "a page was committed");
    yield change;
    if (page.next === null) return change;
    // A CRM that hands out a cursor twice would be walked for ever.
    if (before.has(page.next)) throw new CrmError("UNREADABLE", `The CRM's paging of ${resource} goes in a circle.`);
    before.add(page.next);
    cursor = page.next;
  }
}

/** A page of a reconciling walk. Its last page commits which walk comes next, so that a pause there repeats none. */
async function writeAndSee(
  scope: TenantScope,
  { run, clock }: RunContext,
  resource: ListResource,
  page: ReadPage,
  walk: number,
): Promise<StepChange> {
  await seen(scope.manager, run.copyId, resource, shownIds(page));
  const written = { ...(await writeList(scope, run, resource, page, clock())), done: false };
  if (page.next !== null) return written;
  const { absent } = await countAbsence(scope.manager, run.copyId, resource);
  return { ...written, walk: walk === 1 && absent > 0 ? 2 : WALKS_OVER };
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
  const message = `The CRM did not show ${absent} ${resource.toLowerCase()} that are held here; they are kept as they were last seen.`;
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
