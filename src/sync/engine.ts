import { LRUCache } from "lru-cache";
import type { Purpose } from "../connections/budget-rules";
import { readGaps } from "../connections/completeness";
import { endTrouble, isTrouble, noteTrouble } from "../connections/connection";
import { isFieldListDue, keepFieldList, readFieldList } from "../connections/field-lists";
import { TOKEN_TROUBLES } from "../connections/renewal";
import { followUser } from "../connections/visibility";
import { PAGE_SIZE } from "../crm/api";
import { ADDRESSES } from "../crm/calls";
import { BudgetLowError, CrmError, isListFailure, stopBehind } from "../crm/errors";
import type { TenantScope } from "../database/database";
import { isGivenUp, levelOf, needsOperator } from "../database/errors";
import { MAIN_LISTS } from "../entities/sync-list";
import { SYNC_RESOURCES, type SyncResource, type SyncStepRow } from "../entities/sync-run";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../platform/clock";
import {
  type ContextParts,
  commitPiece,
  contextOf,
  holdRun,
  inRun,
  type Reservations,
  type RunContext,
  reservationsOf,
  turnFrom,
} from "./commit";
import { failureOf, failureOfRest, gapOf, noteMissing, type RunFailure, RunLostError, recordGaps } from "./failures";
import { LISTS, type ListResource } from "./lists";
import { areDealsOfMeetingsDue } from "./participant-queue";
import { askParticipants } from "./participants";
import { begunOf, type ListState, passOf, readStates } from "./passes";
import { isResting, type PassKind, PRICE_OF_MEETING, passesOf, sinceOf } from "./plan";
import { probeMatched, refreshMeeting } from "./probes";
import { readSteps, totals } from "./run-history";
import * as runs from "./runs";
import { insertSteps, MEETING_LISTS, markRefreshed, meetingsToRefresh, payerOfLists } from "./schedule-rows";
import { readAhead, walkPass } from "./walk";

const BEAT_MS = 10 * SECOND_MS;
/** A run that the operator's stop, or the database, holds up looks again after this. */
const HELD_UP_MS = 10 * SECOND_MS;
/** And where it is the database, at last after this: each look costs the customer a page. */
const LONGEST_HELD_UP_MS = 5 * MINUTE_MS;
/** And where its end fails for a reason of our own, after this: that lasts until somebody mends it, and what changed is paid for each time. */
const LONGEST_UNENDED_MS = HOUR_MS;
/** What a run reads that is made while the lists wait. */
const OF_MEETINGS: ReadonlySet<SyncResource> = new Set([...MEETING_LISTS, "DEAL_PARTICIPANTS"]);

export interface EngineParts extends ContextParts {
  /** Plans the connection's next run, in the transaction that ends one. */
  planNext(scope: TenantScope, copyId: number, failure: RunFailure | null): Promise<void>;
}

/** Runs one sync from wherever its passes say it stands, page by page. */
export class SyncEngine {
  /** By run: how long it waits if it is held up once more. */
  readonly #waits = new LRUCache<string, number>({ max: 10_000 });

  constructor(private readonly parts: EngineParts) {}

  /** @param stop ends the run after the pages in hand; it is given back and goes on elsewhere */
  async run({ tenantId, runId }: runs.RunRef, stop: AbortSignal): Promise<void> {
    const { database, clock } = this.parts;
    const askedAt = clock();
    const run = await runs.claimRun(database.tenant(tenantId), runId, askedAt);
    if (!run) return;
    const beat = setInterval(() => this.#beat(run), BEAT_MS);
    const reservations = reservationsOf(this.parts.budget, run);
    const context = contextOf(this.parts, run, reservations, askedAt, stop);
    try {
      const isDone = await this.#paidFrom(reservations, context, stop);
      if (isDone) await this.#end(context, null);
      else await this.#release(run, 0, context.isLate());
      this.#waits.delete(runId);
    } catch (error) {
      await this.#broken(context, error);
    } finally {
      clearInterval(beat);
    }
  }

  /** What it did not spend is given back before the run ends: whoever is told of that end sees what it has cost. */
  async #paidFrom(reservations: Reservations, context: RunContext, stop: AbortSignal): Promise<boolean> {
    try {
      await this.#look(context);
      // It says by which clocks the authorizing user lives.
      await inRun(context, (copy) => context.judging.byPresentRules(copy));
      return await this.#turn({ ...context, ...turnFrom(context.clock(), context.clock, stop) });
    } finally {
      for (const reservation of Object.values(reservations)) {
        await reservation
          .release()
          .catch((error: unknown) => context.logger.warn({ err: error }, "unspent tokens were not given back"));
      }
    }
  }

  /**
   * Specification 5.10: nothing is synced as a user who is deactivated, or is not the one who authorized. Where the company
   * is short of tokens, the same question is the look at whether it still is; a refusal then is no news.
   */
  async #look(context: RunContext): Promise<void> {
    const { copy, clock, verify, left } = context;
    const carries = async (purpose: Purpose) => (await left(purpose)) >= ADDRESSES.currentUser.price;
    if (await carries("LISTS")) return verify("LISTS");
    const meetings = await meetingsToRefresh(copy, clock());
    if (meetings.length > 0 && (await carries("MEETINGS"))) return verify("MEETINGS");
    if ((await carries("DEALS_OF_MEETINGS")) && (await areDealsOfMeetingsDue(copy, clock()))) {
      return verify("DEALS_OF_MEETINGS");
    }
    const wasShort = !(await carries("FIRST_LISTS"));
    await verify("FIRST_LISTS").catch((error: unknown) => {
      if (!wasShort || failureOf(error)?.code !== "RATE_LIMITED") throw error;
      throw new BudgetLowError(null);
    });
  }

  /** @returns false where the run paused before its end */
  async #turn(context: RunContext): Promise<boolean> {
    const { copy } = context;
    const lists = await readStates(copy, context.clock());
    if (!(await this.#meetings(context, lists))) return false;
    const steps = await stepsOf(context);
    const deals = steps.get("DEALS");
    const { state: first } = steps.get("ORGANIZATIONS") ?? deals ?? {};
    if (deals) await this.#ifAffordable(context, () => probeMatched(context, first === "QUEUED"));
    return this.#steps(context, steps, lists);
  }

  /**
   * What is about to be talked of comes before all else, once: a run of many turns would ask for it in each. Where the share
   * of meetings is used up, the lists are read at their own pace.
   * @returns false where it paused before its end; the passes that it began go on
   */
  async #meetings(context: RunContext, lists: ReadonlyMap<SyncResource, ListState>): Promise<boolean> {
    const { run, copy, clock, left } = context;
    const meetings = await meetingsToRefresh(copy, clock());
    if (meetings.length === 0 || (await left("MEETINGS")) < PRICE_OF_MEETING) return true;
    await insertSteps(copy, run.runId, run.kind, MEETING_LISTS);
    const steps = await stepsOf(context);
    const refreshed: string[] = [];
    for (const meetingId of meetings) {
      if (refreshed.length > 0 && context.mustPause()) break;
      await this.#ifAffordable(context, () => refreshMeeting(context, meetingId));
      refreshed.push(meetingId);
    }
    let goesOn = refreshed.length === meetings.length;
    for (const resource of MEETING_LISTS) {
      const [step, state] = [steps.get(resource), lists.get(resource)];
      if (!step || !state?.list?.watermark || !isToRead(step)) continue;
      state.payers.CHANGES = "MEETINGS";
      const isRead = await this.#unlessMissing(context, resource, async () => {
        if (!state.passes.has("WHOLE")) return this.#list(context, step, resource, state);
        if (step.state !== "QUEUED" && !state.passes.has("CHANGES")) return true;
        await runs.setStepState(copy, run, resource, "RUNNING");
        return (await walkPass(context, resource, state, passOf(state, resource, "CHANGES"))) !== "PAUSED";
      });
      goesOn &&= isRead;
    }
    for (const meetingId of refreshed) await markRefreshed(copy, meetingId, clock());
    return goesOn && !context.mustPause();
  }

  async #steps(
    context: RunContext,
    steps: ReadonlyMap<SyncResource, SyncStepRow>,
    lists: ReadonlyMap<SyncResource, ListState>,
  ): Promise<boolean> {
    const planned = SYNC_RESOURCES.flatMap((resource) => {
      const [step, state] = [steps.get(resource), lists.get(resource)];
      return step && state && isToRead(step) ? [{ step, state }] : [];
    });
    let hasRead = false;
    for (const [index, { step, state }] of planned.entries()) {
      // One list a turn at least. What is asked for already is stored.
      if (hasRead && !state.ahead && context.mustPause()) return false;
      const next = planned[index + 1];
      state.whenRead = next ? () => this.#readAhead(context, next.step, next.state) : null;
      if (!(await this.#step(context, step, state))) return false;
      hasRead ||= step.state !== "SUCCEEDED";
    }
    // Of which changed records have named something unknown meanwhile. Where one was read to its end, it is known what it lacks.
    for (const [resource, step] of await stepsOf(context)) {
      const state = lists.get(resource);
      if (steps.has(resource) || !state || resource === "DEAL_PARTICIPANTS") continue;
      const before = state.list;
      if (!(await this.#step(context, step, state))) return false;
      const unknown = planned.flatMap((one) => one.state.unknown);
      if (state.list !== before) await noteMissing(context.copy, resource, unknown);
    }
    return true;
  }

  /** What the company's tokens do not carry now is left out, and is no failure of the run. */
  async #ifAffordable({ logger }: RunContext, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof CrmError) || error.code !== "BUDGET_LOW") throw error;
      logger.info({ code: error.code }, "what a run may do without is read when there are tokens for it");
    }
  }

  /** @returns false where it paused before its end */
  async #step(context: RunContext, step: SyncStepRow, state: ListState): Promise<boolean> {
    const { resource } = step;
    return this.#unlessMissing(context, resource, () =>
      resource === "DEAL_PARTICIPANTS" ? this.#participants(context, step) : this.#list(context, step, resource, state),
    );
  }

  /** @returns what the work does; where its list could not be read, that is noted, and the run goes on */
  async #unlessMissing(context: RunContext, resource: SyncResource, work: () => Promise<boolean>): Promise<boolean> {
    try {
      return await work();
    } catch (error) {
      if (!isListFailure(error) || context.isStopped()) throw error;
      await this.#missing(context, resource, error);
      return true;
    }
  }

  async #list(context: RunContext, step: SyncStepRow, resource: ListResource, state: ListState): Promise<boolean> {
    const { run, copy } = context;
    const isDone = step.state === "SUCCEEDED";
    const { whenRead } = state;
    const kinds = kindsOf(context, step, resource, state);
    for (const [index, kind] of kinds.entries()) {
      state.whenRead = index === kinds.length - 1 ? whenRead : null;
      const pass = passOf(state, resource, kind);
      const { updatedSince } = pass;
      if (!isDone) await runs.setStepState(copy, run, resource, "RUNNING", { updatedSince });
      if ((await walkPass(context, resource, state, pass)) === "PAUSED") return false;
    }
    await this.#ifAffordable(context, () => this.#fields(context, resource, state));
    if (!isDone) await runs.setStepState(copy, run, resource, "SUCCEEDED");
    return true;
  }

  /** While the last page of a list is being committed, the first one of the next list is read. */
  #readAhead(context: RunContext, step: SyncStepRow, state: ListState): void {
    const { resource } = step;
    if (resource === "DEAL_PARTICIPANTS") return;
    const [kind] = kindsOf(context, step, resource, state);
    if (kind) readAhead(context, resource, state, passOf(state, resource, kind));
  }

  /** What the fields of the list's records are called, where it is time to ask. Without it, what was last read is shown. */
  async #fields(context: RunContext, resource: ListResource, state: ListState): Promise<void> {
    const { apis, clock, logger } = context;
    const entity = LISTS[resource].fieldsOf;
    const askedAt = clock();
    if (!entity || !isFieldListDue(await readFieldList(context.copy, entity), askedAt)) return;
    const list = await apis[state.payers.WHOLE].fields(entity).catch((error: unknown) => {
      if (!isListFailure(error) || context.isStopped()) throw error;
      logger.warn({ err: error, resource, code: error.code }, "a list of fields could not be read");
      return error;
    });
    await commitPiece(context, resource, async (copy) => {
      await keepFieldList(copy, entity, list, askedAt);
      const fields = list instanceof CrmError ? 0 : list.length;
      return { ...runs.NO_CHANGE, requests: Math.max(1, Math.ceil(fields / PAGE_SIZE)) };
    });
    state.knownFields = undefined;
  }

  async #participants(context: RunContext, step: SyncStepRow): Promise<boolean> {
    const { run, copy } = context;
    if (step.state === "SUCCEEDED") return true;
    await runs.setStepState(copy, run, step.resource, "RUNNING");
    const isDone = await askParticipants(context, step);
    if (isDone) await runs.setStepState(copy, run, step.resource, "SUCCEEDED");
    return isDone;
  }

  /** One list could not be read: what depends on it says so, and the others are read. */
  async #missing(context: RunContext, resource: SyncResource, error: CrmError): Promise<void> {
    const { run, clock, logger } = context;
    logger.warn({ err: error, resource, code: error.code }, "a list could not be read; the run goes on");
    const failure = failureOf(error);
    await inRun(context, async (copy) => {
      await recordGaps(copy, resource, [gapOf(resource, error)], clock());
      await runs.setStepState(copy, run, resource, "FAILED");
      if (failure && MAIN_LISTS.includes(resource)) await runs.noteFailure(copy, run, failure);
    });
  }

  /** Something that would meet every call ended the run, or held it up. */
  async #broken(context: RunContext, error: unknown): Promise<void> {
    const { run, logger } = context;
    if (context.isStopped() && error instanceof CrmError) return this.#release(run);
    if (stopBehind(error)) return this.#release(run, HELD_UP_MS);
    if (isGivenUp(error) || needsOperator(error)) {
      const waitMs = this.#nextWait(run, LONGEST_HELD_UP_MS);
      logger[levelOf(error)]({ err: error, waitMs }, "the database holds a sync run up, which goes on later");
      return this.#release(run, waitMs);
    }
    const failure = failureOf(error);
    if (!failure) return logger.info({ err: error }, "a sync run is no longer this worker's");
    if (failure.code === "INTERNAL") logger.error({ err: error }, "a sync run failed for a reason of our own");
    else logger.warn({ err: error, code: failure.code }, "a sync run was ended");
    await this.#end(context, failure).catch(async (unended: unknown) => {
      if (unended instanceof RunLostError) return;
      // Left to the sweep it would begin anew with each lease's end, for ever.
      const waitMs = this.#nextWait(run, LONGEST_UNENDED_MS);
      this.parts.metrics?.syncRuns.inc({ kind: run.kind, outcome: "INTERNAL" });
      logger[isGivenUp(unended) ? "warn" : "error"]({ err: unended, waitMs }, "a sync run could not be ended yet");
      await this.#release(run, waitMs);
    });
  }

  #nextWait({ runId }: runs.ClaimedRun, mostMs: number): number {
    const waitMs = Math.min(this.#waits.get(runId) ?? HELD_UP_MS, mostMs);
    this.#waits.set(runId, 2 * waitMs);
    return waitMs;
  }

  #release(run: runs.ClaimedRun, waitMs = 0, isLate = false): Promise<void> {
    return this.parts.database.tenant(run.tenantId).transaction((scope) => runs.releaseRun(scope, run, waitMs, isLate));
  }

  async #end(context: RunContext, reason: RunFailure | null): Promise<void> {
    const { run, copy, clock, logger, isLate } = context;
    // Asked outside the transaction: a company's tokens have sessions of their own.
    const steps = await readSteps(copy, run.runId);
    const over = reason || (await this.#readsLists(context, steps)) ? null : TOKEN_TROUBLES;
    // They are many to count, and whoever needs the connection would wait for it.
    const gaps = await readGaps(copy, clock());
    const ofRest = failureOfRest(gaps);
    const failure = await copy.transaction(async (scope) => {
      // The connection before the run, in the order in which disconnecting locks them.
      await this.parts.planNext(scope, run.copyId, reason);
      if (!reason) await holdRun(scope, run, clock());
      const ended = await runs.endRun(scope, run, { failure: reason ?? ofRest, gaps, now: clock(), isLate: isLate() });
      if (!reason) await followUser(scope, run.copyId);
      if (!ended) await endTrouble(scope, run.copyId, over);
      else if (ended.message === ofRest?.message) await endTrouble(scope, run.copyId, TOKEN_TROUBLES);
      else if (isTrouble(ended.code)) {
        await noteTrouble(scope, run.copyId, { code: ended.code, message: ended.message }, clock());
      }
      return ended;
    });
    this.parts.metrics?.syncRuns.inc({ kind: run.kind, outcome: reason?.outcome ?? failure?.code ?? "SUCCEEDED" });
    const counted = totals(steps);
    if (failure) logger.warn({ ...counted, code: failure.code }, "a sync run failed");
    else logger.info(counted, "a sync run succeeded");
  }

  /**
   * Whether the run's success says that lists can be read. One for meetings or their deals alone reads none of those that
   * wait for the company's tokens, nor those that could not be read before.
   */
  async #readsLists({ copy, left }: RunContext, steps: readonly SyncStepRow[]): Promise<boolean> {
    if (steps.some(({ resource }) => !OF_MEETINGS.has(resource))) return true;
    return (await left(await payerOfLists(copy))) >= ADDRESSES.currentUser.price;
  }

  #beat(run: runs.ClaimedRun): void {
    const { database, clock, logger } = this.parts;
    const warn = (err: unknown) => logger.warn({ err, runId: run.runId }, "a lease could not be extended");
    runs.extendLease(database.tenant(run.tenantId), run, clock()).catch(warn);
  }
}

/** The passes that a run makes through a list now. */
function kindsOf(
  { run, clock, staleAfterMs }: RunContext,
  step: SyncStepRow,
  resource: ListResource,
  state: ListState,
): PassKind[] {
  const { tellsChanges } = LISTS[resource];
  const begunBefore = new Set(step.state === "QUEUED" ? begunOf(state) : []);
  const isDone = step.state === "SUCCEEDED";
  const whole = state.passes.get("WHOLE");
  // Beside one that rests, what changed is read all the same.
  const wholeIsOpen = whole !== undefined && !isResting(whole, clock(), staleAfterMs);
  const facts = { tellsChanges, list: state.list, wholeIsOpen, begunBefore, isDone };
  const kinds = passesOf(facts, clock(), staleAfterMs);
  // One that a turn before has begun for a meeting, beside a whole pass.
  if (state.passes.has("CHANGES") && !kinds.includes("CHANGES")) kinds.unshift("CHANGES");
  if (tellsChanges && step.state === "RUNNING" && areOld(run, state, kinds)) kinds.push("CHANGES");
  return kinds;
}

/**
 * Whether passes read a list up to a moment before their run at most: behind its first turn nothing else says that they went on
 * from an earlier one. Less the minutes by which the CRM's clock, by which they begin, may be behind.
 */
function areOld({ startedAt }: runs.ClaimedRun, { list, passes }: ListState, kinds: readonly PassKind[]): boolean {
  const begun = kinds.map((kind) => passes.get(kind)?.beganAt ?? startedAt);
  return [list?.watermark ?? null, ...begun].every((at) => at === null || at < sinceOf(startedAt));
}

const stepsOf = async ({ copy, run }: RunContext) =>
  new Map((await readSteps(copy, run.runId)).map((step) => [step.resource, step]));

/** A list that failed is none for this run; one that was read may be read again beside a long pass. */
const isToRead = ({ state }: SyncStepRow) => state !== "FAILED" && state !== "CANCELLED";
