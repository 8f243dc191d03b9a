import { Any } from "typeorm";
import type { CopyScope } from "../database/database";
import { AbsentRecordRow } from "../entities/sync-list";
import type { SyncResource } from "../entities/sync-run";
import { copyOf, count, type HeldCopy, inRun, judged, type RunContext } from "./commit";
import { LISTS, type ListResource } from "./lists";
import { endPass, type ListState, leavePass, movePass, type Pass } from "./passes";
import { type Absence, isMuch } from "./plan";
import { NO_CHANGE } from "./runs";
import { removeRecords } from "./writers";

/** Rows removed in one transaction. */
const BATCH = 1_000;

/**
 * Whether a record that is gone is removed from a list. Not from the users: whether the CRM lists deactivated ones is not
 * known, and their names belong to what they did.
 */
export const isRemovable = (resource: SyncResource): boolean =>
  resource !== "USERS" && resource !== "DEAL_PARTICIPANTS";

/** The first walk begins: every record of the copy counts as not seen, and what an earlier run left is forgotten. */
export async function beginAbsence(copy: CopyScope, resource: ListResource): Promise<void> {
  await forgetAbsence(copy, resource);
  const { tenantId, copyId, rows } = copy;
  await rows(
    `INSERT INTO absent_record (tenant_id, copy_id, resource, crm_id)
     SELECT t.tenant_id, t.copy_id, $3, t.crm_id FROM ${tableOf(copy, resource)} t WHERE t.tenant_id = $1 AND t.copy_id = $2
     ON CONFLICT DO NOTHING`,
    [tenantId, copyId, resource],
  );
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

/** A batch of what two walks have not seen, for the caller to remove. @returns none at the end */
async function takeAbsent({ tenantId, copyId, rows }: CopyScope, resource: ListResource): Promise<readonly number[]> {
  const batch = await rows<{ crm_id: number }>(
    `DELETE FROM absent_record a WHERE a.tenant_id = $1 AND a.copy_id = $2 AND a.resource = $3 AND a.crm_id IN (
       SELECT b.crm_id FROM absent_record b
       WHERE b.tenant_id = $1 AND b.copy_id = $2 AND b.resource = $3 ORDER BY b.crm_id LIMIT ${BATCH})
     RETURNING a.crm_id`,
    [tenantId, copyId, resource],
    { crm_id: "number" },
  );
  return batch.map(({ crm_id }) => crm_id);
}

async function forgetAbsence({ tenantId, copyId, typed }: CopyScope, resource: ListResource): Promise<void> {
  await typed((orm) => orm.delete(AbsentRecordRow, { tenantId, copyId, resource }));
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
  const absence = await countAbsence(copyOf(context), resource);
  if (isMuch(absence)) {
    logger.warn({ resource, ...absence }, "two walks did not show much of what is held");
    // Who sees so much less may be deactivated, or somebody else, by now.
    await verify();
  }
  for (;;) {
    const { gone, list } = await inRun(context, async (copy) => {
      const removed = await removeBatch(context, copy, resource);
      const gone = { ...NO_CHANGE, removed };
      if (removed === 0) return { gone, list: await endPass(copy, run, state, pass, gone, clock()) };
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
    await removeRecords(copy, LISTS[resource].entity, gone);
    return { ids: [], gone };
  });
  return gone.length;
}
