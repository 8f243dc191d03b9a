import { CrmError } from "../crm/errors";
import { idsOfRejected } from "../crm/parsing/page";
import type { CopyScope } from "../database/database";
import { SyncRunRow } from "../entities/sync-run";
import type { SyncStepRow } from "../entities/sync-step";
import { NOT_SHOWN, recordGaps } from "./gaps";
import { LISTS, type ListResource, type ReadPage } from "./lists";
import { commitPiece, inRun, type StepChange, writeList } from "./page-commit";
import { oneAhead } from "./read-ahead";
import { beginAbsence, countAbsence, forgetAbsence, isRemovable, judgeRemoval, removeAbsent, seen } from "./reconcile";
import { copyOf, type RunContext } from "./run-context";
import { requireLease } from "./run-store";

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
  const { run, database, clock } = context;
  if (run.kind !== "RECONCILE" || !isRemovable(resource)) {
    yield* walkOnce(context, step, (page) => (copy) => writeList(copy, run, resource, page, clock()), resource);
    return;
  }
  if (step.walk === 1 && step.cursor === null) {
    await inRun(database, run, clock(), (copy) => beginAbsence(copy, resource));
  }
  let { walk, cursor } = step;
  while (walk < WALKS_OVER) {
    const write = (page: ReadPage) => (copy: CopyScope) => writeAndSee(copy, context, resource, page, walk);
    for await (const change of walkOnce(context, { cursor }, write, resource)) {
      yield change;
      walk = change.walk ?? walk;
      cursor = change.cursor;
    }
    if (cursor !== null) return;
  }
  yield* removeUnseen(context, resource);
}

/** To the list's end, or to where the run pauses. */
async function* walkOnce(
  context: RunContext,
  { cursor: checkpoint }: Pick<SyncStepRow, "cursor">,
  write: (page: ReadPage) => (copy: CopyScope) => Promise<StepChange>,
  resource: ListResource,
): AsyncGenerator<StepChange> {
  const { run, database, clock, logger } = context;
  for await (const { page, committed } of oneAhead(() => readPages(context, resource, checkpoint))) {
    const change = await commitPiece(database, run, resource, clock(), write(page));
    const seconds = committed?.();
    logger.debug({ resource, ...change, seconds, correlationId: page.correlationId }, "a page was committed");
    yield change;
  }
}

async function* readPages(
  context: RunContext,
  resource: ListResource,
  checkpoint: string | null,
): AsyncGenerator<{ page: ReadPage; committed?: () => number }> {
  const before = new Set<string>();
  for (let cursor = checkpoint; ; ) {
    const committed = context.metrics?.syncPages.startTimer({ resource });
    const page = await readPage(context, resource, cursor, cursor === checkpoint);
    await noteCrmTime(context, page);
    yield { page, committed };
    if (page.next === null || context.mustPause()) return;
    // A CRM that hands out a cursor twice would be walked for ever.
    if (before.has(page.next)) throw new CrmError("UNREADABLE", `The CRM's paging of ${resource} goes in a circle.`);
    before.add(page.next);
    cursor = page.next;
  }
}

/** A page of a reconciling walk. Its last page commits which walk comes next, so that a pause there repeats none. */
async function writeAndSee(
  copy: CopyScope,
  { run, clock }: RunContext,
  resource: ListResource,
  page: ReadPage,
  walk: number,
): Promise<StepChange> {
  await seen(copy, resource, shownIds(page));
  const written = { ...(await writeList(copy, run, resource, page, clock())), done: false };
  if (page.next !== null) return written;
  const { absent } = await countAbsence(copy, resource);
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
    if (!(isCheckpoint && cursor !== null && isOfCursor(error))) throw error;
    return LISTS[resource](api, { cursor: null, updatedSince });
  }
}

/** The list itself is there for certain: what is not accepted, not found or gone (400, 404, 410) is the cursor. */
function isOfCursor(error: unknown): boolean {
  return error instanceof CrmError && (error.code === "REFUSED" || error.code === "NOT_FOUND");
}

const shownIds = ({ ids, rejected }: ReadPage) => [...ids, ...idsOfRejected(rejected)];

async function* removeUnseen(context: RunContext, resource: ListResource): AsyncGenerator<StepChange> {
  const { run, database, clock, logger, mustPause } = context;
  const absence = await countAbsence(copyOf(context), resource);
  if (!(await mayRemove(context, resource, absence))) {
    logger.warn({ resource, ...absence }, "two walks did not see much of what is held; nothing was removed");
    yield await commitPiece(database, run, resource, clock(), (copy) =>
      keepAll(copy, context, resource, absence.absent),
    );
    return;
  }
  for (let isDone = false; !isDone; ) {
    const change = await commitPiece(database, run, resource, clock(), async (copy) => {
      const removed = await removeAbsent(copy, resource);
      return { ...OF_NO_PAGE, removed, done: removed === 0 };
    });
    yield change;
    isDone = change.done || mustPause();
  }
}

const OF_NO_PAGE = { cursor: null, requests: 0, fetched: 0, written: 0, unchanged: 0, removed: 0, rejected: 0 };

async function mayRemove(
  { tokens, run, clock }: RunContext,
  _resource: ListResource,
  absence: { absent: number; held: number },
): Promise<boolean> {
  const verdict = judgeRemoval(absence);
  if (verdict !== "PROVE_FIRST") return verdict === "REMOVE" || absence.absent === 0;
  // Who sees so much less may be deactivated, or somebody else, by now.
  await tokens.verify(() => requireLease(run, clock()));
  return true;
}

async function keepAll(
  copy: CopyScope,
  { clock }: RunContext,
  resource: ListResource,
  absent: number,
): Promise<StepChange> {
  await forgetAbsence(copy, resource);
  const message = `The CRM did not show ${absent} ${resource.toLowerCase()} that are held here; they are kept as they were last seen.`;
  await recordGaps(copy, resource, [{ code: NOT_SHOWN, message }], clock());
  return { ...OF_NO_PAGE, done: true };
}

/** The CRM's clock at the start of the run is what a later run goes on from; the first answer has it. */
async function noteCrmTime(context: RunContext, { date }: ReadPage): Promise<void> {
  const { run } = context;
  if (run.crmTimeAtStart || !date) return;
  run.crmTimeAtStart = date;
  await copyOf(context).typed((orm) =>
    orm.update(SyncRunRow, { tenantId: run.tenantId, id: run.runId, leaseId: run.leaseId }, { crmTimeAtStart: date }),
  );
}
