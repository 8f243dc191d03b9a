import type { QuietDealsQuery } from "../api/operations.generated";

export type QuietDeal = QuietDealsQuery["deals"]["nodes"][number];

export interface StageGroup {
  key: string;
  name: string;
  position: number;
  /** The longest silence first. */
  deals: QuietDeal[];
}

export interface PipelineGroup {
  key: string;
  name: string;
  /** In the order of the pipeline. */
  stages: StageGroup[];
}

const silence = ({ quiet }: QuietDeal) => quiet.quietDays ?? 0;
const worst = ({ stages }: PipelineGroup) => Math.max(...stages.flatMap(({ deals }) => deals.map(silence)));

/** By pipeline, the one with the longest silence first, and within it by stage. */
export function byPipelineAndStage(deals: readonly QuietDeal[]): PipelineGroup[] {
  const pipelines = new Map<string, { name: string; stages: Map<string, StageGroup> }>();
  for (const deal of deals) {
    const { pipeline, stage } = deal;
    const group = pipelines.get(pipeline?.id ?? "") ?? {
      name: pipeline?.name ?? "Pipeline not known",
      stages: new Map(),
    };
    pipelines.set(pipeline?.id ?? "", group);
    const key = stage?.id ?? "";
    const lane = group.stages.get(key) ?? {
      key,
      name: stage?.name ?? "Stage not known",
      position: stage?.position ?? Number.POSITIVE_INFINITY,
      deals: [],
    };
    group.stages.set(key, lane);
    lane.deals.push(deal);
  }
  return [...pipelines]
    .map(([key, { name, stages }]) => ({
      key,
      name,
      stages: [...stages.values()].sort((a, b) => a.position - b.position),
    }))
    .map((group) => ({ ...group, stages: group.stages.map(worstFirst) }))
    .sort((a, b) => worst(b) - worst(a));
}

const worstFirst = (stage: StageGroup): StageGroup => ({
  ...stage,
  deals: [...stage.deals].sort((a, b) => silence(b) - silence(a)),
});

/** Sums by currency, in cents of exact decimal text: amounts of two currencies are never added. */
export function totals(deals: readonly QuietDeal[]): { amount: string; currency: string }[] {
  const sums = new Map<string, bigint>();
  for (const { value } of deals) {
    if (value) sums.set(value.currency, (sums.get(value.currency) ?? 0n) + toMinor(value.amount));
  }
  return [...sums].sort().map(([currency, sum]) => ({ currency, amount: fromMinor(sum) }));
}

const DIGITS = 4;

function toMinor(amount: string): bigint {
  const [whole = "0", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.slice(0, DIGITS).padEnd(DIGITS, "0"));
}

function fromMinor(sum: bigint): string {
  const text = (sum < 0n ? -sum : sum).toString().padStart(DIGITS + 1, "0");
  return `${sum < 0n ? "-" : ""}${text.slice(0, -DIGITS)}.${text.slice(-DIGITS)}`;
}
