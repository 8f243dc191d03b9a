import type { Database, TenantScope } from "../database/database";
import { type ListOrder, type Page, type PageRequest, readPage } from "../database/keyset";
import { forgetOld } from "../database/upsert";
import { AUDIT_ACTIONS, type AuditAction, AuditEventRow } from "../entities/tenant";
import { type Clock, MINUTE_MS } from "../platform/clock";
import { type Refused, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import type { Actor, RoleAndPlan } from "./actor";

/** The plans that allow the connection (specification 8). */
const PLANS_WITH_CRM = new Set(["medium", "sales"]);

export type PolicyRefusal = "NOT_ALLOWED_FOR_ROLE" | "NOT_ALLOWED_ON_PLAN";

const manages = (actor: RoleAndPlan) => actor.role === "owner" || actor.role === "admin";
const paysForCrm = (actor: RoleAndPlan) => PLANS_WITH_CRM.has(actor.plan.toLowerCase());

/** Specification 3 and 5.4: Admin or Owner, on a Medium or Sales plan. null: allowed. */
export function refusalToConnect(actor: RoleAndPlan): PolicyRefusal | null {
  if (!manages(actor)) return "NOT_ALLOWED_FOR_ROLE";
  if (!paysForCrm(actor)) return "NOT_ALLOWED_ON_PLAN";
  return null;
}

/** Whether the actor may manage the connection at all; what is open to it may still depend on the state. */
export function mayManageConnection(actor: RoleAndPlan): boolean {
  return refusalToConnect(actor) === null;
}

/** An owner or admin on any plan: a lapsed plan must not keep anyone's data connected. null: allowed. */
export function refusalToDisconnect(actor: RoleAndPlan): PolicyRefusal | null {
  return manages(actor) ? null : "NOT_ALLOWED_FOR_ROLE";
}

/**
 * Reading everything spends a good part of what the CRM gives a company a day: owners and admins, on any plan; what changed
 * anyone may ask for. null: allowed.
 */
export function refusalToSync(actor: RoleAndPlan, everything: boolean): "NOT_ALLOWED_FOR_ROLE" | null {
  return everything && !manages(actor) ? "NOT_ALLOWED_FOR_ROLE" : null;
}

/** A member may not sync again at once (specification 8 names no limit). */
export function mustWaitToSync(actor: RoleAndPlan): boolean {
  return !manages(actor);
}

/** Any role writes, as notes are a seller's work; the plan has to include the CRM. null: allowed. */
export function refusalToWrite(actor: RoleAndPlan): PolicyRefusal | null {
  return paysForCrm(actor) ? null : "NOT_ALLOWED_ON_PLAN";
}

/** Who did what: owners and admins on any plan. null: allowed. */
function refusalToAudit(actor: RoleAndPlan): PolicyRefusal | null {
  return manages(actor) ? null : "NOT_ALLOWED_FOR_ROLE";
}

/** What the connection shows of whose records: owners and admins, on any plan. */
export const maySeeVisibility = (actor: RoleAndPlan): boolean => manages(actor);

/**
 * The user whose writes to the CRM an actor is shown; null: everybody's, as owners and admins answer for all of them. By
 * an idempotency key, which each user chooses for himself, nobody sees another's.
 */
export function writesShown(actor: Actor, byKey = false): string | null {
  return manages(actor) && !byKey ? null : actor.userId;
}

/** By what all deals of the tenant are judged: owners and admins, on any plan, as its boards may be read on any. null: allowed. */
export function refusalToSetQuiet(actor: RoleAndPlan): "NOT_ALLOWED_FOR_ROLE" | null {
  return manages(actor) ? null : "NOT_ALLOWED_FOR_ROLE";
}

export interface AuditEntry {
  action: AuditAction;
  /** null: the service by itself. */
  actor: Pick<Actor, "tenant" | "userId" | "role"> | null;
  at: Date;
  /** The code of a refusal or a reason; never a message. */
  code?: string;
  /** An operation, an entity, or the id of a meeting, deal or run, or of the CRM's company and user; never what the CRM says of it. */
  subject?: string;
  /** What the change replaced, and by what: a field's key, a deal's number, settings. */
  was?: string | null;
  became?: string | null;
}

/** A refusal that comes again sooner is in the log alone: nobody can fill the table by asking for what is refused. */
const REPEATED_MS = MINUTE_MS;
const REFUSALS: readonly AuditAction[] = ["CONSENT_REJECTED", "POLICY_REFUSED"];

/** Records an event in the caller's transaction, and says so in the log once that has been committed. */
export async function recordAudit(scope: TenantScope, logger: Logger, entry: AuditEntry): Promise<void> {
  const { action, actor, at, code = null, subject = null, was = null, became = null } = entry;
  const refused = REFUSALS.includes(action);
  const { tenant, userId = null, role = null } = actor ?? {};
  const { tenantId } = scope;
  await scope.rows(
    `INSERT INTO audit_event (tenant_id, at, action, refused, code, subject, user_id, role, was, became)
     SELECT $1, $2, $3, $4, $5, $6, $7, $8, $10, $11 WHERE NOT $4 OR NOT EXISTS (
       SELECT 1 FROM audit_event e WHERE e.tenant_id = $1 AND e.at > $9 AND e.action = $3
         AND (e.code, e.subject, e.user_id) IS NOT DISTINCT FROM ($5, $6, $7))
     ON CONFLICT DO NOTHING`,
    [tenantId, at, action, refused, code, subject, userId, role, new Date(at.getTime() - REPEATED_MS), was, became],
  );
  const audit = { action, refused, code, subject, userId, role, was, became, at };
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
    { sql: "t.id", type: "uuid" },
  ],
};

/** The newest first; while an upgrade lasts, without actions that only the later version knows. */
export function readAuditEvents(scope: TenantScope, page: PageRequest): Promise<Page<AuditEventRow>> {
  return readPage(scope, AuditEventRow, { where: ["t.action = ANY ($2)"], parameters: [AUDIT_ACTIONS] }, page);
}

/** Deletes events that are older than they are kept. */
export const sweepAudit = (database: Database, logger: Logger, now: Date): Promise<void> =>
  forgetOld(database, { table: "audit_event", instant: "at" }, logger, now);
