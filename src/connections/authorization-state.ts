import { createHash, randomBytes } from "node:crypto";
import type { Actor } from "../auth/actor";
import type { TenantScope } from "../database/database";
import { MINUTE_MS } from "../platform/clock";

const STATE_BYTES = 32;
const STATE_LIFE_MS = 10 * MINUTE_MS;
/** Consents that a tenant may begin in the ten minutes of one; a few people with a few pages each need no more. */
export const MAX_BEGUN_CONSENTS = 20;

const hashOf = (state: string) => createHash("sha256").update(state).digest();

/** Makes the `state` of one consent: random, bound to the actor, good for ten minutes, stored as a hash only. */
export async function issueState(
  scope: TenantScope,
  actor: Actor,
  now: Date,
): Promise<{ state: string; expiresAt: Date }> {
  const state = randomBytes(STATE_BYTES).toString("base64url");
  const expiresAt = new Date(now.getTime() + STATE_LIFE_MS);
  await scope.rows(
    `WITH ended AS (DELETE FROM authorization_request WHERE tenant_id = $1 AND expires_at <= $5)
     INSERT INTO authorization_request (tenant_id, state_hash, user_id, expires_at) VALUES ($1, $2, $3, $4)`,
    [scope.tenantId, hashOf(state), actor.userId, expiresAt, now],
  );
  return { state, expiresAt };
}

/**
 * Whether the tenant has begun as many consents as it may. Counted by their audit events, because a consent that was
 * ended, or voided by a disconnect, has cost its rows all the same. The caller holds the connection's lock.
 * @returns from when on another may be begun; null where one may be now
 */
export async function consentsResumeAt({ tenantId, rows }: TenantScope, now: Date): Promise<Date | null> {
  const [first] = await rows<{ at: Date }>(
    `SELECT at FROM audit_event WHERE tenant_id = $1 AND action = 'CONSENT_STARTED' AND at > $2
     ORDER BY at DESC OFFSET ${MAX_BEGUN_CONSENTS - 1} LIMIT 1`,
    [tenantId, new Date(now.getTime() - STATE_LIFE_MS)],
  );
  return first ? new Date(first.at.getTime() + STATE_LIFE_MS) : null;
}

/** Uses a `state` up. Of any number of callers at once, at most one is told true. */
export async function consumeState(scope: TenantScope, actor: Actor, state: string, now: Date): Promise<boolean> {
  const used = await scope.rows(
    `UPDATE authorization_request SET used_at = $4
     WHERE tenant_id = $1 AND state_hash = $2 AND user_id = $3 AND expires_at > $4 AND used_at IS NULL RETURNING 1 AS used`,
    [scope.tenantId, hashOf(state), actor.userId, now],
  );
  return used.length === 1;
}

/** Ends a consent that was used up. @returns false where a disconnect has voided it meanwhile */
export async function endConsent(scope: TenantScope, state: string): Promise<boolean> {
  const ended = await scope.rows(
    "DELETE FROM authorization_request WHERE tenant_id = $1 AND state_hash = $2 RETURNING 1 AS ended",
    [scope.tenantId, hashOf(state)],
  );
  return ended.length === 1;
}
