import type { Actor, Standing } from "./actor";

/** The plans that allow the connection (specification 8). */
const PLANS_WITH_CRM = new Set(["medium", "sales"]);

export type PolicyRefusal = "NOT_ALLOWED_FOR_ROLE" | "NOT_ALLOWED_ON_PLAN";

const manages = (actor: Standing) => actor.role === "owner" || actor.role === "admin";
const paysForCrm = (actor: Standing) => PLANS_WITH_CRM.has(actor.plan.toLowerCase());

/** Specification 3 and 5.4: Admin or Owner, on a Medium or Sales plan. null: allowed. */
export function refusalToConnect(actor: Standing): PolicyRefusal | null {
  if (!manages(actor)) return "NOT_ALLOWED_FOR_ROLE";
  if (!paysForCrm(actor)) return "NOT_ALLOWED_ON_PLAN";
  return null;
}

/** Whether the actor may manage the connection at all; what is open to it may still depend on the state. */
export function mayManageConnection(actor: Standing): boolean {
  return refusalToConnect(actor) === null;
}

/** An owner or admin on any plan: a lapsed plan must not keep anyone's data connected. null: allowed. */
export function refusalToDisconnect(actor: Standing): PolicyRefusal | null {
  return manages(actor) ? null : "NOT_ALLOWED_FOR_ROLE";
}

/**
 * Reading everything spends a good part of what the CRM gives a company a day: owners and admins, on any plan; what changed
 * anyone may ask for. null: allowed.
 */
export function refusalToSync(actor: Standing, everything: boolean): "NOT_ALLOWED_FOR_ROLE" | null {
  return everything && !manages(actor) ? "NOT_ALLOWED_FOR_ROLE" : null;
}

/** A member may not sync again at once (specification 8 names no limit). */
export function mustWaitToSync(actor: Standing): boolean {
  return !manages(actor);
}

/** Any role writes, as notes are a seller's work; the plan has to include the CRM. null: allowed. */
export function refusalToWrite(actor: Standing): PolicyRefusal | null {
  return paysForCrm(actor) ? null : "NOT_ALLOWED_ON_PLAN";
}

/** Who did what: owners and admins on any plan. null: allowed. */
export function refusalToAudit(actor: Standing): PolicyRefusal | null {
  return manages(actor) ? null : "NOT_ALLOWED_FOR_ROLE";
}

/** What the connection shows of whose records: owners and admins, on any plan. */
export const maySeeVisibility = (actor: Standing): boolean => manages(actor);

/**
 * The user whose writes to the CRM an actor is shown; null: everybody's, as owners and admins answer for all of them. By
 * an idempotency key, which each user chooses for himself, nobody sees another's.
 */
export function writesShown(actor: Actor, byKey = false): string | null {
  return manages(actor) && !byKey ? null : actor.userId;
}

/** By what all deals of the tenant are judged: owners and admins, on any plan, as its boards may be read on any. null: allowed. */
export function refusalToSetQuiet(actor: Standing): "NOT_ALLOWED_FOR_ROLE" | null {
  return manages(actor) ? null : "NOT_ALLOWED_FOR_ROLE";
}
