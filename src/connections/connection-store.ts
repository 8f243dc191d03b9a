import type { CrmCurrentUser } from "../crm/parsing/records";
import { rows } from "../database/rows";
import type { TenantScope } from "../database/tenant-door";
import { ConnectionRow, type ConnectionState } from "../entities/connection";
import type { Present } from "./admission";

/** The tenant's connection, or null before anyone connected. */
export function readConnection({ tenantId, manager }: TenantScope): Promise<ConnectionRow | null> {
  return manager.findOneBy(ConnectionRow, { tenantId });
}

/** The copy that the tenant's readers see: that of its live connection and no other. null: none. */
export async function liveCopyId(scope: TenantScope): Promise<number | null> {
  const connection = await readConnection(scope);
  return connection?.copyId ?? null;
}

/** Locks the tenant's connection row, made where it is missing: who changes a connection holds it. */
export async function lockConnection(
  { tenantId, manager }: TenantScope,
  now: Date,
): Promise<Present & { copyId: number | null }> {
  await rows(
    manager,
    `INSERT INTO connection (tenant_id, state, state_changed_at) VALUES ($1, 'NOT_CONNECTED', $2)
     ON CONFLICT (tenant_id) DO NOTHING`,
    [tenantId, now],
  );
  const [row] = await rows<{
    state: ConnectionState;
    copy_id: number | null;
    company_id: number | null;
    user_id: number | null;
  }>(
    manager,
    `SELECT c.state, c.copy_id, s.crm_company_id AS company_id, s.crm_user_id AS user_id
     FROM connection c LEFT JOIN synced_copy s ON s.tenant_id = c.tenant_id AND s.id = c.copy_id
     WHERE c.tenant_id = $1 FOR UPDATE OF c`,
    [tenantId],
  );
  if (!row) throw new Error("a connection row that was just made is missing");
  const { state, copy_id: copyId, company_id: companyId, user_id: userId } = row;
  return { state, copyId, bound: companyId !== null && userId !== null ? { companyId, userId } : null };
}

/** A new live copy of what `user` sees; the tenant's earlier one is retired with it. */
export async function createCopy({ tenantId, manager }: TenantScope, user: CrmCurrentUser, now: Date): Promise<number> {
  await rows(manager, "UPDATE synced_copy SET state = 'RETIRED' WHERE tenant_id = $1 AND state = 'LIVE'", [tenantId]);
  const [copy] = await rows<{ id: number }>(
    manager,
    `INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at)
     VALUES ($1, $2, $3, 'LIVE', $4) RETURNING id`,
    [tenantId, user.companyId, user.id, now],
  );
  if (!copy) throw new Error("a copy that was just made is missing");
  return copy.id;
}

export async function markConnected(
  { tenantId, manager }: TenantScope,
  copyId: number,
  user: CrmCurrentUser,
  now: Date,
): Promise<void> {
  await manager.update(
    ConnectionRow,
    { tenantId },
    {
      state: "CONNECTED",
      stateChangedAt: now,
      connectedAt: now,
      copyId,
      boundEmail: user.email,
      boundUserName: user.name,
      companyName: user.companyName,
      companyDomain: user.companyDomain,
    },
  );
}
