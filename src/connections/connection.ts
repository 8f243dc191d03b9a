import { recordAudit } from "../auth/policies";
import type { CrmCurrentUser } from "../crm/parsing/records";
import { CONNECTION_CHANGED, notify } from "../database/between-processes";
import type { TenantScope } from "../database/database";
import {
  CONNECTION_STATES,
  ConnectionRow,
  type ConnectionState,
  type ReauthorizationReason,
  TROUBLE_CODES,
  type TroubleCode,
} from "../entities/connection";
import { refused, ServiceError } from "../platform/errors";
import type { Logger } from "../platform/logger";

/**
 * Where a connection may go from each state (specification 3). A connected CRM is never replaced in place, and only an
 * authorization by a person, or a renewal that was taken for lost, leads from NEEDS_REAUTHORIZATION to CONNECTED.
 */
export const MOVES: Readonly<Record<ConnectionState, readonly ConnectionState[]>> = {
  NOT_CONNECTED: ["CONNECTED"],
  CONNECTED: ["NEEDS_REAUTHORIZATION", "NOT_CONNECTED"],
  NEEDS_REAUTHORIZATION: ["CONNECTED", "NOT_CONNECTED"],
};

export const mayMove = (from: ConnectionState, to: ConnectionState): boolean => MOVES[from].includes(to);

/** The states from which a connection may go to `to`. */
export const statesBefore = (to: ConnectionState): ConnectionState[] =>
  CONNECTION_STATES.filter((from) => mayMove(from, to));

export const NOT_CONNECTED = refused("NOT_CONNECTED", "No CRM is connected. An owner or admin can connect one.");
export const NEEDS_REAUTHORIZATION = refused(
  "NEEDS_REAUTHORIZATION",
  "The CRM no longer accepts the authorization. An owner or admin has to authorize again.",
);

/** The connection is gone, or belongs to another copy now: whatever asked for a token stops quietly. */
export class ConnectionGoneError extends ServiceError {
  readonly code = "NOT_CONNECTED";
}

/** The CRM no longer accepts the grant; someone must authorize again. */
export class NeedsReauthorizationError extends ServiceError {
  readonly code = "NEEDS_REAUTHORIZATION";
}

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

/** Whose view of which company a copy holds. */
export interface Bound {
  companyId: number;
  userId: number;
}

export interface LockedConnection {
  state: ConnectionState;
  copyId: number | null;
  /** null: there is no copy. */
  bound: Bound | null;
}

/** Locks the tenant's connection row, made where it is missing: who changes a connection's state holds it. */
export async function lockConnection(scope: TenantScope): Promise<LockedConnection> {
  const { tenantId, rows } = scope;
  await rows(
    "INSERT INTO connection (tenant_id, state) VALUES ($1, 'NOT_CONNECTED') ON CONFLICT (tenant_id) DO NOTHING",
    [tenantId],
  );
  const [row] = await rows<Pick<ConnectionRow, "state" | "copyId"> & { [K in keyof Bound]: number | null }>(
    `SELECT c.state, c.copy_id AS "copyId", s.crm_company_id AS "companyId", s.crm_user_id AS "userId"
     FROM connection c LEFT JOIN synced_copy s ON s.tenant_id = $1 AND s.id = c.copy_id
     WHERE c.tenant_id = $1 FOR UPDATE OF c`,
    [tenantId],
    { state: "text", copyId: "number", companyId: "number", userId: "number" },
  );
  // The tenant is erased at this moment, and it with it.
  if (!row) return lockConnection(scope);
  const { state, copyId, companyId, userId } = row;
  return { state, copyId, bound: companyId !== null && userId !== null ? { companyId, userId } : null };
}

const NO_TROUBLE = { troubleCode: null, troubleMessage: null, troubleSince: null, troubleLastSeenAt: null };
const NOT_BOUND = { boundEmail: null, boundUserName: null, companyName: null, companyDomain: null, connectedAt: null };
/** What ends with whatever move. */
const ENDED = { ...NO_TROUBLE, reauthorizationReason: null, nextSyncAt: null };

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
export async function move(
  scope: TenantScope,
  from: ConnectionState,
  to: ConnectionState,
  now: Date,
  change: Partial<ConnectionRow>,
): Promise<void> {
  if (!mayMove(from, to)) throw new Error(`a connection may not go from ${from} to ${to}`);
  const moved = { ...change, ...ENDED, state: to, stateChangedAt: now };
  await scope.typed((orm) => orm.update(ConnectionRow, { tenantId: scope.tenantId }, moved));
  await notify(scope, CONNECTION_CHANGED);
}

/**
 * What the CRM said under the credential of `version` ends the authorization. It may come late: where the connection has
 * another credential or copy by now, nothing is changed; who is storing one is waited for. So are pages in hand, and no later one is written.
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
  await rows("SELECT 1 FROM connection WHERE tenant_id = $1 FOR UPDATE", [tenantId]);
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

export const isTrouble = (code: string): code is TroubleCode => TROUBLE_CODES.some((trouble) => trouble === code);

/** Something temporary that keeps a connected CRM from working; `message` is for the customer's admin. */
export interface Trouble {
  code: TroubleCode;
  message: string;
  /** Messages of the troubles that it may take the place of; any where nothing is said. */
  over?: readonly string[];
}

/** Notes trouble of a connected copy. Trouble of the same kind goes on since it was first seen. */
export async function noteTrouble(scope: TenantScope, copyId: number, trouble: Trouble, now: Date): Promise<void> {
  const noted = await scope.rows<{ is_new: boolean }>(
    `UPDATE connection c SET trouble_code = $3, trouble_message = $4, trouble_last_seen_at = $5,
       trouble_since = CASE WHEN old.trouble_code = $3 THEN old.trouble_since ELSE $5 END
     FROM (SELECT tenant_id, trouble_code, trouble_message, trouble_since FROM connection WHERE tenant_id = $1 FOR UPDATE) old
     WHERE c.tenant_id = $1 AND c.copy_id = $2 AND c.state = 'CONNECTED'
       AND ($6::text[] IS NULL OR old.trouble_code IS NULL OR old.trouble_message = ANY ($6))
     RETURNING (old.trouble_code, old.trouble_message) IS DISTINCT FROM ($3, $4) AS is_new`,
    [scope.tenantId, copyId, trouble.code, trouble.message, now, trouble.over ?? null],
    { is_new: "flag" },
  );
  if (noted[0]?.is_new) await notify(scope, CONNECTION_CHANGED);
}

/** It works again. @param messages of the troubles that are shown to be over by that; of all where nothing is said */
export async function endTrouble(
  scope: TenantScope,
  copyId: number,
  messages: readonly string[] | null = null,
): Promise<void> {
  const ended = await scope.rows(
    `UPDATE connection SET trouble_code = NULL, trouble_message = NULL, trouble_since = NULL, trouble_last_seen_at = NULL
     WHERE tenant_id = $1 AND copy_id = $2 AND trouble_code IS NOT NULL AND ($3::text[] IS NULL OR trouble_message = ANY ($3)) RETURNING 1 AS ended`,
    [scope.tenantId, copyId, messages],
  );
  if (ended.length > 0) await notify(scope, CONNECTION_CHANGED);
}
