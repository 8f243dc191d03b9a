import { connectedCopyId, holdLiveCopy } from "../connections/connection-store";
import { NeedsReauthorizationError } from "../connections/errors";
import { NEEDS_REAUTHORIZATION } from "../connections/refusals";
import type { CopyScope, Database, TenantScope } from "../database/database";
import { notify, PROGRESS_CHANGED } from "../database/notifications";
import { jsonRows } from "../database/upsert";
import type { SyncResource } from "../entities/sync-run";
import { DAY_MS } from "../platform/clock";
import { RunLostError } from "./failures";
import { mendWholeResource } from "./gaps";
import type { ReadPage } from "./lists";
import { type ClaimedRun, extendLease } from "./run-store";

/** What a commit adds to its step. */
export interface StepChange {
  cursor: string | null;
  requests: number;
  fetched: number;
  written: number;
  unchanged: number;
  removed: number;
  rejected: number;
  /** Nothing more is to come: the step has succeeded. */
  done: boolean;
  /** Which walk of the list comes next, where that changes. */
  walk?: number;
}

/**
 * A transaction of a run (decision 0002): the copy must still be live and the run still ours, or nothing is written.
 * @throws RunLostError, NeedsReauthorizationError
 */
export function inRun<T>(
  database: Database,
  run: ClaimedRun,
  now: Date,
  work: (copy: CopyScope) => Promise<T>,
): Promise<T> {
  return database.tenant(run.tenantId).transaction(async (scope) => {
    await holdRun(scope, run, now);
    const done = await work({ ...scope, copyId: run.copyId });
    await notify(scope, PROGRESS_CHANGED);
    return done;
  });
}

/**
 * Until the transaction ends, the copy stays live, its authorization holds and the run is ours.
 * @throws RunLostError or NeedsReauthorizationError where it is not so
 */
export async function holdRun(scope: TenantScope, run: ClaimedRun, now: Date): Promise<void> {
  // Disconnecting retires the copy: it waits for the page in hand at most, and no later page is written.
  if (!(await holdLiveCopy(scope, run.copyId))) throw new RunLostError("the copy is no longer live");
  // Whoever ends an authorization waits for the copy as well. A statement of its own, after that lock, sees what they did.
  if ((await connectedCopyId(scope)) !== run.copyId) {
    throw new NeedsReauthorizationError(NEEDS_REAUTHORIZATION.message);
  }
  await extendLease(scope, run, now);
}

/** Commits one piece of a step: its rows and its checkpoint together. @throws RunLostError */
export function commitPiece(
  database: Database,
  run: ClaimedRun,
  resource: SyncResource,
  now: Date,
  write: (copy: CopyScope) => Promise<StepChange>,
): Promise<StepChange> {
  return inRun(database, run, now, async (copy) => {
    const change = await write(copy);
    await checkpoint(copy, run, resource, change);
    return change;
  });
}

/** Writes a page of a list with the records of it that could not be read. */
export async function writeList(
  copy: CopyScope,
  { kind, updatedSince }: ClaimedRun,
  resource: SyncResource,
  page: ReadPage,
  now: Date,
): Promise<StepChange> {
  const { tenantId, copyId, rows } = copy;
  const { written, removed } = await page.write(copy);
  await rows(
    `WITH mended AS (
       DELETE FROM rejected_record x
       WHERE x.tenant_id = $1 AND x.copy_id = $2 AND x.resource = $3 AND x.record_key = ANY ($4::text[])
     )
     INSERT INTO rejected_record AS x (tenant_id, copy_id, resource, record_key, reason, payload, since, seen_at)
     SELECT $1, $2, $3, r.key, r.reason, coalesce(r.payload, 'null'), $6, $6
     FROM jsonb_to_recordset($5::jsonb) AS r (key text, reason text, payload jsonb)
     ON CONFLICT (tenant_id, copy_id, resource, record_key)
     DO UPDATE SET reason = EXCLUDED.reason, payload = EXCLUDED.payload, seen_at = EXCLUDED.seen_at`,
    [tenantId, copyId, resource, page.ids, jsonRows(lastOfEachKey(page)), now],
  );
  const { fetched, rejected, next } = page;
  const done = next === null;
  if (done) await mendWholeResource(copy, resource, kind);
  if (done && updatedSince === null) await forgetRejected(copy, resource, now);
  const unchanged = fetched - rejected.length - written - removed;
  return { cursor: next, requests: 1, fetched, written, removed, unchanged, rejected: rejected.length, done };
}

/** Longer than a run takes, with those that it went on from. */
const SHOWN_WITHIN_MS = 3 * DAY_MS;

/** The whole list was read: what could not be read before, and was not shown for long, is gone from the CRM. */
async function forgetRejected({ tenantId, copyId, rows }: CopyScope, resource: SyncResource, now: Date): Promise<void> {
  const before = new Date(now.getTime() - SHOWN_WITHIN_MS);
  await rows("DELETE FROM rejected_record WHERE tenant_id = $1 AND copy_id = $2 AND resource = $3 AND seen_at < $4", [
    tenantId,
    copyId,
    resource,
    before,
  ]);
}

function lastOfEachKey({ rejected }: ReadPage): ReadPage["rejected"] {
  return [...new Map(rejected.map((record) => [record.key, record])).values()];
}

async function checkpoint(
  { tenantId, rows }: TenantScope,
  { runId }: ClaimedRun,
  resource: SyncResource,
  change: StepChange,
): Promise<void> {
  const { cursor, requests, fetched, written, unchanged, removed, rejected, done, walk = null } = change;
  await rows(
    `UPDATE sync_step SET cursor = $4, requests = requests + $5, fetched = fetched + $6, written = written + $7,
       unchanged = unchanged + $8, removed = removed + $9, rejected = rejected + $10,
       state = CASE WHEN $11 THEN 'SUCCEEDED' ELSE state END, walk = coalesce($12, walk)
     WHERE tenant_id = $1 AND run_id = $2 AND resource = $3`,
    [tenantId, runId, resource, cursor, requests, fetched, written, unchanged, removed, rejected, done, walk],
  );
}
