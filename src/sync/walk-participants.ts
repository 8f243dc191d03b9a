import type { CrmError } from "../crm/errors";
import type { SyncStepRow } from "../entities/sync-step";
import { commitPiece, type StepChange } from "./page-commit";
import { countDueDeals, dueDeals, type ReadParticipants, readParticipants, writeParticipants } from "./participants";
import { oneAhead } from "./read-ahead";
import { copyOf, type RunContext } from "./run-context";
import { setStepState } from "./run-store";

/** Asks for the participants of every deal that is due, a batch a commit, each deal once in a run. */
export async function* walkParticipants(context: RunContext, step: SyncStepRow): AsyncGenerator<StepChange> {
  const { run, database, clock } = context;
  const copy = copyOf(context);
  const expected = step.fetched + (await countDueDeals(copy, Number(step.cursor)));
  await setStepState(copy, run, "DEAL_PARTICIPANTS", "RUNNING", expected);
  for await (const read of oneAhead((left) => readBatches(context, step.cursor, left))) {
    yield await commitPiece(database, run, "DEAL_PARTICIPANTS", clock(), async (inner) => ({
      ...(await writeParticipants(inner, read, clock())),
      done: read.isLast,
    }));
  }
}

/** To the last deal that is due, or to where the run pauses. */
async function* readBatches(
  context: RunContext,
  checkpoint: string | null,
  left: AbortSignal,
): AsyncGenerator<ReadParticipants & { isLast: boolean }> {
  const { api, logger, concurrency, mustPause } = context;
  const copy = copyOf(context);
  let limited: CrmError | null = null;
  for (let dealIds = await dueDeals(copy, Number(checkpoint)); dealIds.length > 0; ) {
    const read: ReadParticipants = await readParticipants(api, dealIds, concurrency, left, limited);
    // Deals that were not asked for share the failure that kept them from it.
    for (const { dealId, error } of new Map(read.failures.map((failure) => [failure.error, failure])).values()) {
      if (error === limited) continue;
      logger.warn({ dealId, code: error.code, ...error.detail }, "a deal's participants could not be read");
    }
    limited = read.limited;
    dealIds = await dueDeals(copy, Math.max(...dealIds));
    yield { ...read, isLast: dealIds.length === 0 };
    if (mustPause()) return;
  }
}
