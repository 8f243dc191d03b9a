import { recordAudit } from "../auth/audit";
import type { CrmCurrentUser } from "../crm/parsing/records";
import type { TenantScope } from "../database/database";
import { CONNECTION_CHANGED, notify } from "../database/notifications";
import { ConnectionRow, type ConnectionState, type ReauthorizationReason } from "../entities/connection";
import { SyncedCopyRow } from "../entities/synced-copy";
import type { Logger } from "../platform/logger";
import type { Present } from "./admission";
import { mayMove, statesBefore } from "./states";

/** The tenant's connection, or null before anyone connected. */
export async function readConnection({ tenantId, entities }: TenantScope): Promise<ConnectionRow | null> {
  const [row] = await entities(ConnectionRow, "SELECT * FROM connection WHERE tenant_id = $1", [tenantId]);
  return row ?? null;
}

/** The copy that the tenant's readers see: that of its live connection and no other. null: none. */
export async function liveCopyId(scope: TenantScope): Promise<number | null> {
  const connection = await readConnection(scope);
  return connection?.copyId ?? null;
}

/** The copy of a connection that works now; null where none is connected or someone has to authorize again. */
export async function connectedCopyId(scope: TenantScope): Promise<number | null> {
  const connection = await readConnection(scope);
  return connection?.state === "CONNECTED" ? connection.copyId : null;
}

/** Until the transaction ends, the copy stays live. @returns the CRM company that it is of; null where it is not live */
export async function holdLiveCopy(
  { tenantId, rows }: TenantScope,
  copyId: number,
): Promise<{ crmCompanyId: number } | null> {
  const [live] = await rows<{ crmCompanyId: number }>(
    `SELECT crm_company_id AS "crmCompanyId" FROM synced_copy
     WHERE tenant_id = $1 AND id = $2 AND state = 'LIVE' FOR SHARE`,
    [tenantId, copyId],
    { crmCompanyId: "number" },
  );
  return live ?? null;
}

/** Any fixed number: the name of "judging a copy's deals" among this database's advisory locks. */
const JUDGING_LOCKS = 20_260_015;

/**
 * The same, and no other transaction judges deals of the copy meanwhile: each sees what those before it have changed.
 * @returns whether it is live
 */
export async function holdCopyToJudge({ tenantId, rows }: TenantScope, copyId: number): Promise<boolean> {
  const live = await rows(
    `SELECT pg_advisory_xact_lock(${JUDGING_LOCKS}, hashint8(id)) AS held FROM synced_copy
     WHERE tenant_id = $1 AND id = $2 AND state = 'LIVE' FOR SHARE`,
    [tenantId, copyId],
  );
  return live.length > 0;
}

export interface LockedConnection extends Present {
  copyId: number | null;
}

/** Locks the tenant's connection row, made where it is missing: who changes a connection's state holds it. */
export async function lockConnection({ tenantId, rows }: TenantScope): Promise<LockedConnection> {
  await rows(
    "INSERT INTO connection (tenant_id, state) VALUES ($1, 'NOT_CONNECTED') ON CONFLICT (tenant_id) DO NOTHING",
    [tenantId],
  );
  const [row] = await rows<{
    state: ConnectionState;
    copy_id: number | null;
    company_id: number | null;
    user_id: number | null;
  }>(
    `SELECT c.state, c.copy_id, s.crm_company_id AS company_id, s.crm_user_id AS user_id
     FROM connection c LEFT JOIN synced_copy s ON s.tenant_id = $1 AND s.id = c.copy_id
     WHERE c.tenant_id = $1 FOR UPDATE OF c`,
    [tenantId],
    { state: "text", copy_id: "number", company_id: "number", user_id: "number" },
  );
  if (!row) throw new Error("a connection row that was just made is missing");
  const { state, copy_id: copyId, company_id: companyId, user_id: userId } = row;
  return { state, copyId, bound: companyId !== null && userId !== null ? { companyId, userId } : null };
}

const NO_TROUBLE = { troubleCode: null, troubleMessage: null, troubleSince: null, troubleLastSeenAt: null } as const;
const NOT_BOUND = {
  boundEmail: null,
  boundUserName: null,
  companyName: null,
  companyDomain: null,
  connectedAt: null,
} as const;

export async function moveToConnected(
  scope: TenantScope,
  from: ConnectionState,
  copyId: number,
  user: CrmCurrentUser,
  now: Date,
): Promise<void> {
  await move(scope, from, "CONNECTED", now, {
    copyId,
    connectedAt: now,
    boundEmail: user.email,
    boundUserName: user.name,
    companyName: user.companyName,
    companyDomain: user.companyDomain,
  });
}

export async function moveToNotConnected(scope: TenantScope, from: ConnectionState, now: Date): Promise<void> {
  await move(scope, from, "NOT_CONNECTED", now, { copyId: null, ...NOT_BOUND });
}

/** The caller holds the connection's lock. */
async function move(
  scope: TenantScope,
  from: ConnectionState,
  to: ConnectionState,
  now: Date,
  change: Partial<ConnectionRow>,
): Promise<void> {
  if (!mayMove(from, to)) throw new Error(`a connection may not go from ${from} to ${to}`);
  const moved = {
    ...change,
    ...NO_TROUBLE,
    state: to,
    stateChangedAt: now,
    reauthorizationReason: null,
    nextSyncAt: null,
  };
  await scope.typed((orm) => orm.update(ConnectionRow, { tenantId: scope.tenantId }, moved));
  await notify(scope, CONNECTION_CHANGED);
}

/**
 * What the CRM said under the credential of `version` ends the authorization. It may come late: where the connection has
 * another credential or copy by now, nothing is changed. Pages in hand are waited for, and no later one is written.
 * @returns whether the connection now needs re-authorization because of this
 */
export async function moveToNeedsReauthorization(
  scope: TenantScope,
  copyId: number,
  version: number,
  reason: ReauthorizationReason,
  now: Date,
): Promise<boolean> {
  const { tenantId, rows } = scope;
  const moved = await rows(
    `UPDATE connection c SET state = 'NEEDS_REAUTHORIZATION', state_changed_at = $3, reauthorization_reason = $4,
       next_sync_at = NULL, trouble_code = NULL, trouble_message = NULL, trouble_since = NULL, trouble_last_seen_at = NULL
     WHERE c.tenant_id = $1 AND c.copy_id = $2 AND c.state = ANY ($5) AND EXISTS (
       SELECT 1 FROM credential x WHERE x.tenant_id = $1 AND x.copy_id = c.copy_id AND x.version = $6)
     RETURNING 1 AS moved`,
    [tenantId, copyId, now, reason, statesBefore("NEEDS_REAUTHORIZATION"), version],
  );
  if (moved.length === 0) return false;
  await rows("SELECT 1 FROM synced_copy WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE", [tenantId, copyId]);
  await notify(scope, CONNECTION_CHANGED);
  return true;
}

/** The same, with its event. */
export async function endAuthorization(
  scope: TenantScope,
  logger: Logger,
  copyId: number,
  version: number,
  reason: ReauthorizationReason,
  now: Date,
): Promise<boolean> {
  const moved = await moveToNeedsReauthorization(scope, copyId, version, reason, now);
  const event = { action: "NEEDS_REAUTHORIZATION", actor: null, at: now, code: reason } as const;
  if (moved) await recordAudit(scope, logger, event);
  return moved;
}

/** Whose view the copy holds, and the zone of that user's days; null where there is none. */
export async function boundOf(
  { tenantId, typed }: TenantScope,
  copyId: number,
): Promise<(NonNullable<Present["bound"]> & { timeZone: string }) | null> {
  const copy = await typed((orm) => orm.findOneBy(SyncedCopyRow, { tenantId, id: copyId }));
  return copy && { companyId: copy.crmCompanyId, userId: copy.crmUserId, timeZone: copy.timeZone };
}

/** The user who authorized lives by other clocks from now on. */
export async function keepTimeZone({ tenantId, typed }: TenantScope, copyId: number, timeZone: string): Promise<void> {
  await typed((orm) => orm.update(SyncedCopyRow, { tenantId, id: copyId }, { timeZone }));
}

/** A new live copy of what `user` sees. The caller has retired the tenant's earlier one. */
export async function createCopy({ tenantId, rows }: TenantScope, user: CrmCurrentUser, now: Date): Promise<number> {
  const [copy] = await rows<{ id: number }>(
    `INSERT INTO synced_copy (tenant_id, crm_company_id, crm_user_id, state, created_at, time_zone)
     VALUES ($1, $2, $3, 'LIVE', $4, coalesce($5, 'UTC')) RETURNING id`,
    [tenantId, user.companyId, user.id, now, user.timeZone],
    { id: "number" },
  );
  if (!copy) throw new Error("a copy that was just made is missing");
  return copy.id;
}
