import type { Actor } from "../auth/actor";
import { recordAudit, recordPolicyRefusal } from "../auth/audit";
import { type PolicyRefusal, refusalToDisconnect } from "../auth/policies";
import type { Database, TenantScope } from "../database/database";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import { accepted, type Outcome, refused } from "../platform/outcome";
import { lockConnection, moveToNotConnected } from "./connection-store";
import { enqueuePurge } from "./purge";

export interface DisconnectingParts {
  database: Database;
  clock: Clock;
  logger: Logger;
  /** Cancels what is queued or running for a copy. */
  cancelRuns(scope: TenantScope, copyId: number): Promise<void>;
}

/** Ends a connection on our side; the CRM is not asked, and what was written there stays (specification 3). */
export class Disconnecting {
  constructor(private readonly parts: DisconnectingParts) {}

  /** One short transaction (decision 0016), idempotent: disconnecting what is not connected succeeds. */
  async disconnect(actor: Actor): Promise<Outcome<null, PolicyRefusal>> {
    const policy = refusalToDisconnect(actor);
    const { database, clock, logger } = this.parts;
    if (policy) {
      const message = "Only an owner or admin of your organization may disconnect the CRM. Ask one of them.";
      const refusal = refused(policy, message);
      await recordPolicyRefusal(database, logger, actor, refusal, "disconnect", clock());
      return refusal;
    }
    await database.tenant(actor.tenantId).transaction(async (scope) => {
      const present = await lockConnection(scope);
      await forget(scope);
      if (present.state === "NOT_CONNECTED" || present.copyId === null) return;
      await moveToNotConnected(scope, present.state, clock());
      await this.retire(scope, present.copyId);
      await recordAudit(scope, logger, { action: "DISCONNECTED", actor, at: clock() });
    });
    return accepted(null);
  }

  /**
   * Makes a copy invisible from this commit on and has its rows deleted. The caller holds the connection's lock; a
   * page in hand is waited for, and a later one finds no live copy.
   */
  async retire(scope: TenantScope, copyId: number): Promise<void> {
    await scope.rows("UPDATE synced_copy SET state = 'RETIRED' WHERE tenant_id = $1 AND id = $2 AND state = 'LIVE'", [
      scope.tenantId,
      copyId,
    ]);
    await this.parts.cancelRuns(scope, copyId);
    await enqueuePurge(scope, copyId);
  }
}

/** Tokens, begun renewals, and consents that someone started: none may bring anything back. And the chosen fields. */
async function forget({ tenantId, rows }: TenantScope): Promise<void> {
  for (const table of ["credential", "renewal_attempt", "authorization_request", "field_mapping"]) {
    await rows(`DELETE FROM ${table} WHERE tenant_id = $1`, [tenantId]);
  }
}
