import type { CopyScope, Database } from "../database/database";
import { jsonRows } from "../database/upsert";
import type { DealChangeRow } from "../entities/deal";
import { DAY_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import { forEachLogged } from "../platform/work";

/**
 * The journal of a copy's deals (decision 0083): what syncs saw change, and flips of verdicts. Whoever changes a deal writes
 * it in the same transaction, by what the statement that wrote the row said of it before and after.
 */

/** A change of a deal. @property seenAt where it is not now */
export type DealChange = Pick<DealChangeRow, "dealId" | "kind" | "was" | "became"> & { seenAt?: Date };

/** Long enough for "since last year". */
const KEPT_MS = 400 * DAY_MS;
/** Entries deleted of a tenant in one sweep: little work at a time, often. */
const BATCH = 1_000;
const TENANTS_A_SWEEP = 100;

/** Within the transaction that makes the changes, which holds the copy. */
export async function writeChanges(
  { tenantId, copyId, rows }: CopyScope,
  changes: readonly DealChange[],
  now: Date,
): Promise<void> {
  if (changes.length > 0) await rows(WRITE, [tenantId, copyId, jsonRows(changes), now]);
}

const WRITE = `
  INSERT INTO deal_change (tenant_id, copy_id, deal_id, seen_at, kind, was, became)
  SELECT $1::bigint, $2::bigint, r."dealId", coalesce(r."seenAt", $4::timestamptz), r.kind, r.was, r.became
  FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, "seenAt" timestamptz, kind text, was text, became text)
  RETURNING 1 AS written`;

/** Deletes entries that are older than they are kept, a batch a tenant and sweep. */
export async function sweepChanges(database: Database, logger: Logger, now: Date): Promise<void> {
  const before = new Date(now.getTime() - KEPT_MS);
  const old = await database.acrossTenants<{ tenantId: number }>(
    `SELECT DISTINCT tenant_id AS "tenantId" FROM (
       SELECT tenant_id FROM deal_change WHERE seen_at < $1 ORDER BY seen_at LIMIT ${BATCH}) old LIMIT ${TENANTS_A_SWEEP}`,
    [before],
    { tenantId: "number" },
  );
  const forget = ({ tenantId }: { tenantId: number }) =>
    database.tenant(tenantId).rows(
      `DELETE FROM deal_change WHERE tenant_id = $1 AND ctid = ANY (ARRAY (
         SELECT ctid FROM deal_change WHERE tenant_id = $1 AND seen_at < $2 ORDER BY seen_at LIMIT ${BATCH}))`,
      [tenantId, before],
    );
  await forEachLogged(old, forget, logger);
}
