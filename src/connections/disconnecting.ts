import type { Actor } from "../auth/actor";
import { recordAudit, recordPolicyRefusal } from "../auth/audit";
import { type PolicyRefusal, refusalToDisconnect } from "../auth/policies";
import type { Database, TenantScope } from "../database/database";
import { AuthorizationRequestRow, CredentialRow, RenewalAttemptRow } from "../entities/connection";
import { FieldMappingRow } from "../entities/writeback";
import type { Clock } from "../platform/clock";
import { accepted, type Outcome, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { lockConnection, moveToNotConnected } from "./connection";
import { type EndsSync, retireCopy } from "./copies";

export interface DisconnectingParts {
  database: Database;
  clock: Clock;
  logger: Logger;
  endsSync: EndsSync;
}

/** Ends a connection on our side; the CRM is not asked, and what was written there stays (specification 3). */
export class Disconnecting {
  constructor(private readonly parts: DisconnectingParts) {}

  /** One short transaction (decision 0004), idempotent: disconnecting what is not connected succeeds. */
  async disconnect(actor: Actor): Promise<Outcome<null, PolicyRefusal>> {
    const policy = refusalToDisconnect(actor);
    const { database, clock, logger, endsSync } = this.parts;
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
      await retireCopy(scope, present.copyId, endsSync);
      await recordAudit(scope, logger, { action: "DISCONNECTED", actor, at: clock() });
    });
    return accepted(null);
  }
}

/**
 * Tokens, begun renewals, and consents, whoever started them: who disconnects does not expect that a browser tab connects
 * again. And the chosen fields.
 */
async function forget({ tenantId, typed }: TenantScope): Promise<void> {
  for (const entity of [CredentialRow, RenewalAttemptRow, AuthorizationRequestRow, FieldMappingRow]) {
    await typed((orm) => orm.delete(entity, { tenantId }));
  }
}
