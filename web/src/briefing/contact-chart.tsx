import { useId } from "react";
import { useWidth } from "../ui/use-width";
import { counted, dayOrTime } from "../ui/words";
import type { Deal } from "./deal-card";
import { keyedContacts, type MarkedContact } from "./silence";
import { inWords } from "./wording";

const DAY_MS = 86_400_000;
const WIDTH_AT_FIRST = 640;
const LEFT = 84;
const LANE = { buyer: 28, us: 64 } as const;
const AXIS = 92;

interface ContactChartProps {
  contacts: readonly MarkedContact[];
  /** Up to when the data is complete: the chart's "today". */
  now: string;
  quietSince: string | null;
  /** Ahead, if only by its day. */
  nextStep: Deal["nextActivity"];
}

/** When there was contact, in two lanes: from the buyer, and from our side. */
export function ContactChart({ contacts, now, quietSince, nextStep }: ContactChartProps) {
  const title = useId();
  const [figure, width] = useWidth<HTMLElement>(WIDTH_AT_FIRST);
  const today = new Date(now).getTime();
  const past = contacts.filter(({ at }) => new Date(at).getTime() <= today);
  const nextAt = nextStep?.dueAt ? Math.max(today, new Date(nextStep.dueAt).getTime()) : null;
  const span = spanOf(past, today, nextAt);
  const x = (at: number) => LEFT + ((at - span.from) / (span.to - span.from)) * (width - LEFT - 12);
  return (
    <figure ref={figure}>
      <svg className="chart" viewBox={`0 0 ${width} 116`} role="img" aria-labelledby={title}>
        <title id={title}>{summary(past, today)}</title>
        {quietSince && <Silence from={x(Math.max(span.from, new Date(quietSince).getTime()))} to={x(today)} />}
        <Lane y={LANE.buyer} width={width} label="Buyer" />
        <Lane y={LANE.us} width={width} label="Our side" />
        <line x1={x(today)} x2={x(today)} y1="10" y2={AXIS - 8} className="chart-today" />
        <text x={x(today)} y={AXIS + 16} textAnchor="middle" className="chart-text">
          today
        </text>
        <text x={LEFT} y={AXIS + 16} className="chart-text">
          {counted(Math.round((today - span.from) / DAY_MS), "day")} ago
        </text>
        {keyedContacts(past).map(([key, contact]) => (
          <Dot key={key} contact={contact} x={x} from={span.from} />
        ))}
        {nextStep?.dueAt && nextAt !== null && (
          <circle cx={x(nextAt)} cy={LANE.us} r="6" className="chart-next">
            <title>Next step, {dayOrTime(nextStep.dueAt, nextStep.dueDay)}</title>
          </circle>
        )}
      </svg>
      <figcaption className="small muted legend">
        <span className="legend-buyer">from the buyer</span>
        <span className="legend-us">from our side</span>
        {quietSince && <span className="legend-silence">silence</span>}
        {past.some(({ counts }) => counts) && <span className="legend-counted">counted from here</span>}
        {nextAt !== null && <span className="legend-next">next step</span>}
      </figcaption>
    </figure>
  );
}

/** At least 30 days, at most 120 or back to the contact that counts, and ahead as far as the next step where that is near. */
function spanOf(contacts: readonly MarkedContact[], today: number, nextAt: number | null) {
  const daysBefore = (at: number) => Math.ceil((today - at) / DAY_MS) + 2;
  const oldest = Math.min(today, ...contacts.map(({ at }) => new Date(at).getTime()));
  const since = contacts.find(({ counts }) => counts)?.at;
  const most = Math.max(120, since ? daysBefore(new Date(since).getTime()) : 0);
  const days = Math.min(most, Math.max(30, daysBefore(oldest)));
  const ahead = nextAt === null ? 0 : Math.min(30 * DAY_MS, nextAt - today);
  return { from: today - days * DAY_MS, to: today + ahead + days * 0.04 * DAY_MS };
}

/** The same as the picture, in a sentence. */
function summary(contacts: readonly MarkedContact[], today: number): string {
  const fromBuyer = contacts.filter(({ buyer }) => buyer);
  const ago = ({ at }: MarkedContact) => counted(Math.floor((today - new Date(at).getTime()) / DAY_MS), "day");
  const [latest] = contacts;
  const [latestOfBuyer] = fromBuyer;
  if (!latest) return "No contact is known.";
  const buyer = latestOfBuyer ? `the buyer was last there ${ago(latestOfBuyer)} ago` : "none of it from the buyer";
  return `${counted(contacts.length, "contact")}, the latest ${ago(latest)} ago; ${buyer}.`;
}

function Lane({ y, width, label }: { y: number; width: number; label: string }) {
  return (
    <>
      <text x="0" y={y + 5} className="chart-text">
        {label}
      </text>
      <line x1={LEFT} x2={width} y1={y} y2={y} className="chart-lane" />
    </>
  );
}

function Silence({ from, to }: { from: number; to: number }) {
  return <rect x={from} y="10" width={Math.max(0, to - from)} height={AXIS - 18} className="chart-silence" />;
}

function Dot({ contact, x, from }: { contact: MarkedContact; x: (at: number) => number; from: number }) {
  const at = new Date(contact.at).getTime();
  if (at < from) return null;
  const y = contact.buyer ? LANE.buyer : LANE.us;
  return (
    <g>
      {contact.counts && <circle cx={x(at)} cy={y} r="10" className="chart-counted" />}
      <circle cx={x(at)} cy={y} r="6" className={contact.buyer ? "chart-buyer" : "chart-us"}>
        <title>
          {inWords(contact)}, {dayOrTime(contact.at, contact.day)}
          {contact.counts && ": silence is counted from here"}
        </title>
      </circle>
    </g>
  );
}
