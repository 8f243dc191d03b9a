import type { CrmPage } from "../crm/api";
import { CrmError, isListFailure, isRefusal } from "../crm/errors";
import { idsOf } from "../crm/parsing/page";
import type { CopyScope } from "../database/database";
import { oneAhead } from "../platform/work";
import { count, inRun, judged, type RunContext } from "./commit";
import { isStuck, keepAside, noteFailed } from "./failures";
import { beginAbsence, countAbsence, isMuch, mustWait, removeUnseen, seen } from "./gone";
import { knowFields, LISTS, type ListResource, noteUnknownNames, readUnknown, storable } from "./lists";
import {
  endPass,
  type ListState,
  leavePass,
  movePass,
  noteAnew,
  type Pages,
  type Pass,
  type Place,
  paidFor,
  type ReadPage,
  restartPass,
} from "./passes";
import { clockOf, rests } from "./plan";
import type { StepChange } from "./runs";
import { insertSteps } from "./schedule-rows";
import { isDeleted } from "./writers";

/** The walks of a removing pass are over: what neither has seen is being removed. */
const WALKS_OVER = 3;

/** PAUSED and WAITS: it goes on with a later turn, or run. */
type Outcome = "ENDED" | "PAUSED" | "WAITS";

/** Makes a pass through a list from where it stands, a page a commit. */
export async function walkPass(
  context: RunContext,
  resource: ListResource,
  state: ListState,
  pass: Pass,
): Promise<Outcome> {
  if (pass.cursor === null && rests(pass, context.clock())) throw endless(resource);
  if (pass.removes && pass.beganAt === null && !(await beginAbsence(context, resource))) return "PAUSED";
  try {
    while (pass.walk < WALKS_OVER) {
      if (mustWait(pass, context.clock())) return "WAITS";
      const outcome = await walkOnce(context, resource, state, pass);
      if (outcome !== "WALKED") return outcome;
    }
    return await removeUnseen(context, resource, state, pass);
  } catch (error) {
    if (isListFailure(error) && !context.isStopped()) await restartWhere(context, pass, error);
    throw error;
  }
}

/** A pass that has no end, or stands where nothing answers any more, begins anew. */
async function restartWhere(context: RunContext, pass: Pass, error: CrmError): Promise<void> {
  const now = context.clock();
  const hasNoEnd = error.detail.endless === true;
  await inRun(context, async (copy) => {
    if (hasNoEnd || isStuck(pass, now)) await restartPass(copy, pass);
    if (hasNoEnd) await noteAnew(copy, pass, now);
    // Until it gets on again: its list's gap outlasts the passes beside it.
    await noteFailed(copy, pass, error, now);
  });
}

async function walkOnce(
  context: RunContext,
  resource: ListResource,
  state: ListState,
  pass: Pass,
): Promise<"ENDED" | "PAUSED" | "WALKED"> {
  const pages = state.ahead?.pass === pass ? state.ahead.pages : oneAhead(readPages(context, resource, state, pass));
  state.ahead = null;
  for await (const page of pages) {
    const { ended, ...change } = await commitPage(context, resource, state, pass, page);
    const seconds = page.committed?.();
    context.logger.debug({ resource, ...change, seconds, correlationId: page.correlationId }, "a page was committed");
    if (ended) return "ENDED";
    if (page.next === null) return "WALKED";
  }
  return "PAUSED";
}

async function* readPages(context: RunContext, resource: ListResource, state: ListState, pass: Pass): Pages {
  let { cursor, lastId, smallPages } = pass;
  let isCheckpoint = cursor !== null;
  for (;;) {
    const committed = context.metrics?.syncPages.startTimer({ resource });
    const askedAt = context.clock();
    const request = { cursor, updatedSince: pass.updatedSince, isSmall: smallPages > 0 };
    const asked = paidFor(context.apis, state, pass, (api) => LISTS[resource].read(api, request));
    const page = await asked.catch((error: unknown) => {
      if (isCheckpoint && isOfCursor(error) && !rests(pass, askedAt)) return null;
      throw error;
    });
    if (!page) {
      await inRun(context, (copy) => noteAnew(copy, pass, askedAt));
      isCheckpoint = false;
      cursor = null;
      lastId = 0;
      continue;
    }
    lastId = requireNew(resource, page, lastId);
    const write = LISTS[resource].ready(page.records, page.rejected.length);
    smallPages = smallAfter(smallPages, page);
    yield { ...page, askedAt, lastId, smallPages, write, committed };
    if (page.next === null && !pass.removes) state.whenRead?.();
    if (page.next === null || context.mustPause()) return;
    isCheckpoint = false;
    cursor = page.next;
  }
}

/**
 * The list itself is there for certain: what is not accepted, not found or gone (400, 404, 410) is the cursor. A right that
 * is missing (401, 403) is missing for the whole list: beginning anew would pay for all pages before, run after run.
 */
function isOfCursor(error: unknown): boolean {
  if (!(error instanceof CrmError) || error.detail.status === 401 || error.detail.status === 403) return false;
  return isRefusal(error);
}

/**
 * Lists come by ascending id. A page from which another is to follow, and that shows none that is higher than all before,
 * would go on for ever: in a circle, or with ever new cursors. @returns the highest id so far
 */
function requireNew(resource: ListResource, page: CrmPage<{ id: number }>, lastId: number): number {
  const highest = Math.max(lastId, ...idsOf(page));
  if (page.next === null || !LISTS[resource].hasPages || highest > lastId) return highest;
  throw endless(resource);
}

/**
 * Pages with fewer records that follow one of full size which did not come. Then a full one is asked for again: each costs
 * the same, and the CRM may be quick by now.
 */
const SMALL_PAGES = 10;

const smallAfter = (before: number, { isSmall }: CrmPage<unknown>): number =>
  isSmall ? (before || SMALL_PAGES + 1) - 1 : 0;

const endless = (resource: ListResource) =>
  new CrmError("UNREADABLE", `The CRM's paging of ${resource} shows nothing new and does not end.`, { endless: true });

async function commitPage(
  context: RunContext,
  resource: ListResource,
  state: ListState,
  pass: Pass,
  page: ReadPage,
): Promise<StepChange & { ended: boolean }> {
  const { run, clock, keepOut } = context;
  await knowFields(context.copy, resource, state);
  const change = await inRun(context, async (copy) => {
    if (page.records.length > 0) await LISTS[resource].before?.(context.settling, copy, page.records);
    // Shown by what changed as well: a walk may have passed by before the record was back.
    if (pass.removes || isRemoving(state)) await seen(copy, resource, idsOf(page));
    const stored = await storable(keepOut, copy, resource, page);
    const leaving = stored.records.filter(isDeleted).map(({ id }) => id);
    const { ids, removed } = await judged(context, copy, resource, leaving, () => stored.write(copy, clock()));
    if (page.rejected.length > 0 || state.hasRejected) await keepAside(copy, resource, stored, clock());
    const isChanged = new Set(ids);
    const changed = page.records.filter(({ id }) => isChanged.has(id));
    await noteUnknownNames(copy, resource, changed, state);
    if (pass.kind === "CHANGES" && ids.length > 0) {
      const unknown = await readUnknown(copy, resource, ids, clock());
      state.unknown.push(...unknown);
      const named = new Set(unknown.map((one) => one.named));
      if (named.size > 0) await insertSteps(copy, run.runId, run.kind, [...named]);
    }
    const rejected = page.rejected.length;
    const fetched = page.records.length + rejected;
    const unchanged = fetched - rejected - ids.length - removed;
    const written = { requests: 1, fetched, written: ids.length, unchanged, removed, rejected };
    const place = await placeAfter(copy, resource, pass, page, clock());
    if (place) await movePass(copy, run, { ...pass, ...place }, written);
    const end = { ...pass, beganAt: beganAt(pass, page) };
    const read = place ? state.list : await endPass(copy, run, state, end, written, clock());
    return { ...written, place, list: read, ended: place === null };
  });
  const { place, list, ...counted } = change;
  if (page.rejected.length > 0) state.hasRejected = true;
  if (place) Object.assign(pass, place, { isStored: true });
  else leavePass(state, pass, list);
  count(context, resource, counted);
  return counted;
}

const isRemoving = ({ passes }: ListState) => passes.get("WHOLE")?.removes === true;
const beganAt = (pass: Pass, { date, askedAt }: ReadPage) => pass.beganAt ?? clockOf(date, askedAt);

/** Where a pass stands after a page; null: at its end. A walk's last page commits which comes next, so that a pause there repeats none. */
async function placeAfter(
  copy: CopyScope,
  resource: ListResource,
  pass: Pass,
  page: ReadPage,
  now: Date,
): Promise<Place | null> {
  const { walk, firstWalkEndedAt, removes } = pass;
  const { next: cursor, lastId, smallPages } = page;
  const place = { beganAt: beganAt(pass, page), cursor, lastId, walk, firstWalkEndedAt, smallPages, failedSince: null };
  if (page.next !== null) return place;
  if (!removes) return null;
  const absence = await countAbsence(copy, resource);
  if (absence.absent === 0) return null;
  const missing = { ...place, firstWalkEndedAt: isMuch(absence) ? (firstWalkEndedAt ?? now) : null };
  return walk === 2 ? { ...missing, walk: WALKS_OVER } : { ...missing, lastId: 0, walk: 2 };
}

/** Asks for a pass's first page before its turn, which `walkPass` then takes: of a pass that begins, and that removes nothing. */
export function readAhead(context: RunContext, resource: ListResource, state: ListState, pass: Pass): void {
  if (pass.cursor !== null || pass.removes || rests(pass, context.clock()) || context.mustPause()) return;
  state.ahead = { pass, pages: oneAhead(readPages(context, resource, state, pass)) };
}
