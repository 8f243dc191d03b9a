import type { Pipeline, Stage } from "../model/records";
import { DAY, v2Time } from "../model/times";
import { firstId, nextId, type SeedContext } from "./context";

type StagePlan = readonly [name: string, probability: number, daysToRotten: number | null];

const plans: readonly { name: string; stages: readonly StagePlan[] }[] = [
  {
    name: "New business",
    stages: [
      ["Qualified", 10, 21],
      ["Demo scheduled", 25, 14],
      ["Proposal made", 50, 10],
      ["Negotiation", 75, null],
      ["Contract sent", 90, 7],
    ],
  },
  {
    name: "Renewals",
    stages: [
      ["Due in 90 days", 60, null],
      ["Offer sent", 75, 30],
      ["Terms agreed", 90, null],
      ["Signature", 95, 14],
    ],
  },
  {
    name: "Partners – Vertrieb",
    stages: [
      ["Lead in", 5, null],
      ["Contact made", 20, 30],
      ["Joint plan", 40, null],
      ["Pilot", 60, 45],
      ["Terms", 80, null],
      ["Launch", 95, null],
    ],
  },
];

export function seedPipelines(context: SeedContext): void {
  const random = context.random.stream("pipelines");
  const made = context.now - 700 * DAY;
  for (const plan of plans.slice(0, random.int(2, 3))) {
    const pipeline = makePipeline(context, plan.name, made);
    context.company.pipelines.set(pipeline.id, pipeline);
    const reordered = random.chance(0.5) ? v2Time(made + random.int(1, 600) * DAY) : null;
    plan.stages.forEach(([name, probability, daysToRotten], index) => {
      const stage = makeStage(context, { name, pipelineId: pipeline.id, order: index + 1, made });
      stage.deal_probability = probability;
      stage.is_deal_rot_enabled = daysToRotten !== null;
      stage.days_to_rotten = daysToRotten;
      stage.update_time = reordered;
      context.company.stages.set(stage.id, stage);
    });
  }
}

export function makePipeline(context: Pick<SeedContext, "company">, name: string, made: number): Pipeline {
  const { pipelines } = context.company;
  return {
    id: nextId(pipelines, firstId.pipeline),
    name,
    order_nr: pipelines.size + 1,
    is_deleted: false,
    is_deal_probability_enabled: true,
    add_time: v2Time(made),
    update_time: null,
  };
}

export function makeStage(
  context: Pick<SeedContext, "company">,
  plan: { name: string; pipelineId: number; order: number; made: number },
): Stage {
  return {
    id: nextId(context.company.stages, firstId.stage),
    order_nr: plan.order,
    name: plan.name,
    is_deleted: false,
    deal_probability: 100,
    pipeline_id: plan.pipelineId,
    is_deal_rot_enabled: false,
    days_to_rotten: null,
    add_time: v2Time(plan.made),
    update_time: null,
  };
}
