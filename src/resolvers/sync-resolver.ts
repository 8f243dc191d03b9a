import { Arg, Ctx, FieldResolver, Float, Int, Mutation, Query, Resolver, Root, Subscription } from "type-graphql";
import { PROGRESS_CHANGED } from "../database/notifications";
import { type SyncKind as Kind, SYNC_RESOURCES, type SyncRunRow } from "../entities/sync-run";
import { LatestValues, Wakeups } from "../platform/wakeups";
import type { Refusal } from "../schema/refusal";
import { RequestSyncResult, SyncKind, SyncRequested, SyncRun, SyncRunConnection, SyncStep } from "../schema/sync";
import { progressOf } from "../sync/progress";
import { type RunCursor, readRuns, readRunsById } from "../sync/run-history";
import type { OperationContext } from "./context";
import { badInput, pageSize } from "./errors";
import { presentRefusal, presentRun, presentStep } from "./present";

const encodeCursor = ({ queuedAt, id }: SyncRunRow) =>
  Buffer.from(`${queuedAt.toISOString()} ${id}`).toString("base64url");

function decodeCursor(cursor: string): RunCursor {
  const [at = "", id = ""] = Buffer.from(cursor, "base64url").toString().split(" ");
  const queuedAt = new Date(at);
  if (Number.isNaN(queuedAt.getTime()) || !/^[0-9a-f-]{36}$/.test(id))
    throw badInput("after is not a cursor of this list.");
  return { queuedAt, id };
}

@Resolver(() => SyncRun)
export class SyncRunResolver {
  @Query(() => SyncRunConnection, { description: "The tenant's sync runs, newest first." })
  async syncRuns(
    @Arg("first", () => Int, { nullable: true, defaultValue: 20 }) first: number | null,
    @Arg("after", () => String, { nullable: true }) after: string | undefined,
    @Ctx() { scope }: OperationContext,
  ): Promise<SyncRunConnection> {
    const size = pageSize(first);
    const found = await readRuns(scope, size + 1, after ? decodeCursor(after) : null);
    const edges = found.slice(0, size).map((row) => ({ cursor: encodeCursor(row), node: presentRun(row) }));
    return {
      edges,
      nodes: edges.map(({ node }) => node),
      pageInfo: { hasNextPage: found.length > size, endCursor: edges.at(-1)?.cursor ?? null },
    };
  }

  @Mutation(() => RequestSyncResult, {
    description: "Syncs now. A first sync is FULL whatever is asked; RECONCILE reads everything to find what is gone.",
  })
  async requestSync(
    @Arg("kind", () => SyncKind, { nullable: true, defaultValue: "INCREMENTAL" }) kind: Kind | null,
    @Ctx() { actor, services, scope }: OperationContext,
  ): Promise<SyncRequested | Refusal> {
    const made = await services.schedule.request(actor.tenantId, kind ?? "INCREMENTAL");
    if (!made.ok) return presentRefusal(made);
    const [run] = await readRunsById(scope, [made.value]);
    if (!run) throw new Error(`run ${made.value} was made and is not there`);
    return Object.assign(new SyncRequested(), { run: presentRun(run) });
  }

  @Subscription(() => SyncRun, {
    description: "The running or next run, as it goes, and its end.",
    subscribe: ({ context }: { context: OperationContext }) => {
      const { actor, services } = context;
      const wakeups = new Wakeups((wake) => services.notifications.subscribe(PROGRESS_CHANGED, actor.tenantId, wake));
      return new LatestValues(wakeups, () => latestRun(context));
    },
  })
  syncProgressed(@Root() row: SyncRunRow): SyncRun {
    return presentRun(row);
  }

  @FieldResolver(() => [SyncStep], { description: "In the order in which the run takes them." })
  async steps(@Root() { runId }: SyncRun, @Ctx() { loaders }: OperationContext): Promise<SyncStep[]> {
    const found = await loaders.steps.load(runId);
    return SYNC_RESOURCES.flatMap((resource) => found.filter((step) => step.resource === resource)).map(presentStep);
  }

  @FieldResolver(() => Float, { description: "0 to 1, never falling within a run." })
  async progress(@Root() { runId }: SyncRun, @Ctx() { loaders }: OperationContext): Promise<number> {
    return progressOf(await loaders.steps.load(runId));
  }
}

/** The newest run of the tenant: the open one, else the one that ended last; null before the first. */
async function latestRun(context: OperationContext): Promise<SyncRunRow | null> {
  context.renew();
  const [run] = await readRuns(context.scope, 1, null);
  return run ?? null;
}
