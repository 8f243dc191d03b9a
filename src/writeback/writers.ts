import type { Actor } from "../auth/actor";
import { recordPolicyRefusal } from "../auth/audit";
import { type PolicyRefusal, refusalToWrite } from "../auth/policies";
import { type Refused, refused } from "../platform/outcome";
import type { WritebackParts } from "./writeback-parts";

/** Why this actor may not write at all, which is audited; null where it may. */
export async function refusalOfWriter(
  { database, logger, clock }: WritebackParts,
  actor: Actor,
  operation: string,
): Promise<Refused<PolicyRefusal> | null> {
  const policy = refusalToWrite(actor);
  if (!policy) return null;
  const refusal = refused(policy, "Your organization's plan does not include the CRM. Ask an owner to change it.");
  await recordPolicyRefusal(database, logger, actor, refusal, operation, clock());
  return refusal;
}
