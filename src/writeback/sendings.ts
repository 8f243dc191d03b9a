import type { Actor } from "../auth/actor";
import { recordPolicyRefusal } from "../auth/audit";
import { type PolicyRefusal, refusalToWrite } from "../auth/policies";
import { type Refused, refused } from "../platform/outcome";
import type { WritebackParts } from "./note-writes";

/** Why this actor may not write at all, which is audited; null where it may. */
export async function refusalOfWriter(
  { door, logger, clock }: WritebackParts,
  actor: Actor,
  operation: string,
): Promise<Refused<PolicyRefusal> | null> {
  const policy = refusalToWrite(actor);
  if (!policy) return null;
  const refusal = refused(policy, "Your organization's plan does not include the CRM. Ask an owner to change it.");
  await recordPolicyRefusal(door, logger, actor, refusal, operation, clock());
  return refusal;
}

/** Sendings under way. They end by themselves; a process that stops waits for them, so that no receipt is left behind. */
export class Sendings {
  readonly #underWay = new Set<Promise<unknown>>();

  track<T>(sending: Promise<T>): Promise<T> {
    this.#underWay.add(sending);
    return sending.finally(() => this.#underWay.delete(sending));
  }

  async end(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }
}
