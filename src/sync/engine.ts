import { stopForInactiveUser } from "../connections/connection-store";
import { NeedsReauthorizationError } from "../connections/errors";
import { endTrouble, isTrouble, noteTrouble } from "../connections/trouble";
import { CrmApi, type TokenSource } from "../crm/api";
import { CrmError } from "../crm/errors";
import type { CrmHttp } from "../crm/http";
import type { TenantDoor } from "../database/tenant-door";
import { SYNC_RESOURCES, type SyncResource, SyncRunRow } from "../entities/sync-run";
import type { SyncStepRow } from "../entities/sync-step";
import { type Clock, SECOND_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import { failureOf, isRefusalOfUser, isSubFetchFailure, RunLostError } from "./failures";
import { recordGaps, summarizeGaps } from "./gaps";
import { LISTS, type ListResource, type ReadPage } from "./lists";
import { commitPiece, inRun, type StepChange, writeList } from "./page-commit";
import { countDueDeals, dueDeals, readParticipants, writeParticipants } from "./participants";
import {
  type ClaimedRun,
  claimRun,
  extendLease,
  failRun,
  type RunRef,
  readSteps,
  releaseRun,
  setStepState,
  succeedRun,
} from "./run-store";

const BEAT_MS = 10 * SECOND_MS;
/** Specification 4.3.3: without these a run succeeds and says what is missing. */
const MAY_FAIL: ReadonlySet<SyncResource> = new Set(["PIPELINES", "STAGES"]);

export interface EngineParts {
  door: TenantDoor;
  http: CrmHttp;
  crmBaseUrl: string;
  concurrency: number;
  tokensOf(tenantId: string, copyId: number): TokenSource;
  clock: Clock;
  logger: Logger;
}

/** Runs one sync from wherever its checkpoints say it stands, page by page. */
export class SyncEngine {
  constructor(private readonly parts: EngineParts) {}

  /** @param stop ends the run after the page in hand; it is given back and goes on elsewhere */
  async run({ tenantId, runId }: RunRef, stop: AbortSignal): Promise<void> {
    const { door, clock } = this.parts;
    const askedAt = clock();
    const run = await claimRun(door.enter(tenantId), runId, askedAt);
    if (!run) return;
    const beat = setInterval(() => this.#beat(run), BEAT_MS);
    const logger = this.parts.logger.child({ tenantId, runId, kind: run.kind });
    try {
      const api = new CrmApi(this.parts.http, this.parts.crmBaseUrl, this.parts.tokensOf(tenantId, run.copyId));
      await this.#requireActiveUser(api, run, askedAt);
      await this.#steps(api, run, stop, logger);
      if (stop.aborted) await door.transaction(tenantId, (scope) => releaseRun(scope, run));
    } catch (error) {
      await this.#ended(run, error, logger);
    } finally {
      clearInterval(beat);
    }
  }

  async #steps(api: CrmApi, run: ClaimedRun, stop: AbortSignal, logger: Logger): Promise<void> {
    const { door, clock } = this.parts;
    const steps = new Map((await readSteps(door.enter(run.tenantId), run.runId)).map((step) => [step.resource, step]));
    for (const resource of SYNC_RESOURCES) {
      const step = steps.get(resource);
      if (!step || step.state === "SUCCEEDED" || step.state === "FAILED") continue;
      const done = await this.#step(api, run, step, stop);
      if (!done) return;
    }
    await inRun(door, run, clock(), async (scope) => {
      await succeedRun(scope, run, await summarizeGaps(scope, run.copyId), clock());
    });
    await endTrouble(door.enter(run.tenantId), run.copyId);
    logger.info("a sync run succeeded");
  }

  /** Specification 5.10: nothing is synced as a user whom the CRM has deactivated, or no longer knows. The copy stays. */
  async #requireActiveUser(api: CrmApi, run: ClaimedRun, askedAt: Date): Promise<void> {
    const { door, clock, logger } = this.parts;
    const active = await api.currentUser().then(
      (user) => user.active,
      (error: unknown) => {
        if (isRefusalOfUser(error)) return false;
        throw error;
      },
    );
    if (active) return;
    await door.transaction(run.tenantId, (scope) => stopForInactiveUser(scope, run.copyId, askedAt, clock()));
    logger.warn(
      reference(run),
      "the authorizing user is no longer active in the CRM: the connection needs re-authorization",
    );
    throw new NeedsReauthorizationError(
      "The user who authorized is no longer active in the CRM. Authorize with another user.",
    );
  }

  /** @returns false where it was stopped before its end */
  async #step(api: CrmApi, run: ClaimedRun, step: SyncStepRow, stop: AbortSignal): Promise<boolean> {
    const scope = this.parts.door.enter(run.tenantId);
    const { resource } = step;
    await setStepState(scope, run, resource, "RUNNING");
    try {
      const walk =
        resource === "DEAL_PARTICIPANTS" ? this.#participants(api, run, step) : this.#list(api, run, step, resource);
      for await (const change of walk) {
        this.parts.logger.debug({ ...reference(run), resource, ...change }, "a page was committed");
        if (stop.aborted) return false;
      }
      await setStepState(scope, run, resource, "SUCCEEDED");
    } catch (error) {
      if (!MAY_FAIL.has(resource) || !isSubFetchFailure(error)) throw error;
      await this.#missing(run, resource, error.code);
    }
    return true;
  }

  async *#list(api: CrmApi, run: ClaimedRun, step: SyncStepRow, resource: ListResource): AsyncGenerator<StepChange> {
    const { door, clock } = this.parts;
    const seen = new Set<string | null>();
    for (let cursor = step.cursor; ; ) {
      const page = await LISTS[resource](api, { cursor });
      await this.#noteCrmTime(run, page);
      yield await commitPiece(door, run, resource, clock(), (scope) => writeList(scope, run, resource, page, clock()));
      if (page.next === null) return;
      // A CRM that hands out a cursor twice would be walked for ever.
      if (seen.has(page.next)) throw new CrmError("UNREADABLE", `The CRM's paging of ${resource} goes in a circle.`);
      seen.add(page.next);
      cursor = page.next;
    }
  }

  async *#participants(api: CrmApi, run: ClaimedRun, step: SyncStepRow): AsyncGenerator<StepChange> {
    const { door, clock, concurrency } = this.parts;
    const scope = door.enter(run.tenantId);
    const expected = step.fetched + (await countDueDeals(scope, run.copyId));
    await setStepState(scope, run, "DEAL_PARTICIPANTS", "RUNNING", expected);
    for (let cursor = step.cursor; ; ) {
      const dealIds = await dueDeals(scope, run.copyId, cursor);
      if (dealIds.length === 0) return;
      const read = await readParticipants(api, dealIds, concurrency);
      for (const { dealId, error } of read.failures) {
        this.parts.logger.warn(
          { ...reference(run), dealId, code: error.code },
          "a deal's participants could not be read",
        );
      }
      const change = await commitPiece(door, run, "DEAL_PARTICIPANTS", clock(), (inner) =>
        writeParticipants(inner, run.copyId, read, clock()),
      );
      yield change;
      cursor = change.cursor;
    }
  }

  /** The CRM's clock at the start of the run is what a later run goes on from; the first answer has it. */
  async #noteCrmTime(run: ClaimedRun, { date }: ReadPage): Promise<void> {
    if (run.crmTimeAtStart || !date) return;
    run.crmTimeAtStart = date;
    const { manager } = this.parts.door.enter(run.tenantId);
    await manager.update(SyncRunRow, { tenantId: run.tenantId, id: run.runId }, { crmTimeAtStart: date });
  }

  async #missing(run: ClaimedRun, resource: SyncResource, code: string): Promise<void> {
    const { door, clock, logger } = this.parts;
    logger.warn({ ...reference(run), resource, code }, "a sub-fetch failed; the run goes on");
    await inRun(door, run, clock(), async (scope) => {
      const message = `The CRM's ${resource.toLowerCase()} could not be read; names may be missing or old. The next run asks again.`;
      await recordGaps(scope.manager, run.copyId, resource, [{ code, message }], clock());
      await setStepState(scope, run, resource, "FAILED");
    });
  }

  async #ended(run: ClaimedRun, error: unknown, logger: Logger): Promise<void> {
    const failure = failureOf(error);
    if (!failure) return logger.info({ err: error }, "a sync run is no longer this worker's");
    if (failure.code === "INTERNAL") logger.error({ err: error }, "a sync run failed for a reason of our own");
    else logger.warn({ err: error, code: failure.code }, "a sync run failed");
    await this.parts.door
      .transaction(run.tenantId, (scope) => failRun(scope, run, failure, this.parts.clock()))
      .catch((lost: unknown) => {
        if (!(lost instanceof RunLostError)) throw lost;
      });
    const { code, message } = failure;
    if (!isTrouble(code)) return;
    await noteTrouble(this.parts.door.enter(run.tenantId), run.copyId, { code, message }, this.parts.clock());
  }

  #beat(run: ClaimedRun): void {
    extendLease(this.parts.door.enter(run.tenantId), run, this.parts.clock()).catch((error: unknown) =>
      this.parts.logger.warn({ err: error, runId: run.runId }, "a lease could not be extended"),
    );
  }
}

const reference = ({ tenantId, runId }: ClaimedRun) => ({ tenantId, runId });
