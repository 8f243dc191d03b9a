import { VERDICT } from "../ui/tones";
import { useWidth } from "../ui/use-width";
import { number, oneOf } from "../ui/words";
import { type Dot, dotsOf, inWords, type Lane, lanesOf, linesOf, scaleFor } from "./chart-layout";
import { DealDot, DOT, useDots } from "./deal-dot";
import { Mark } from "./marks";
import { type QuietDeal, unitOf } from "./silence";
import { VERDICTS } from "./wishes";

const WIDTH_AT_FIRST = 960;
const WIDEST_NAME = 200;
const RIGHT = 24;
const TOP = 8;
/** Dots have a line each where they would cover each other. */
const LINE = DOT;
const BETWEEN_LANES = 12;
const AXIS = 28;

interface PlacedLane extends Lane {
  dots: Dot[];
  top: number;
  height: number;
}

function placed(lanes: readonly Lane[], x: (days: number) => number): PlacedLane[] {
  let top = TOP;
  return lanes.map((lane) => {
    const dots = dotsOf(lane.deals, x, DOT);
    const place = { ...lane, dots, top, height: linesOf(dots) * LINE };
    top += place.height + BETWEEN_LANES;
    return place;
  });
}

interface QuietChartProps {
  deals: readonly QuietDeal[];
  onOpen(deal: QuietDeal): void;
}

/** Each deal as a dot: its stage, and how long it has been silent. A press on a dot opens its deal. */
export function QuietChart({ deals, onOpen }: QuietChartProps) {
  const [figure, width] = useWidth<HTMLElement>(WIDTH_AT_FIRST);
  const left = Math.min(WIDEST_NAME, width * 0.3);
  const lanes = lanesOf(deals);
  const { most, ticks } = scaleFor(lanes);
  const x = (days: number) => left + DOT / 2 + (days / most) * (width - left - RIGHT - DOT / 2);
  const shown = placed(lanes, x);
  const last = shown.at(-1);
  const bottom = last ? last.top + last.height : TOP;
  const height = bottom + AXIS;
  const dots = useDots(shown.flatMap((lane) => lane.dots));
  return (
    <figure ref={figure}>
      <div className="picture">
        <svg className="chart" viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
          {ticks.map((days) => (
            <g key={days}>
              <line x1={x(days)} x2={x(days)} y1={TOP} y2={bottom} className="chart-grid" />
              <text x={x(days)} y={bottom + 20} textAnchor="middle" className="chart-text">
                {days === 0 ? "0 days" : days}
              </text>
            </g>
          ))}
          {shown.map((lane) => (
            <LaneGround key={lane.key} lane={lane} x={x} most={most} />
          ))}
        </svg>
        <ul aria-label={inWords(deals)}>
          {shown.flatMap((lane) =>
            lane.dots.map((dot) => (
              <li
                key={dot.deal.id}
                className="dot"
                style={{
                  left: `${(100 * dot.x) / width}%`,
                  top: `${(100 * (lane.top + (dot.line + 0.5) * LINE)) / height}%`,
                }}
              >
                <DealDot dot={dot} {...dots(dot)} onOpen={onOpen} />
              </li>
            )),
          )}
        </ul>
      </div>
      <Legend lanes={shown} />
    </figure>
  );
}

/** About how wide a character is. */
const CHARACTER = 8;
const shortened = (name: string, most: number) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

function LaneGround({ lane, x, most }: { lane: PlacedLane; x: (days: number) => number; most: number }) {
  const { name, top, height, thresholds } = lane;
  return (
    <g>
      <text x="0" y={top + LINE / 2 + 4} className="chart-text">
        {shortened(name, Math.floor((x(0) - DOT / 2) / CHARACTER))}
      </text>
      <line x1={x(0)} x2={x(most)} y1={top + height} y2={top + height} className="chart-lane" />
      {thresholds.map(({ verdict, days }) => (
        <line
          key={`${verdict} ${days}`}
          x1={x(days)}
          x2={x(days)}
          y1={top}
          y2={top + height}
          className={`chart-threshold chart-from-${verdict.toLowerCase()}`}
        />
      ))}
    </g>
  );
}

/** What the marks and the dashed lines mean, and the lines' days for who cannot see them. */
function Legend({ lanes }: { lanes: readonly PlacedLane[] }) {
  const has = (verdict: string) => lanes.some(({ deals }) => deals.some(({ quiet }) => quiet.verdict === verdict));
  const thresholds = lanes.flatMap((lane) => lane.thresholds);
  const unit = `${unitOf(lanes.flatMap(({ deals }) => deals))}s`;
  const from = (["QUIET", "GHOSTED"] as const).flatMap((verdict) => {
    const days = [...new Set(thresholds.filter((one) => one.verdict === verdict).map((one) => one.days))];
    const sorted = days.sort((a, b) => a - b).map(number);
    return sorted.length > 0 ? [`${VERDICT[verdict].text.toLowerCase()} from ${oneOf(sorted)} ${unit} on`] : [];
  });
  return (
    <figcaption className="small muted legend">
      {VERDICTS.filter(has).map((verdict) => (
        <span key={verdict}>
          <svg viewBox="-9 -9 18 18" width="14" height="14" aria-hidden="true">
            <Mark verdict={verdict} />
          </svg>{" "}
          {VERDICT[verdict].text.toLowerCase()}
        </span>
      ))}
      {from.length > 0 && <span>dashed lines: {from.join(", ")}</span>}
      <span>from left to right: {unit} of silence</span>
    </figcaption>
  );
}
