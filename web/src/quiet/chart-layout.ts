import { counted } from "../ui/words";
import { type QuietDeal, unitOf } from "./silence";

/** A stage with its deals. */
export interface Lane {
  key: string;
  name: string;
  pipeline: string;
  deals: QuietDeal[];
  /** From so many days on a deal of this stage is called quiet or ghosted. */
  thresholds: Threshold[];
}

interface Threshold {
  verdict: "QUIET" | "GHOSTED";
  days: number;
}

/** A dot, and in which line of its lane it stands: dots side by side do not cover each other. */
export interface Dot {
  deal: QuietDeal;
  days: number;
  x: number;
  line: number;
}

const UNKNOWN_PLACE = Number.POSITIVE_INFINITY;
/** More lines would make a stage taller than a screen; further dots lie over others. */
const MOST_LINES = 6;
const daysOf = ({ quiet }: QuietDeal) => quiet.quietDays ?? 0;

/** The stages of the deals, pipeline by pipeline, each in its order. */
export function lanesOf(deals: readonly QuietDeal[]): Lane[] {
  const lanes = new Map<string, Lane & { position: number }>();
  for (const deal of deals) {
    const { pipeline, stage } = deal;
    const key = `${pipeline?.id ?? ""} ${stage?.id ?? ""}`;
    const lane = lanes.get(key) ?? {
      key,
      name: stage?.name ?? "Stage not known",
      pipeline: pipeline?.name ?? "Pipeline not known",
      position: stage?.position ?? UNKNOWN_PLACE,
      deals: [],
      thresholds: [],
    };
    lanes.set(key, lane);
    lane.deals.push(deal);
  }
  return [...lanes.values()]
    .sort((a, b) => a.pipeline.localeCompare(b.pipeline) || a.position - b.position)
    .map(({ position: _, ...lane }) => ({ ...lane, thresholds: thresholdsOf(lane.deals) }));
}

/** As the deals' own reasons say them; only those that are counted from where the dot's days are. */
function thresholdsOf(deals: readonly QuietDeal[]): Threshold[] {
  const found = new Map<string, Threshold>();
  for (const { quiet } of deals) {
    for (const { code, since, thresholdDays } of quiet.reasons) {
      if (thresholdDays === null || since === null || since !== quiet.quietSince) continue;
      const verdict = code === "NO_RECENT_ACTIVITY" ? "QUIET" : code === "GHOSTED" ? "GHOSTED" : null;
      if (verdict) found.set(`${verdict} ${thresholdDays}`, { verdict, days: thresholdDays });
    }
  }
  return [...found.values()].sort((a, b) => a.days - b.days);
}

/** @param gap how far apart dots of one line are at least */
export function dotsOf(deals: readonly QuietDeal[], x: (days: number) => number, gap: number): Dot[] {
  const ends: number[] = [];
  return [...deals]
    .sort((a, b) => daysOf(b) - daysOf(a))
    .map((deal) => {
      const days = daysOf(deal);
      const at = x(days);
      const free = ends.findIndex((end) => end - at >= gap);
      const line = Math.min(free === -1 ? ends.length : free, MOST_LINES - 1);
      ends[line] = at;
      return { deal, days, x: at, line };
    });
}

export const linesOf = (dots: readonly Dot[]): number => Math.max(1, ...dots.map(({ line }) => line + 1));

const TICKS = 4;

export interface Scale {
  step: number;
  most: number;
  ticks: number[];
}

/** Up to the longest silence, in steps of 1, 2 or 5 times a power of ten. */
export function scaleFor(lanes: readonly Lane[]): Scale {
  const days = lanes.flatMap(({ deals, thresholds }) => [...deals.map(daysOf), ...thresholds.map((one) => one.days)]);
  const longest = days.reduce((a, b) => Math.max(a, b), 1);
  const rough = longest / TICKS;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const most = Math.ceil(longest / step) * step;
  return { step, most, ticks: Array.from({ length: Math.round(most / step) + 1 }, (_, index) => index * step) };
}

/** The same as the picture, in a sentence. */
export function inWords(deals: readonly QuietDeal[]): string {
  const ghosted = deals.filter(({ quiet }) => quiet.verdict === "GHOSTED").length;
  const longest = deals.reduce((most, deal) => Math.max(most, daysOf(deal)), 0);
  return `${counted(deals.length, "deal")} by stage and ${unitOf(deals)}s of silence; ${ghosted} ghosted, the longest silence is ${counted(longest, unitOf(deals))}.`;
}
