import type { TenantScope } from "../database/database";

/**
 * A row says: a renewal was begun with the credential of this version, and its outcome is not known. It is committed
 * before the request is sent, so that it survives whatever happens to this process in between.
 */
export async function beginAttempt(
  { tenantId, rows }: TenantScope,
  copyId: number,
  version: number,
  now: Date,
): Promise<{ wasUnconfirmed: boolean }> {
  const [attempt] = await rows<{ was_unconfirmed: boolean }>(
    `WITH before AS MATERIALIZED (
       SELECT version FROM renewal_attempt WHERE tenant_id = $1 AND copy_id = $2
     ), begun AS (
       INSERT INTO renewal_attempt (tenant_id, copy_id, version, started_at) VALUES ($1, $2, $3, $4)
       ON CONFLICT (tenant_id, copy_id) DO UPDATE SET version = EXCLUDED.version, started_at = EXCLUDED.started_at
     )
     SELECT EXISTS (SELECT 1 FROM before WHERE version = $3) AS was_unconfirmed`,
    [tenantId, copyId, version, now],
  );
  return { wasUnconfirmed: attempt?.was_unconfirmed ?? false };
}

/** The outcome with the credential of this version is known; an attempt with a newer one is another's. */
export async function endAttempt({ tenantId, rows }: TenantScope, copyId: number, version: number): Promise<void> {
  const sql = "DELETE FROM renewal_attempt WHERE tenant_id = $1 AND copy_id = $2 AND version = $3";
  await rows(sql, [tenantId, copyId, version]);
}
