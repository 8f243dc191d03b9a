import pLimit from "p-limit";
import { GAP_CODE_OF } from "../connections/known-gaps";
import type { CrmApi } from "../crm/api";
import type { CrmError } from "../crm/errors";
import type { CopyScope } from "../database/database";
import { jsonRows } from "../database/upsert";
import type { SyncStepRow } from "../entities/sync-step";
import { commitPiece, copyOf, type RunContext, type StepChange } from "./commit";
import { isSubFetchFailure } from "./failures";
import { type FoundGap, recordGaps } from "./gaps";
import { setStepState } from "./runs";
import { oneAhead } from "./walk";

/** Deals asked for between two commits: a crash repeats at most this many requests. */
const BATCH = 200;

/** What the CRM said for each deal of a batch: who takes part, or why that could not be read. */
export interface ReadParticipants {
  deals: { dealId: number; personIds: number[] }[];
  failures: { dealId: number; error: CrmError }[];
  /** How many deals were asked for. */
  requests: number;
  /** The CRM's limit is used up: the deals behind were not asked for, and failed for the same reason. */
  limited: CrmError | null;
  lastDealId: number;
}

/** The next deals whose participants are to be asked for, by id. */
export async function dueDeals({ tenantId, copyId, rows }: CopyScope, after: number): Promise<number[]> {
  const due = await rows<{ crm_id: number }>(
    `SELECT crm_id FROM deal
     WHERE tenant_id = $1 AND copy_id = $2 AND participants_due AND crm_id > $3 ORDER BY crm_id LIMIT $4`,
    [tenantId, copyId, after, BATCH],
    { crm_id: "number" },
  );
  return due.map(({ crm_id }) => crm_id);
}

/** @param after those up to this one were asked for already in this run; some may be due again in the next */
export async function countDueDeals({ tenantId, copyId, rows }: CopyScope, after: number): Promise<number> {
  const [count] = await rows<{ n: number }>(
    `SELECT count(*)::int AS n FROM deal
     WHERE tenant_id = $1 AND copy_id = $2 AND participants_due AND crm_id > $3`,
    [tenantId, copyId, after],
    { n: "number" },
  );
  return count?.n ?? 0;
}

/**
 * One request for each deal (specification 4.2), at most `concurrency` in flight. A failure of one is a gap, and so is
 * each deal after the CRM's limit was met: asking on would be refused a deal at a time, and end in a block (wire fact 8.5).
 * @param left nobody waits for the answers any more: no further request begins
 * @param limited the limit was met before this batch
 */
export async function readParticipants(
  api: CrmApi,
  dealIds: readonly number[],
  concurrency: number,
  left: AbortSignal,
  limited: CrmError | null,
): Promise<ReadParticipants> {
  const limit = pLimit(concurrency);
  const read: ReadParticipants = { deals: [], failures: [], requests: 0, limited, lastDealId: Math.max(...dealIds) };
  const ask = async (dealId: number) => {
    try {
      left.throwIfAborted();
      if (read.limited) throw read.limited;
      read.requests += 1;
      read.deals.push({ dealId, personIds: await api.participantIds(dealId) });
    } catch (error) {
      if (!isSubFetchFailure(error)) {
        limit.clearQueue();
        throw error;
      }
      if (error.code === "RATE_LIMITED") read.limited ??= error;
      read.failures.push({ dealId, error });
    }
  };
  await Promise.all(dealIds.map((dealId) => limit(() => ask(dealId))));
  return read;
}

/** Stores a batch: what was read replaces what was known; where it could not be read the last known stays. */
export async function writeParticipants(
  copy: CopyScope,
  { deals, failures, requests }: ReadParticipants,
  now: Date,
): Promise<StepChange> {
  const { tenantId, copyId, rows } = copy;
  const present = jsonRows(deals);
  const ids = deals.map(({ dealId }) => dealId);
  const [gone] = await rows<{ removed: number }>(FORGET, [tenantId, copyId, present, ids], { removed: "number" });
  const added = await rows(ADD, [tenantId, copyId, present]);
  const gaps = failures.map(
    ({ dealId, error }): FoundGap => ({ crmId: dealId, code: GAP_CODE_OF[error.code], message: GAP_MESSAGE }),
  );
  await recordGaps(copy, "DEAL_PARTICIPANTS", gaps, now);
  const unread = failures.map(({ dealId }) => dealId);
  if (unread.length > 0)
    await rows(
      `UPDATE deal SET participants_known = false
       WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($3) AND participants_known`,
      [tenantId, copyId, unread],
    );
  return {
    requests,
    fetched: deals.length + failures.length,
    written: added.length,
    removed: gone?.removed ?? 0,
    unchanged: 0,
    rejected: 0,
  };
}

const GAP_MESSAGE =
  "The participants of some deals could not be read; what is shown may be older. The next run asks again.";

const PRESENT = `SELECT r."dealId" AS deal_id, r."personIds" AS person_ids
    FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, "personIds" bigint[])`;

/**
 * The ids stand for themselves ($4) too: joined, a new copy without statistics was read whole for every batch. No INSERT
 * stands among these: a cluster would carry the results of the parts over all its nodes, and fail while one is away.
 */
const FORGET = `
  WITH gone AS (
    DELETE FROM deal_participant x
    WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.deal_id = ANY ($4)
      AND NOT EXISTS (SELECT 1 FROM (${PRESENT}) p WHERE p.deal_id = x.deal_id AND x.person_id = ANY (p.person_ids))
    RETURNING 1
  ), known AS (
    UPDATE deal SET participants_due = false, participants_known = true
    WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = ANY ($4)
  ), mended AS (
    DELETE FROM data_gap
    WHERE tenant_id = $1 AND copy_id = $2 AND resource = 'DEAL_PARTICIPANTS' AND crm_id = ANY ($4)
  )
  SELECT count(*)::int AS removed FROM gone`;

const ADD = `
  INSERT INTO deal_participant (tenant_id, copy_id, deal_id, person_id)
  SELECT $1::bigint, $2::bigint, deal_id, unnest(person_ids) FROM (${PRESENT}) p
  ON CONFLICT DO NOTHING RETURNING 1`;

/** Asks for the participants of every deal that is due, a batch a commit, each deal once in a turn. */
export async function* askParticipants(
  context: RunContext,
  step: SyncStepRow,
): AsyncGenerator<StepChange & { isLast: boolean }> {
  const { run, clock } = context;
  const copy = copyOf(context);
  const expected = step.fetched + (await countDueDeals(copy, 0));
  await setStepState(copy, run, "DEAL_PARTICIPANTS", "RUNNING", { expected });
  for await (const read of oneAhead((left) => readBatches(context, left))) {
    const change = await commitPiece(context, "DEAL_PARTICIPANTS", (inner) => writeParticipants(inner, read, clock()));
    yield { ...change, isLast: read.isLast };
  }
}

/** To the last deal that is due, or to where the run pauses. */
async function* readBatches(
  context: RunContext,
  left: AbortSignal,
): AsyncGenerator<ReadParticipants & { isLast: boolean }> {
  const { apis, logger, concurrency, mustPause } = context;
  const copy = copyOf(context);
  let limited: CrmError | null = null;
  for (let dealIds = await dueDeals(copy, 0); dealIds.length > 0; ) {
    const read: ReadParticipants = await readParticipants(apis.participants, dealIds, concurrency, left, limited);
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
