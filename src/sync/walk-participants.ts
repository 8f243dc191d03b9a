import type { SyncStepRow } from "../entities/sync-step";
import { commitPiece, type StepChange } from "./page-commit";
import { countDueDeals, dueDeals, readParticipants, writeParticipants } from "./participants";
import { type RunContext, scopeOf } from "./run-context";
import { setStepState } from "./run-store";

/** Asks for the participants of every deal that is due, a batch a commit, each deal once in a run. */
export async function* walkParticipants(context: RunContext, step: SyncStepRow): AsyncGenerator<StepChange> {
  const { api, run, door, clock, logger, concurrency } = context;
  const scope = scopeOf(context);
  const expected = step.fetched + (await countDueDeals(scope, run.copyId));
  await setStepState(scope, run, "DEAL_PARTICIPANTS", "RUNNING", expected);
  for (let cursor = step.cursor; ; ) {
    const dealIds = await dueDeals(scope, run.copyId, cursor);
    if (dealIds.length === 0) return;
    const read = await readParticipants(api, dealIds, concurrency);
    for (const { dealId, error } of read.failures) {
      logger.warn({ dealId, code: error.code, ...error.detail }, "a deal's participants could not be read");
    }
    const change = await commitPiece(door, run, "DEAL_PARTICIPANTS", clock(), (inner) =>
      writeParticipants(inner, run.copyId, read, clock()),
    );
    yield change;
    cursor = change.cursor;
  }
}
