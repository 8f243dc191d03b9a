import { Arg, Args, Ctx, FieldResolver, Float, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import { readGaps } from "../connections/completeness";
import type { SeenDeals, Visibility } from "../connections/visibility";
import { PROGRESS_CHANGED } from "../database/between-processes";
import type { CrmUserRow, PipelineRow } from "../entities/crm-company";
import {
  type GapSummary,
  SYNC_RESOURCES,
  type SyncKind,
  type SyncRunRow,
  type SyncStepRow,
} from "../entities/sync-run";
import { asMany, PageArgs, type RelayPage } from "../schema/base";
import { Connection, OwnerVisibility, PipelineVisibility, VisibilityReport } from "../schema/connection";
import { CrmUser, Pipeline } from "../schema/crm";
import type { Refusal } from "../schema/refusal";
import {
  DataGap,
  RequestSyncResult,
  type SyncError,
  SyncKindEnum,
  SyncRequested,
  SyncRun,
  SyncRunConnection,
  SyncStatus,
  SyncStep,
} from "../schema/sync";
import { NEWEST_RUN, progressOf, readLatestRun, readRuns, readRunsById } from "../sync/run-history";
import { shownConnection } from "./connection-resolver";
import type { EventContext, OperationContext } from "./context";
import { presentRefusal, relayPage } from "./inputs";
import { recordOf, recordsOf } from "./look-ups";

@Resolver(() => SyncRun)
export class SyncRunResolver {
  @Query(() => SyncRunConnection, {
    description: "The tenant's sync runs of the last 90 days, and the last that succeeded; newest first.",
  })
  syncRuns(
    @Args(() => PageArgs) args: PageArgs,
    @Ctx() { actor, scope }: OperationContext,
  ): Promise<RelayPage<SyncRunRow>> {
    const list = { name: "syncRuns", of: actor.tenantId, order: NEWEST_RUN };
    return relayPage(list, args, (page) => readRuns(scope, page));
  }

  @Mutation(() => RequestSyncResult, {
    description:
      "Syncs now. A first sync is FULL whatever is asked; RECONCILE, and a later FULL, read everything and find what is gone. FULL and RECONCILE are for owners and admins; a member has to wait a minute after the last run.",
  })
  async requestSync(
    @Arg("kind", () => SyncKindEnum, { nullable: true, defaultValue: "INCREMENTAL", description: "What to read." })
    kind: SyncKind | null,
    @Ctx() context: OperationContext,
  ): Promise<SyncRequested | Refusal> {
    const made = await context.services.schedule.request(context.actor, kind ?? "INCREMENTAL");
    if (!made.ok) return presentRefusal(made);
    context.renew();
    const [run] = await readRunsById(context.scope, [made.value]);
    if (!run) throw new Error(`run ${made.value} was made and is not there`);
    return Object.assign(new SyncRequested(), { run });
  }

  @Subscription(() => SyncRun, {
    description: "The last run, whether it is under way or has ended; then each next one: as it goes, and its end.",
    subscribe: ({ context }: { context: EventContext }) =>
      context.changes(PROGRESS_CHANGED, (reads) => reads.once("latest run", () => readLatestRun(reads.scope))),
  })
  syncProgressed(@Root() row: SyncRunRow): SyncRunRow {
    return row;
  }

  /** Noted when the first main list fails, while the others are still read. */
  @FieldResolver()
  error(@Root() { state, errorCode, errorMessage }: SyncRunRow): SyncError | null {
    return state === "FAILED" && errorCode ? { code: errorCode, message: errorMessage ?? "" } : null;
  }

  @FieldResolver(() => [SyncStep], { description: "In the order in which the run takes them." })
  async steps(@Root() { id }: SyncRunRow, @Ctx() { loaders }: EventContext): Promise<SyncStepRow[]> {
    const found = await loaders.steps.load(id);
    return SYNC_RESOURCES.flatMap((resource) => found.filter((step) => step.resource === resource));
  }

  @FieldResolver(() => Float, { description: "0 to 1, never falling within a run; 1 once it has succeeded." })
  async progress(@Root() run: SyncRunRow, @Ctx() { loaders }: EventContext): Promise<number> {
    return progressOf(run, await loaders.steps.load(run.id));
  }
}

@Resolver(() => SyncRequested)
export class SyncRequestedResolver {
  @FieldResolver(() => Connection, { description: "As it now stands, with the run as its sync's current one." })
  connection(@Ctx() context: OperationContext): Promise<Connection> {
    return shownConnection(context);
  }
}

@Resolver(() => SyncStatus)
export class SyncStatusResolver {
  /** Read only where they are asked for: every deal that nobody has asked about yet is counted. */
  @FieldResolver()
  async gaps(@Ctx() context: EventContext): Promise<GapSummary[]> {
    const copy = await context.copy();
    return copy ? context.once("gaps", () => readGaps(copy, context.services.clock())) : [];
  }
}

@Resolver(() => DataGap)
export class DataGapResolver {
  @FieldResolver()
  since(@Root() { since }: GapSummary): Date {
    return new Date(since);
  }

  @FieldResolver()
  expectedBy(@Root() { expectedBy }: GapSummary): Date | null {
    return expectedBy === null ? null : new Date(expectedBy);
  }
}

/** Rows are few in all but the oddest companies: what is left out is told by the numbers. */
const MOST_FIRST =
  "Most deals first; the first 500: where those are not all, their deals are fewer in sum than `VisibilityReport.deals`.";

@Resolver(() => VisibilityReport)
export class VisibilityResolver {
  @FieldResolver(() => [OwnerVisibility], { complexity: asMany(100), description: MOST_FIRST })
  byOwner(@Root() { byOwner }: Visibility): SeenDeals[] {
    return byOwner;
  }

  @FieldResolver(() => [PipelineVisibility], { description: MOST_FIRST })
  byPipeline(@Root() { byPipeline }: Visibility): SeenDeals[] {
    return byPipeline;
  }

  @FieldResolver(() => [CrmUser], {
    complexity: asMany(100),
    description:
      "Active users of the CRM of whom no deal, person or organization is seen: often a group that the authorizing user may not see. The first 500.",
  })
  unseenUsers(@Root() { unseenIds }: Visibility, @Ctx() { loaders }: EventContext): Promise<CrmUserRow[]> {
    return recordsOf(loaders.user, unseenIds);
  }
}

@Resolver(() => OwnerVisibility)
export class OwnerVisibilityResolver {
  @FieldResolver(() => CrmUser, { nullable: true, description: "null: deals whose owner is not known." })
  owner(@Root() { crmId }: SeenDeals, @Ctx() { loaders }: EventContext): Promise<CrmUserRow | null> {
    return recordOf(loaders.user, crmId);
  }
}

@Resolver(() => PipelineVisibility)
export class PipelineVisibilityResolver {
  @FieldResolver(() => Pipeline, { nullable: true, description: "null: deals of pipelines that could not be read." })
  pipeline(@Root() { crmId }: SeenDeals, @Ctx() { loaders }: EventContext): Promise<PipelineRow | null> {
    return recordOf(loaders.pipeline, crmId);
  }
}
