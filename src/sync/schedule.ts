import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Actor } from "../auth/actor";
import { mustWaitToSync, recordAudit, refusalToSync, refusedByPolicy } from "../auth/policies";
import type { Budget } from "../connections/budget";
import { BATCH } from "../connections/budget-rules";
import { connectedCopyId, lockConnection, NEEDS_REAUTHORIZATION, NOT_CONNECTED } from "../connections/connection";
import { PAGE_SIZE } from "../crm/api";
import { ADDRESSES } from "../crm/calls";
import type { CopyScope, Database, TenantScope } from "../database/database";
import { enqueueJob, hasLiveJob, type JobKind } from "../database/jobs";
import { ConnectionRow, SyncedCopyRow } from "../entities/connection";
import { FieldListRow } from "../entities/crm-company";
import { SyncPassRow } from "../entities/sync-list";
import { SYNC_RESOURCES, type SyncKind, type SyncResource } from "../entities/sync-run";
import { type Clock, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../platform/clock";
import { accepted, type Outcome, type Refused, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { forEachLogged } from "../platform/work";
import type { RunFailure } from "./failures";
import { areDealsOfMeetingsDue } from "./participant-queue";
import { askWhole, forgetPasses } from "./passes";
import * as plan from "./plan";
import { cancelRuns, enqueueSync, LEASE_IS_OVER, type RunRef, SYNC_RUN } from "./runs";
import * as rows from "./schedule-rows";

const ORPHAN = { tenantId: "number", runId: "text" } as const;
const TENANT_REF = z.object({ tenantId: z.int() });
type TenantRef = z.infer<typeof TENANT_REF>;

/** Time has come to see whether a tenant's lists are due. */
export const SYNC_DUE: JobKind<TenantRef> = {
  name: "sync_due",
  payload: TENANT_REF,
  subjectOf: ({ tenantId }) => tenantId,
};
/** A job that was taken so long ago, of something that has not begun, has gone with the worker that took it. */
const UNCLAIMED_MS = MINUTE_MS;
/** Runs that a worker has died with: $1 to $2 an unclaimed one may still be taken. */
const ORPHANS = `
  WITH late AS MATERIALIZED (
    SELECT tenant_id, id, state FROM sync_run
    WHERE (state = 'RUNNING' AND ${LEASE_IS_OVER})
      OR (state = 'QUEUED' AND queued_at NOT BETWEEN $1 AND $2)
  )
  SELECT tenant_id AS "tenantId", id AS "runId" FROM late
  WHERE state = 'RUNNING' OR NOT ${hasLiveJob(SYNC_RUN, "late.id", "$1")}`;
/**
 * Connections whose run was to be made before $1, or is planned for after $2, as no clock that is right would do; and where
 * $3 those without a plan, which were made while there was no interval.
 */
const MISSED = `
  WITH due AS MATERIALIZED (
    SELECT tenant_id, next_sync_at > $2 AS astray FROM connection c
    WHERE state = 'CONNECTED' AND (next_sync_at NOT BETWEEN $1 AND $2 OR next_sync_at IS NULL AND $3)
      AND NOT EXISTS (SELECT 1 FROM sync_run r WHERE r.tenant_id = c.tenant_id AND r.state IN ('QUEUED', 'RUNNING'))
  )
  SELECT tenant_id AS "tenantId" FROM due WHERE astray OR NOT ${hasLiveJob(SYNC_DUE, "due.tenant_id", "$1")}`;
/** How often each worker looks for runs whose worker has died; with the lease this bounds the takeover. */
export const SWEEP_MS = 10 * SECOND_MS;
/** A member's request comes so long after the last run at the soonest: nobody spends a company's tokens by clicking. */
const TOO_SOON_MS = MINUTE_MS;
/** Who the user is: a run's first question, and where a company is short of tokens the look at its balance. */
const PRICE_OF_LOOK = ADDRESSES.currentUser.price;
/** A run through what changed. */
const PRICE_OF_RUN =
  PRICE_OF_LOOK +
  (ADDRESSES.organizations.price + ADDRESSES.persons.price + ADDRESSES.deals.price) +
  plan.PRICE_OF_MEETING;
/** A deal of a meeting, beside what the look before it sets aside. */
const PRICE_OF_DEAL = BATCH + ADDRESSES.participants(0).price;
/** Walking the deals whole, for what they do not tell as a change, costs this share of a day's allowance at most; twice that where one is gone. */
const WHOLE_DEALS_SHARE = 1 / 50;
/** And walking everything, for what came into sight with a deal. */
const LATE_SHARE = 1 / 5;
/** Failures of a whole company's means, which trying again at the usual pace would not mend. */
const SHORT = new Set<string | undefined>(["RATE_LIMITED", "BUDGET_LOW"]);

export interface ScheduleParts {
  database: Database;
  budget: Pick<Budget, "left" | "shortUntil" | "view">;
  clock: Clock;
  logger: Logger;
  intervalMs: number;
  reconcileIntervalMs: number;
}

/** A page of each list that a RECONCILE spends a company's tokens on. */
const PRICE_OF_PAGE = {
  ORGANIZATIONS: ADDRESSES.organizations.price,
  PERSONS: ADDRESSES.persons.price,
  DEALS: ADDRESSES.deals.price,
  ACTIVITIES: ADDRESSES.activities.price,
  NOTES: ADDRESSES.notes.price,
};
type Walked = keyof typeof PRICE_OF_PAGE;
const WALKED: readonly Walked[] = ["ORGANIZATIONS", "PERSONS", "DEALS", "ACTIVITIES", "NOTES"];

type Counts = readonly [Walked, records: number][];

const priceOf = (counts: Counts) =>
  counts.reduce((sum, [list, records]) => sum + Math.ceil(records / PAGE_SIZE) * PRICE_OF_PAGE[list], 0);

/** How far apart what has a price is, a day at the least, where each day's share of what syncs may spend is to pay for it. */
const apartMs = (price: number, share: number, allowance: number) => DAY_MS * Math.max(1, price / (share * allowance));

/** How far apart walks through all deals are. @param allowance what syncs may spend a day */
export const dealsApartMs = (deals: Counts, allowance: number): number =>
  apartMs(priceOf(deals), WHOLE_DEALS_SHARE, allowance);

/**
 * How far apart walks through everything are where deals go on coming late. What is gone meanwhile has a list walked twice.
 * Never, where that leaves less than half a day to what changed: a hole that waits for the next RECONCILE is not as bad.
 */
export function lateApartMs(counts: Counts, allowance: number): number {
  const price = 2 * priceOf(counts);
  return price > allowance / 2 ? Number.POSITIVE_INFINITY : apartMs(price, LATE_SHARE, allowance);
}

/** What the company's tokens carry now. */
interface May {
  read: boolean;
  /** Deals of meetings wait for the tokens that these have besides. */
  ask: boolean;
  refresh: boolean;
  /** What syncs may spend a day; null where nothing is known of the company. */
  allowance: number | null;
  /** How long after the last walk through everything the next may come for a record that came late. */
  lateMs: number;
}

export type SyncRefusal =
  | "NOT_ALLOWED_FOR_ROLE"
  | "NOT_CONNECTED"
  | "NEEDS_REAUTHORIZATION"
  | "SYNC_ALREADY_RUNNING"
  | "SYNC_TOO_SOON"
  | "BUDGET_LOW";

const NOT_FOR_MEMBERS =
  "Reading everything spends much of what your CRM allows a day. Only an owner or admin may ask for it; what changed you may sync yourself.";
const RUNNING = refused("SYNC_ALREADY_RUNNING", "A sync is queued or running already.");

function later(code: "SYNC_TOO_SOON" | "BUDGET_LOW", retryAt: Date): Refused<SyncRefusal> {
  const message =
    code === "SYNC_TOO_SOON"
      ? "The last sync has only just ended. Ask again a minute after it."
      : "Your CRM company's tokens of the day are needed for its other apps. The copy is brought up to date when there are more.";
  return { ...refused(code, message), retryAt };
}

/** Somebody asks for what is new, or may be shown more: nothing rests. */
async function endRests({ tenantId, copyId, typed }: CopyScope): Promise<void> {
  await typed((orm) => orm.update(SyncPassRow, { tenantId, copyId }, { begunAnewAt: null, restsUntil: null }));
  await typed((orm) => orm.update(FieldListRow, { tenantId, copyId }, { failedSince: null }));
}

/** When runs are made: at each list's pace, before meetings, by request, and again where a worker died with one (decision 0014). */
export class Schedule {
  /** By copy, for an hour. */
  readonly #counts = new LRUCache<number, Counts>({ max: 10_000, ttl: HOUR_MS });

  constructor(private readonly parts: ScheduleParts) {}

  /** Makes a run that somebody asked for now, through all lists. @returns its id, or why there is none */
  async request(actor: Actor, kind: SyncKind): Promise<Outcome<string, SyncRefusal>> {
    const policy = refusalToSync(actor, kind !== "INCREMENTAL");
    const refusal = await refusedByPolicy(this.parts, actor, "requestSync", policy && refused(policy, NOT_FOR_MEMBERS));
    if (refusal) return refusal;
    const { database, clock, logger } = this.parts;
    const asked = database.tenant(actor.tenantId);
    const connected = await connectedCopyId(asked);
    const shortUntil = connected && (await this.#shortUntil({ ...asked, copyId: connected }, PRICE_OF_RUN));
    return asked.transaction(async (scope): Promise<Outcome<string, SyncRefusal>> => {
      const now = clock();
      const { state, copyId } = await lockConnection(scope);
      if (state === "NEEDS_REAUTHORIZATION") return NEEDS_REAUTHORIZATION;
      if (copyId === null) return NOT_CONNECTED;
      const waitUntil = await this.#waitUntil({ ...scope, copyId });
      const isSoon = waitUntil !== null && waitUntil > now;
      const open = await rows.openRun(scope);
      // One that waits begins before those that nobody waits for.
      if (open?.state === "QUEUED" && !isSoon) await enqueueSync(scope, open.id, 0, "FIRST");
      if (open) return RUNNING;
      if (isSoon && mustWaitToSync(actor)) return later("SYNC_TOO_SOON", waitUntil);
      if (shortUntil) return later("BUDGET_LOW", shortUntil);
      await endRests({ ...scope, copyId });
      // Nobody comes before others by asking again and again.
      const runId = await rows.enqueueRun(scope, copyId, kind, now, SYNC_RESOURCES, isSoon ? "IN_TURN" : "FIRST");
      await recordAudit(scope, logger, { action: "SYNC_REQUESTED", actor, at: now, code: kind, subject: runId });
      return accepted(runId);
    });
  }

  /** The first run of an authorization, in the transaction that connects. @param isKept an earlier authorization's copy */
  async authorized(scope: TenantScope, copyId: number, isKept: boolean): Promise<void> {
    const now = this.parts.clock();
    const { tenantId } = scope;
    await cancelRuns(scope, copyId, now);
    if (isKept) {
      // The user may see less than before: what was walked so far proves nothing, and matched records are looked at first.
      await forgetPasses({ ...scope, copyId });
      // Or more: no list of fields rests, either.
      await endRests({ ...scope, copyId });
      const asNew = { probedAt: null, probeCursor: null, probeFailed: false, probeFailures: 0 };
      await scope.typed((orm) => orm.update(SyncedCopyRow, { tenantId, id: copyId }, asNew));
    }
    await rows.enqueueRun(scope, copyId, isKept ? "RECONCILE" : "FULL", now, SYNC_RESOURCES, "FIRST");
  }

  /** Cancels what is queued or running for a copy, in the transaction that retires it. */
  cancelRuns(scope: TenantScope, copyId: number): Promise<void> {
    return cancelRuns(scope, copyId, this.parts.clock());
  }

  /** The job of the schedule: a run where none is open and something is due. The next one is planned when that ends. */
  async due(tenantId: number): Promise<void> {
    const { database, budget, clock } = this.parts;
    const scope = database.tenant(tenantId);
    const copyId = await connectedCopyId(scope);
    if (copyId === null) return;
    const copy = { ...scope, copyId };
    const [shortUntil, noMeetingsUntil, view] = await Promise.all([
      this.#shortUntil(copy, PRICE_OF_LOOK),
      budget.shortUntil(tenantId, copyId, "MEETINGS", plan.PRICE_OF_MEETING, clock()),
      budget.view(tenantId, copyId, clock()),
    ]);
    const ask = await this.#dealsOfMeetingsWait(copy);
    const allowance = view?.allowance ?? null;
    // A run that asks looks at the balance as well.
    const lateMs = await this.#lateMs(copy, allowance);
    const may = { read: shortUntil === null && !ask, ask, refresh: noMeetingsUntil === null, allowance, lateMs };
    await scope.transaction(async (scope) => {
      const present = await lockConnection(scope);
      if (present.state !== "CONNECTED" || present.copyId !== copyId || (await rows.openRun(scope))) return;
      const held = { ...scope, copyId };
      if (!(await this.#make(held, may))) await this.#plan(held, shortUntil);
    });
  }

  /**
   * Plans the next run, in the transaction that ends one. A later plan replaces an earlier one.
   * @param failure what the one that ends has failed for
   */
  async planNext(scope: TenantScope, copyId: number, failure: Pick<RunFailure, "code"> | null): Promise<void> {
    const hour = new Date(this.parts.clock().getTime() + plan.SHORT_MS);
    await this.#plan({ ...scope, copyId }, SHORT.has(failure?.code) ? hour : null);
  }

  /** Finds what died with a worker (a run, whose lease decides who may go on, or the job of the schedule itself), and meetings. */
  async sweep(): Promise<void> {
    const { database, clock, logger, intervalMs } = this.parts;
    const now = clock();
    const [since, soon] = [-UNCLAIMED_MS, UNCLAIMED_MS].map((ms) => new Date(now.getTime() + ms));
    const takeOver = async ({ tenantId, runId }: RunRef) => {
      await enqueueSync(database.tenant(tenantId), runId);
      logger.warn({ tenantId, runId }, "a run has lost its worker and is taken over");
    };
    const makeUpFor = async ({ tenantId }: { tenantId: number }) => {
      await this.due(tenantId);
      logger.warn({ tenantId }, "a scheduled sync was missed and is made up for");
    };
    const tenants = (sql: string, parameters: readonly unknown[]) =>
      database.acrossTenants<{ tenantId: number }>(sql, parameters, { tenantId: "number" });
    const orphans = await database.acrossTenants<RunRef>(ORPHANS, [since, soon], ORPHAN);
    await forEachLogged(orphans, takeOver, logger);
    const latest = new Date(now.getTime() + plan.longestWaitMs(intervalMs));
    await forEachLogged(await tenants(MISSED, [since, latest, intervalMs > 0]), makeUpFor, logger);
    if (intervalMs === 0) return;
    const lately = new Date(now.getTime() - plan.APART_MS);
    const meeting = await tenants(rows.TENANTS_WITH_MEETINGS_SOON, [...rows.soonAt(now), lately]);
    await forEachLogged(meeting, ({ tenantId }) => this.due(tenantId), logger);
  }

  /** Makes the run that is due, through the lists that are. @returns whether there was anything to make it for */
  async #make(copy: CopyScope, may: May): Promise<boolean> {
    const { clock, intervalMs, reconcileIntervalMs } = this.parts;
    const now = clock();
    const known = await rows.readPaces(copy);
    const isAsked =
      may.read && may.allowance !== null && (await this.#askForWholeDeals(copy, known, may.allowance, now));
    const lists = isAsked ? await rows.readPaces(copy) : known;
    const kind = may.read ? plan.dueKind(lists, now, reconcileIntervalMs, may.lateMs) : "INCREMENTAL";
    const pace = { intervalMs, nextMeetingAt: await rows.nextMeetingAt(copy, now) };
    const due = may.read ? plan.dueLists(lists, now, pace) : [];
    const meetings = may.refresh ? await rows.meetingsToRefresh(copy, now) : [];
    const resources = new Set<SyncResource>(kind === "RECONCILE" ? SYNC_RESOURCES : due);
    if (due.length > 0 || may.ask) resources.add("DEAL_PARTICIPANTS");
    if (meetings.length > 0) for (const list of rows.MEETING_LISTS) resources.add(list);
    // What was missed is looked at again with the deals, and this run may have been planned for that.
    const missedAt = may.read ? await rows.lastMissedAt(copy) : null;
    if (missedAt && plan.ageOf(missedAt, now) >= plan.SECOND_LOOK_MS)
      for (const list of plan.TOGETHER) if (due.includes(list) || !lists.get(list)?.isUnread) resources.add(list);
    if (resources.size === 0) return false;
    await rows.enqueueRun(copy, copy.copyId, kind, now, [...resources]);
    return true;
  }

  /** Counted where it matters, and before the connection is locked: there may be a million records. */
  async #lateMs(copy: CopyScope, allowance: number | null): Promise<number> {
    const { clock, reconcileIntervalMs } = this.parts;
    const kindAt = (lists: plan.Lists, lateMs?: number) => plan.dueKind(lists, clock(), reconcileIntervalMs, lateMs);
    const lists = await rows.readPaces(copy);
    // With or without it the next run is the same.
    if (allowance === null || kindAt(lists, DAY_MS) === kindAt(lists)) return Number.POSITIVE_INFINITY;
    const counts = this.#counts.get(copy.copyId) ?? (await rows.countRecords(copy, WALKED));
    this.#counts.set(copy.copyId, counts);
    return lateApartMs(counts, allowance);
  }

  /** Not every change of a deal is told as one: how many take part in it, and that it went out of sight, is seen by walking them all. @returns whether it is time */
  async #askForWholeDeals(copy: CopyScope, lists: plan.Lists, allowance: number, now: Date): Promise<boolean> {
    const { wholeAt, muchGone } = lists.get("DEALS") ?? {};
    const isReconciled = this.parts.reconcileIntervalMs > 0;
    // Where much is gone the RECONCILE that follows walks them, and would not be asked for behind a walk that finds no more.
    if (!wholeAt || plan.ageOf(wholeAt, now) < DAY_MS || (isReconciled && muchGone)) return false;
    const deals = await rows.countRecords(copy, ["DEALS"]);
    if (plan.ageOf(wholeAt, now) < dealsApartMs(deals, allowance)) return false;
    await askWhole(copy, ["DEALS"], () => isReconciled);
    return true;
  }

  async #plan(copy: CopyScope, shortUntil: Date | null): Promise<void> {
    const { clock, intervalMs } = this.parts;
    const { tenantId, copyId } = copy;
    const now = clock();
    const pace = { intervalMs, nextMeetingAt: await rows.nextMeetingAt(copy, now) };
    // Meetings may be recorded meanwhile, whose deals need not wait.
    const until = shortUntil && new Date(Math.min(shortUntil.getTime(), now.getTime() + plan.SHORT_MS));
    const waiting = { missedAt: await rows.lastMissedAt(copy), shortUntil: until };
    const at = plan.nextRunAt(now, await rows.readPaces(copy), pace, waiting, Math.random());
    const connected = { tenantId, copyId, state: "CONNECTED" as const };
    const planned = await copy.typed((orm) => orm.update(ConnectionRow, connected, { nextSyncAt: at }));
    if (planned.affected === 0 || at === null) return;
    await enqueueJob(copy, SYNC_DUE, { tenantId }, at.getTime() - now.getTime());
  }

  /**
   * Until when lists have to wait for the company's tokens; null: they need not. Asked outside transactions, because a
   * company is no tenant's and has sessions of its own.
   */
  async #shortUntil(copy: CopyScope, price: number): Promise<Date | null> {
    const { budget, clock } = this.parts;
    return budget.shortUntil(copy.tenantId, copy.copyId, await rows.payerOfLists(copy), price, clock());
  }

  /** Whether lists have to wait, or to look whether they do, and a run through nothing else would know more of meetings. */
  async #dealsOfMeetingsWait(copy: CopyScope): Promise<boolean> {
    const { budget, clock } = this.parts;
    const { tenantId, copyId } = copy;
    const left = await budget.left(tenantId, copyId, await rows.payerOfLists(copy), clock());
    if (left >= PRICE_OF_LOOK) return false;
    const noneUntil = await budget.shortUntil(tenantId, copyId, "DEALS_OF_MEETINGS", PRICE_OF_DEAL, clock());
    return noneUntil === null && areDealsOfMeetingsDue(copy, clock());
  }

  /** Until when a member has to wait after the last run, and nobody comes first; null: none was made yet. */
  async #waitUntil(copy: CopyScope): Promise<Date | null> {
    const at = await rows.lastRunAt(copy, this.parts.clock());
    return at && new Date(at.getTime() + TOO_SOON_MS);
  }
}
