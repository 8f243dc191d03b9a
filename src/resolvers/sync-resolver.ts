import { Arg, Args, Ctx, FieldResolver, Float, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import { PROGRESS_CHANGED } from "../database/notifications";
import { type SyncKind as Kind, SYNC_RESOURCES, type SyncRunRow } from "../entities/sync-run";
import { PageArgs, type RelayPage } from "../schema/page";
import type { Refusal } from "../schema/refusal";
import { RequestSyncResult, SyncKind, SyncRequested, SyncRun, SyncRunConnection, SyncStep } from "../schema/sync";
import { NEWEST_RUN, progressOf, readLatestRun, readRuns, readRunsById } from "../sync/run-history";
import type { EventContext, OperationContext } from "./context";
import { relayPage } from "./pages";
import { presentRefusal, presentRun, presentStep } from "./present";

@Resolver(() => SyncRun)
export class SyncRunResolver {
  @Query(() => SyncRunConnection, { description: "The tenant's sync runs, newest first." })
  syncRuns(
    @Args(() => PageArgs) args: PageArgs,
    @Ctx() { actor, scope }: OperationContext,
  ): Promise<RelayPage<SyncRun>> {
    const list = { name: "syncRuns", of: actor.tenantId, order: NEWEST_RUN };
    return relayPage(list, args, (page) => readRuns(scope, page), presentRun);
  }

  @Mutation(() => RequestSyncResult, {
    description:
      "Syncs now. A first sync is FULL whatever is asked; RECONCILE reads everything to find what is gone. FULL and RECONCILE are for owners and admins; a member has to wait a minute after the last run.",
  })
  async requestSync(
    @Arg("kind", () => SyncKind, { nullable: true, defaultValue: "INCREMENTAL" }) kind: Kind | null,
    @Ctx() { actor, services, scope }: OperationContext,
  ): Promise<SyncRequested | Refusal> {
    const made = await services.schedule.request(actor, kind ?? "INCREMENTAL");
    if (!made.ok) return presentRefusal(made);
    const [run] = await readRunsById(scope, [made.value]);
    if (!run) throw new Error(`run ${made.value} was made and is not there`);
    return Object.assign(new SyncRequested(), { run: presentRun(run) });
  }

  @Subscription(() => SyncRun, {
    description: "The running or next run, as it goes, and its end.",
    subscribe: ({ context }: { context: EventContext }) =>
      context.changes(PROGRESS_CHANGED, (reads) => reads.once("latest run", () => readLatestRun(reads.scope))),
  })
  syncProgressed(@Root() row: SyncRunRow): SyncRun {
    return presentRun(row);
  }

  @FieldResolver(() => [SyncStep], { description: "In the order in which the run takes them." })
  async steps(@Root() { runId }: SyncRun, @Ctx() { loaders }: EventContext): Promise<SyncStep[]> {
    const found = await loaders.steps.load(runId);
    return SYNC_RESOURCES.flatMap((resource) => found.filter((step) => step.resource === resource)).map(presentStep);
  }

  @FieldResolver(() => Float, { description: "0 to 1, never falling within a run." })
  async progress(@Root() { runId }: SyncRun, @Ctx() { loaders }: EventContext): Promise<number> {
    return progressOf(await loaders.steps.load(runId));
  }
}
