import type { World } from "../api/operation";
import { blankActivity, blankDeal, blankNote, blankOrganization, blankPerson } from "../model/blank";
import { recordsOf } from "../model/company";
import type { Entity, RecordOf } from "../model/records";
import { seconds, v1Time, v2Time } from "../model/times";
import { makePipeline, makeStage } from "../seed/pipelines";
import { makeUser } from "../seed/users";

/** A record as a user would have just made it, under the next free id. */
export function freshRecord<E extends Entity>(world: Pick<World, "company" | "now">, entity: E): RecordOf[E] {
  const made: { [K in Entity]: () => RecordOf[K] } = makers(world);
  return { ...made[entity](), id: Math.max(0, ...lastIds(world, entity)) + 1 };
}

/** Ids only ever grow, so the last record of the table has the highest. */
function lastIds(world: Pick<World, "company">, entity: Entity): number[] {
  return [...recordsOf(world.company, entity).keys()].slice(-1);
}

function makers({ company, now: clock }: Pick<World, "company" | "now">): { [K in Entity]: () => RecordOf[K] } {
  const now = seconds(clock());
  const add_time = v2Time(now);
  const context = { company, now };
  const seller = [...company.users.values()].find((user) => user.is_admin === 0 && user.active_flag);
  const [stage] = company.stages.values();
  if (!seller || !stage) throw new Error("the company has neither a seller nor a stage");
  const owned = { id: 0, owner_id: seller.id, add_time };
  const { deal, person, organization } = company.emptyCustomFields;
  return {
    deal: () =>
      blankDeal({
        ...owned,
        title: "New deal",
        pipeline_id: stage.pipeline_id,
        stage_id: stage.id,
        custom_fields: deal,
      }),
    person: () => blankPerson({ ...owned, name: "New Person", custom_fields: person }),
    organization: () => blankOrganization({ ...owned, name: "New organization", custom_fields: organization }),
    activity: () => blankActivity({ ...owned, subject: "Call", type: "call" }),
    note: () => blankNote({ id: 0, user_id: seller.id, content: "<p>New note</p>", add_time: v1Time(now) }),
    pipeline: () => makePipeline(context, "New pipeline", now),
    stage: () => makeStage(context, { name: "New stage", pipelineId: stage.pipeline_id, order: 99, made: now }),
    user: () => makeUser(context, "New Colleague", { admin: false, active: true }),
  };
}
