import { useId } from "react";
import { VERDICT } from "../ui/tones";
import { useWidth } from "../ui/use-width";
import { counted } from "../ui/words";
import type { PipelineGroup, QuietDeal, StageGroup } from "./groups";

const WIDTH_AT_FIRST = 960;
const WIDEST_NAME = 200;
const RIGHT = 24;
const ROW = 34;
const TOP = 8;
const TICKS = 4;
const VERDICTS = ["GHOSTED", "QUIET", "COOLING"] as const;

/** Each deal as a dot: its stage, and how long it has been silent. */
export function QuietChart({ groups }: { groups: readonly PipelineGroup[] }) {
  const title = useId();
  const [figure, width] = useWidth<HTMLElement>(WIDTH_AT_FIRST);
  const left = Math.min(WIDEST_NAME, width * 0.38);
  const lanes = groups.flatMap(({ name, stages }) => stages.map((stage) => ({ pipeline: name, stage })));
  const deals = lanes.flatMap(({ stage }) => stage.deals);
  const longest = Math.max(1, ...deals.map(({ quiet }) => quiet.quietDays ?? 0));
  const step = niceStep(longest / TICKS);
  const most = Math.ceil(longest / step) * step;
  const x = (days: number) => left + (days / most) * (width - left - RIGHT);
  const bottom = TOP + lanes.length * ROW;
  return (
    <figure ref={figure}>
      <svg className="chart" viewBox={`0 0 ${width} ${bottom + 26}`} role="img" aria-labelledby={title}>
        <title id={title}>{summary(deals, longest)}</title>
        {ticks(step, most).map((days) => (
          <g key={days}>
            <line x1={x(days)} x2={x(days)} y1={TOP} y2={bottom} className="chart-grid" />
            <text x={x(days)} y={bottom + 18} textAnchor="middle" className="chart-text">
              {days === 0 ? "0 days" : days}
            </text>
          </g>
        ))}
        {lanes.map(({ pipeline, stage }, index) => (
          <Lane key={`${pipeline} ${stage.key}`} stage={stage} y={TOP + index * ROW + ROW / 2} x={x} most={most} />
        ))}
      </svg>
      <figcaption className="small muted legend">
        {VERDICTS.filter((verdict) => deals.some(({ quiet }) => quiet.verdict === verdict)).map((verdict) => (
          <span key={verdict} className={`legend-${verdict.toLowerCase()}`}>
            {VERDICT[verdict].text.toLowerCase()}
          </span>
        ))}
        <span className="plain">days since the last contact; the same in numbers below</span>
      </figcaption>
    </figure>
  );
}

interface LaneProps {
  stage: StageGroup;
  y: number;
  x: (days: number) => number;
  most: number;
}

function Lane({ stage, y, x, most }: LaneProps) {
  return (
    <>
      <text x="0" y={y + 4} className="chart-text">
        {shortened(stage.name, Math.floor(x(0) / CHARACTER))}
      </text>
      <line x1={x(0)} x2={x(most)} y1={y} y2={y} className="chart-lane" />
      {stage.deals.map((deal) => (
        <circle
          key={deal.id}
          cx={x(deal.quiet.quietDays ?? 0)}
          cy={y}
          r="7"
          className={`chart-deal chart-${deal.quiet.verdict.toLowerCase()}`}
        >
          <title>
            {deal.title}: {VERDICT[deal.quiet.verdict].text.toLowerCase()}, {counted(deal.quiet.quietDays ?? 0, "day")}
          </title>
        </circle>
      ))}
    </>
  );
}

/** About how wide a character is. */
const CHARACTER = 8;
const shortened = (name: string, most: number) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

function summary(deals: readonly QuietDeal[], longest: number): string {
  const ghosted = deals.filter(({ quiet }) => quiet.verdict === "GHOSTED").length;
  return `${counted(deals.length, "deal")} by stage and days of silence; ${ghosted} ghosted, the longest silence is ${counted(longest, "day")}.`;
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  return power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
}

const ticks = (step: number, most: number) =>
  Array.from({ length: Math.round(most / step) + 1 }, (_, index) => index * step);
