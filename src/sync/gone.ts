import { Any } from "typeorm";
import { MAX_IDS } from "../crm/api";
import type { CopyScope } from "../database/database";
import { AbsentRecordRow, MissedRecordRow } from "../entities/sync-list";
import { HOUR_MS, MINUTE_MS, msApart } from "../platform/clock";
import { count, type HeldCopy, type InHand, inRun, judged, type RunContext } from "./commit";
import { LISTS, type ListResource } from "./lists";
import { endPass, type ListState, leavePass, movePass, type Pass } from "./passes";
import { SECOND_LOOK_MS } from "./plan";
import { NO_CHANGE } from "./runs";
import { askForActivities, removeRecords } from "./writers";

// What the CRM no longer shows of whole lists: two walks prove it. Of single records two looks do (`probes.ts`).

/** Two walks that are both to show that much is gone stand at least so far apart. */
const WALKS_APART_MS = 10 * MINUTE_MS;
/** A second look that fails rests for as long as that has gone on, and at last for this. */
const LONGEST_REST_MS = 4 * HOUR_MS;
/** Rows removed, and noted, in one transaction. */
const [REMOVED_AT_ONCE, NOTED_AT_ONCE] = [1_000, 5_000];
/** A walk that shows so many fewer records, and less than half, may be a glitch (decision 0013). */
const MANY = 100;

export interface Absence {
  /** What the walks have not seen. */
  absent: number;
  /** What the copy holds. */
  held: number;
}

/** So much less than is held is more likely a glitch, or another user's view, than a day's deletions: it has to be proven. */
export function isMuch({ absent, held }: Absence): boolean {
  return absent > 0 && (absent >= held || (absent > MANY && absent > held / 2));
}

/** Where a walk shows that much is gone, the next one is to be of another moment. */
export function mustWait({ walk, cursor, firstWalkEndedAt }: Pass, now: Date): boolean {
  if (walk !== 2 || cursor !== null || firstWalkEndedAt === null) return false;
  // A clock that was far ahead then must not keep the second walk from ever beginning.
  return msApart(firstWalkEndedAt, now) < WALKS_APART_MS;
}

/**
 * The first walk begins: every record of the copy counts as not seen, and what an earlier run left is forgotten. In parts, of
 * which a list may have hundreds: until the first page is committed the pass has not begun, and whoever goes on does all again,
 * so that a turn's end does not cut it off. @returns false where the process is to stop: then nothing may be walked
 */
export async function beginAbsence(context: Beginning, resource: ListResource): Promise<boolean> {
  while (!context.isStopped() && (await inRun(context, (copy) => takeAbsent(copy, resource))).length > 0);
  for (let last: number | null = 0; last !== null && !context.isStopped(); ) {
    const after: number = last;
    last = await inRun(context, (copy) => noteAbsent(copy, resource, after));
  }
  return !context.isStopped();
}
type Beginning = InHand & Pick<RunContext, "isStopped">;

/** @returns the last that was noted; null at the end */
async function noteAbsent(copy: CopyScope, resource: ListResource, after: number): Promise<number | null> {
  const { tenantId, copyId, rows } = copy;
  const part = `FROM ${tableOf(copy, resource)} t WHERE t.tenant_id = $1 AND t.copy_id = $2`;
  const [end] = await rows<{ id: number }>(
    `SELECT t.crm_id AS id ${part} AND t.crm_id > $3 ORDER BY t.crm_id OFFSET ${NOTED_AT_ONCE - 1} LIMIT 1`,
    [tenantId, copyId, after],
    { id: "number" },
  );
  await rows(
    `INSERT INTO absent_record (tenant_id, copy_id, resource, crm_id)
     SELECT t.tenant_id, t.copy_id, $3, t.crm_id ${part} AND t.crm_id > $4 AND t.crm_id <= $5 ON CONFLICT DO NOTHING`,
    [tenantId, copyId, resource, after, end?.id ?? Number.MAX_SAFE_INTEGER],
  );
  return end?.id ?? null;
}

/** A page shows these, whether or not they could be read. */
export async function seen(
  { tenantId, copyId, typed }: CopyScope,
  resource: ListResource,
  ids: readonly number[],
): Promise<void> {
  await typed((orm) => orm.delete(AbsentRecordRow, { tenantId, copyId, resource, crmId: Any(ids) }));
}

export async function countAbsence(copy: CopyScope, resource: ListResource): Promise<Absence> {
  const { tenantId, copyId, rows } = copy;
  const [count] = await rows<Absence>(
    `SELECT (SELECT count(*)::int FROM absent_record a
             WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.resource = $3) AS absent,
            (SELECT count(*)::int FROM ${tableOf(copy, resource)} t WHERE t.tenant_id = $1 AND t.copy_id = $2) AS held`,
    [tenantId, copyId, resource],
    { absent: "number", held: "number" },
  );
  return count ?? { absent: 0, held: 0 };
}

/**
 * A batch of what two walks have not seen, for the caller to remove. Up to the last of them: of a table that was empty a moment
 * ago PostgreSQL expects one, and a list of them was looked up anew for each row. @returns none at the end
 */
export async function takeAbsent({ tenantId, copyId, rows }: CopyScope, resource: ListResource): Promise<number[]> {
  const batch = await rows<{ crm_id: number }>(
    `DELETE FROM absent_record a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.resource = $3 AND a.crm_id <= (
       SELECT max(b.crm_id) FROM (SELECT c.crm_id FROM absent_record c
       WHERE c.tenant_id = $1 AND c.copy_id = $2 AND c.resource = $3 ORDER BY c.crm_id LIMIT ${REMOVED_AT_ONCE}) b)
     RETURNING a.crm_id`,
    [tenantId, copyId, resource],
    { crm_id: "number" },
  );
  return batch.map(({ crm_id }) => crm_id);
}

const tableOf = ({ metadata }: CopyScope, resource: ListResource) => metadata(LISTS[resource].entity).tableName;

/** The end of a removing pass: what neither walk has shown goes. */
export async function removeUnseen(
  context: RunContext,
  resource: ListResource,
  state: ListState,
  pass: Pass,
): Promise<"ENDED" | "PAUSED"> {
  const { run, clock, verify, logger } = context;
  const absence = await countAbsence(context.copy, resource);
  // As the second walk has noted it: what is left to a later turn may be little.
  const isMuchGone = pass.firstWalkEndedAt !== null;
  if (isMuchGone) {
    logger.warn({ resource, ...absence }, "two walks did not show much of what is held");
    // Who sees so much less may be deactivated, or somebody else, by now.
    await verify();
  }
  for (;;) {
    const { gone, list } = await inRun(context, async (copy) => {
      const removed = await removeBatch(context, copy, resource);
      const gone = { ...NO_CHANGE, removed };
      if (removed === 0) return { gone, list: await endPass(copy, run, state, pass, gone, clock(), isMuchGone) };
      await movePass(copy, run, pass, gone);
      return { gone, list: null };
    });
    count(context, resource, gone);
    if (gone.removed === 0) {
      leavePass(state, pass, list);
      return "ENDED";
    }
    if (context.mustPause()) return "PAUSED";
  }
}

/** @returns how many were removed; 0 at the end */
async function removeBatch(context: RunContext, copy: HeldCopy, resource: ListResource): Promise<number> {
  const gone = await takeAbsent(copy, resource);
  await judged(context, copy, resource, gone, async () => {
    await removeRecords(copy, LISTS[resource].entity, gone, context.clock());
    if (context.run.kind === "INCREMENTAL") await askForActivities(copy, LISTS[resource].entity, gone);
    return { touched: [], left: [], gone };
  });
  return gone.length;
}

/** Of single records: a look has left these out. The first time counts, unless a clock far ahead has noted that. */
export async function noteMissed(
  { tenantId, copyId, rows }: CopyScope,
  resource: ListResource,
  ids: readonly number[],
  now: Date,
): Promise<void> {
  if (ids.length === 0) return;
  await rows(
    `INSERT INTO missed_record AS x (tenant_id, copy_id, resource, crm_id, missed_at)
     SELECT $1, $2, $3, unnest($4::bigint[]), $5::timestamptz
     ON CONFLICT (tenant_id, copy_id, resource, crm_id) DO UPDATE SET missed_at = EXCLUDED.missed_at
     WHERE (x.missed_at <= EXCLUDED.missed_at) IS NOT TRUE`,
    [tenantId, copyId, resource, ids, now],
  );
}

export async function forgetMissed(
  { tenantId, copyId, typed }: CopyScope,
  resource: ListResource,
  ids: readonly number[],
): Promise<void> {
  if (ids.length === 0) return;
  await typed((orm) => orm.delete(MissedRecordRow, { tenantId, copyId, resource, crmId: Any(ids) }));
}

/**
 * What was missed so long ago that another look proves it.
 * @param among of these only; null: of all that do not rest because that look has failed, with what was never asked for so
 */
export async function missedBefore(
  { tenantId, copyId, rows }: CopyScope,
  resource: ListResource,
  now: Date,
  among: readonly number[] | null,
): Promise<number[]> {
  const found = await rows<{ id: number }>(
    `SELECT crm_id AS id FROM missed_record
     WHERE tenant_id = $1 AND copy_id = $2 AND resource = $3
       AND (missed_at <= $4::timestamptz - interval '${SECOND_LOOK_MS} ms') IS NOT FALSE
       AND CASE WHEN $5::bigint[] IS NOT NULL THEN missed_at IS NOT NULL AND crm_id = ANY ($5)
         ELSE (failed_at BETWEEN $4 - least(failed_at - missed_at, interval '${LONGEST_REST_MS} ms') AND $4) IS NOT TRUE END
     ORDER BY crm_id LIMIT ${MAX_IDS}`,
    [tenantId, copyId, resource, now, among],
    { id: "number" },
  );
  return found.map(({ id }) => id);
}

/** Of records that were looked at again those are left whose look has failed; but not what was left out for the first time. */
export async function noteFailedLooks(
  { tenantId, copyId, rows }: CopyScope,
  resource: ListResource,
  ids: readonly number[],
  failedAt: Date,
): Promise<void> {
  await rows(
    `UPDATE missed_record SET failed_at = $5 WHERE tenant_id = $1 AND copy_id = $2 AND resource = $3 AND crm_id = ANY ($4)
       AND (missed_at <= $5::timestamptz - interval '${SECOND_LOOK_MS} ms') IS NOT FALSE`,
    [tenantId, copyId, resource, ids, failedAt],
  );
}
