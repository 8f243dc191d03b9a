import type { Database, TenantScope } from "../database/database";
import { type ListOrder, type Page, type PageRequest, readPage } from "../database/keyset";
import { type AuditAction, AuditEventRow } from "../entities/audit-event";
import { type Clock, DAY_MS, MINUTE_MS } from "../platform/clock";
import { type Refused, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { forEachLogged } from "../platform/work";
import type { Actor } from "./actor";
import { type PolicyRefusal, refusalToAudit } from "./policies";

export interface AuditEntry {
  action: AuditAction;
  /** null: the service by itself. */
  actor: Pick<Actor, "tenant" | "userId" | "role"> | null;
  at: Date;
  /** The code of a refusal or a reason; never a message. */
  code?: string;
  /** An operation, an entity, or the id of a meeting, deal or run; never what the CRM says of it. */
  subject?: string;
}

/** How long an event is kept; longer than a year, so that a yearly review finds all of it. */
export const KEPT_MS = 400 * DAY_MS;
const BATCH = 5_000;
const TENANTS_A_SWEEP = 100;
/** A refusal that comes again sooner is in the log alone: nobody can fill the table by asking for what is refused. */
const REPEATED_MS = MINUTE_MS;
const REFUSALS: readonly AuditAction[] = ["CONSENT_REJECTED", "POLICY_REFUSED"];

/** Records an event in the caller's transaction, and says so in the log once that has been committed. */
export async function recordAudit(scope: TenantScope, logger: Logger, entry: AuditEntry): Promise<void> {
  const { action, actor, at, code = null, subject = null } = entry;
  const refused = REFUSALS.includes(action);
  const { tenant, userId = null, role = null } = actor ?? {};
  const { tenantId } = scope;
  await scope.rows(
    `INSERT INTO audit_event (tenant_id, at, action, refused, code, subject, user_id, role)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8 WHERE NOT $4 OR NOT EXISTS (
       SELECT 1 FROM audit_event e WHERE e.tenant_id = $1 AND e.at > $9 AND e.action = $3
         AND (e.code, e.subject, e.user_id) IS NOT DISTINCT FROM ($5, $6, $7))
     ON CONFLICT DO NOTHING`,
    [tenantId, at, action, refused, code, subject, userId, role, new Date(at.getTime() - REPEATED_MS)],
  );
  const audit = { action, refused, code, subject, userId, role, at };
  scope.afterCommit(() => logger.info({ tenant, tenantId, audit }, "audit"));
}

interface AuditParts {
  database: Database;
  logger: Logger;
  clock: Clock;
}

/**
 * That role or plan refused an operation, which has changed nothing, is an event as well.
 * @param refusal null: it is allowed, and nothing is recorded
 */
export async function refusedByPolicy<Code extends PolicyRefusal>(
  { database, logger, clock }: AuditParts,
  actor: Actor,
  operation: string,
  refusal: Refused<Code> | null,
): Promise<Refused<Code> | null> {
  if (!refusal) return null;
  const entry: AuditEntry = { action: "POLICY_REFUSED", actor, at: clock(), code: refusal.code, subject: operation };
  await recordAudit(database.tenant(actor.tenantId), logger, entry);
  return refusal;
}

/** Why the actor may not read the events; null: it may. */
export function refuseAudit(parts: AuditParts, actor: Actor): Promise<Refused<PolicyRefusal> | null> {
  const code = refusalToAudit(actor);
  const message = "Only an owner or admin of your organization may read its security events. Ask one of them.";
  return refusedByPolicy(parts, actor, "auditEvents", code && refused(code, message));
}

export const NEWEST_EVENT: ListOrder = {
  direction: "DESC",
  keys: [
    { sql: "t.at", type: "instant" },
    { sql: "t.id", type: "integer" },
  ],
};

export function readAuditEvents(scope: TenantScope, page: PageRequest): Promise<Page<AuditEventRow>> {
  return readPage(scope, AuditEventRow, { where: [], parameters: [] }, page);
}

/** Deletes events that are older than they are kept, a batch a tenant and sweep. */
export async function sweepAudit(database: Database, logger: Logger, now: Date): Promise<void> {
  const before = new Date(now.getTime() - KEPT_MS);
  const old = await database.acrossTenants<{ tenantId: number }>(
    `SELECT DISTINCT tenant_id AS "tenantId" FROM audit_event WHERE at < $1 LIMIT ${TENANTS_A_SWEEP}`,
    [before],
    { tenantId: "number" },
  );
  const forget = ({ tenantId }: { tenantId: number }) =>
    database.tenant(tenantId).rows(
      `DELETE FROM audit_event WHERE tenant_id = $1 AND id = ANY (ARRAY(
         SELECT id FROM audit_event WHERE tenant_id = $1 AND at < $2 LIMIT ${BATCH}))`,
      [tenantId, before],
    );
  await forEachLogged(old, forget, logger);
}
