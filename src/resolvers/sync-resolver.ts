import { Arg, Ctx, FieldResolver, Float, Int, Query, Resolver, Root } from "type-graphql";
import { SYNC_RESOURCES, type SyncRunRow } from "../entities/sync-run";
import { SyncRun, SyncRunConnection, SyncStep } from "../schema/sync";
import { progressOf } from "../sync/progress";
import { type RunCursor, readRuns } from "../sync/run-history";
import type { OperationContext } from "./context";
import { badInput, pageSize } from "./errors";
import { presentRun, presentStep } from "./present";

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
