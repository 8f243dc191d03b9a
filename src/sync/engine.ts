import type { PinnedTokens } from "../connections/access-tokens";
import { GAP_CODE_OF, readGaps } from "../connections/known-gaps";
import { endTrouble, isTrouble, noteTrouble } from "../connections/trouble";
import { CrmApi } from "../crm/api";
import { stopBehind } from "../crm/errors";
import type { CrmHttp } from "../crm/http";
import { Pacer } from "../crm/pacer";
import type { Database, TenantScope } from "../database/database";
import { isGivenUp } from "../database/session-limits";
import { type GapCode, SYNC_RESOURCES, type SyncResource } from "../entities/sync-run";
import type { SyncStepRow } from "../entities/sync-step";
import { type Clock, SECOND_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import { failureOf, isSubFetchFailure, RunLostError } from "./failures";
import { recordGaps } from "./gaps";
import { holdRun, inRun, type StepChange } from "./page-commit";
import { copyOf, type RunContext } from "./run-context";
import {
  type ClaimedRun,
  claimRun,
  extendLease,
  failRun,
  type RunRef,
  readSteps,
  releaseRun,
  requireLease,
  setStepState,
  succeedRun,
} from "./run-store";
import { walkList } from "./walk-list";
import { walkParticipants } from "./walk-participants";

const BEAT_MS = 10 * SECOND_MS;
/** A run gives its place to waiting ones after this, and goes on from its checkpoint when it is its turn again. */
const TURN_MS = 15 * SECOND_MS;
/** A run that the operator's stop, or somebody else's lock, holds up looks again after this. */
const HELD_UP_MS = 10 * SECOND_MS;
/** Specification 4.3.3: without these a run succeeds and says what is missing. */
const MAY_FAIL: ReadonlySet<SyncResource> = new Set(["PIPELINES", "STAGES"]);

export interface EngineParts {
  database: Database;
  http: CrmHttp;
  crmBaseUrl: string;
  concurrency: number;
  tokensOf(tenantId: number, copyId: number): PinnedTokens;
  /** Plans the connection's next run, in the transaction that ends one. */
  planNext(scope: TenantScope, copyId: number): Promise<void>;
  metrics?: Metrics;
  clock: Clock;
  logger: Logger;
}

/** Runs one sync from wherever its checkpoints say it stands, page by page. */
export class SyncEngine {
  constructor(private readonly parts: EngineParts) {}

  /** @param stop ends the run after the pages in hand; it is given back and goes on elsewhere */
  async run({ tenantId, runId }: RunRef, stop: AbortSignal): Promise<void> {
    const { database, clock, concurrency } = this.parts;
    const askedAt = clock();
    const run = await claimRun(database.tenant(tenantId), runId, askedAt);
    if (!run) return;
    const beat = setInterval(() => this.#beat(run), BEAT_MS);
    const logger = this.parts.logger.child({ tenantId, runId, kind: run.kind });
    const pacer = new Pacer(clock);
    const tokens = this.parts.tokensOf(tenantId, run.copyId);
    const mayBegin = () => requireLease(run, clock());
    const api = new CrmApi({ http: this.parts.http, baseUrl: this.parts.crmBaseUrl, tokens, pacer, mayBegin });
    const turnEnds = askedAt.getTime() + TURN_MS;
    const mustPause = () => stop.aborted || clock().getTime() >= turnEnds;
    const { metrics } = this.parts;
    const context: RunContext = { run, api, tokens, database, clock, logger, concurrency, metrics, mustPause };
    try {
      // Specification 5.10: nothing is synced as a user who is deactivated, or is not the one who authorized.
      await tokens.verify(mayBegin);
      if (!(await this.#steps(context))) await database.tenant(tenantId).transaction((scope) => releaseRun(scope, run));
    } catch (error) {
      await this.#ended(context, error);
    } finally {
      clearInterval(beat);
    }
  }

  /** @returns false where the run paused before its end */
  async #steps(context: RunContext): Promise<boolean> {
    const { run, database, clock, logger } = context;
    const steps = new Map((await readSteps(copyOf(context), run.runId)).map((step) => [step.resource, step]));
    for (const resource of SYNC_RESOURCES) {
      const step = steps.get(resource);
      if (!step || step.state === "SUCCEEDED" || step.state === "FAILED") continue;
      if (!(await this.#step(context, step))) return false;
    }
    await database.tenant(run.tenantId).transaction(async (scope) => {
      // The connection before the run, in the order in which disconnecting locks them.
      await this.parts.planNext(scope, run.copyId);
      await holdRun(scope, run, clock());
      await succeedRun(scope, run, await readGaps({ ...scope, copyId: run.copyId }, clock()), clock());
    });
    await endTrouble(copyOf(context), run.copyId);
    this.parts.metrics?.syncRuns.inc({ kind: run.kind, outcome: "SUCCEEDED" });
    logger.info(totals(await readSteps(copyOf(context), run.runId)), "a sync run succeeded");
    return true;
  }

  /** @returns false where it paused before its end */
  async #step(context: RunContext, step: SyncStepRow): Promise<boolean> {
    const { run } = context;
    const { resource } = step;
    await setStepState(copyOf(context), run, resource, "RUNNING");
    try {
      const walk =
        resource === "DEAL_PARTICIPANTS" ? walkParticipants(context, step) : walkList(context, step, resource);
      let isDone = true;
      for await (const change of walk) {
        this.#count(resource, change);
        isDone = change.done;
      }
      if (!isDone) return false;
      await setStepState(copyOf(context), run, resource, "SUCCEEDED");
    } catch (error) {
      if (!MAY_FAIL.has(resource) || !isSubFetchFailure(error)) throw error;
      await this.#missing(context, resource, GAP_CODE_OF[error.code]);
    }
    return true;
  }

  async #missing(context: RunContext, resource: SyncResource, code: GapCode): Promise<void> {
    const { run, database, clock, logger } = context;
    logger.warn({ resource, code }, "a sub-fetch failed; the run goes on");
    await inRun(database, run, clock(), async (copy) => {
      const message = `The CRM's ${resource.toLowerCase()} could not be read; names may be missing or old. The next run asks again.`;
      await recordGaps(copy, resource, [{ code, message }], clock());
      await setStepState(copy, run, resource, "FAILED");
    });
  }

  async #ended(context: RunContext, error: unknown): Promise<void> {
    const { run, database, clock, logger } = context;
    if (stopBehind(error) || isGivenUp(error)) {
      const later = new Date(clock().getTime() + HELD_UP_MS);
      return database.tenant(run.tenantId).transaction((scope) => releaseRun(scope, run, later));
    }
    const failure = failureOf(error);
    if (!failure) return logger.info({ err: error }, "a sync run is no longer this worker's");
    if (failure.code === "INTERNAL") logger.error({ err: error }, "a sync run failed for a reason of our own");
    else logger.warn({ err: error, code: failure.code }, "a sync run failed");
    const { code, message } = failure;
    this.parts.metrics?.syncRuns.inc({ kind: run.kind, outcome: code });
    await database
      .tenant(run.tenantId)
      .transaction(async (scope) => {
        if (isTrouble(code)) await noteTrouble(scope, run.copyId, { code, message }, clock());
        await this.parts.planNext(scope, run.copyId);
        await failRun(scope, run, failure, clock());
      })
      .catch((lost: unknown) => {
        if (!(lost instanceof RunLostError)) throw lost;
      });
  }

  #count(resource: SyncResource, { written, unchanged, removed, rejected }: StepChange): void {
    for (const [outcome, count] of Object.entries({ written, unchanged, removed, rejected })) {
      this.parts.metrics?.syncRecords.inc({ resource, outcome }, count);
    }
  }

  #beat(run: ClaimedRun): void {
    extendLease(this.parts.database.tenant(run.tenantId), run, this.parts.clock()).catch((error: unknown) =>
      this.parts.logger.warn({ err: error, runId: run.runId }, "a lease could not be extended"),
    );
  }
}

function totals(
  steps: readonly SyncStepRow[],
): Record<"requests" | "fetched" | "written" | "removed" | "rejected", number> {
  const sum = (of: (step: SyncStepRow) => number) => steps.reduce((total, step) => total + of(step), 0);
  return {
    requests: sum(({ requests }) => requests),
    fetched: sum(({ fetched }) => fetched),
    written: sum(({ written }) => written),
    removed: sum(({ removed }) => removed),
    rejected: sum(({ rejected }) => rejected),
  };
}
