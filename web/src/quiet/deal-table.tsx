import { Badge, Named } from "../ui/parts";
import { VERDICT } from "../ui/tones";
import { counted, dateAndTime, money } from "../ui/words";
import { byStrength, type QuietDeal, silenceOf } from "./silence";

interface DealTableProps {
  deals: readonly QuietDeal[];
  onOpen(deal: QuietDeal): void;
}

/** A row a deal, in the order that was asked for. */
export function DealTable({ deals, onOpen }: DealTableProps) {
  return (
    <table className="deals">
      <caption className="visually-hidden">Deals</caption>
      <thead className="small muted">
        <tr>
          <th scope="col">Deal</th>
          <th scope="col">Silence</th>
          <th scope="col">Value</th>
          <th scope="col">Owner</th>
          <th scope="col">Why</th>
          <th scope="col">
            <span className="visually-hidden">What can be done</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {deals.map((deal) => (
          <DealRow key={deal.id} deal={deal} onOpen={() => onOpen(deal)} />
        ))}
      </tbody>
    </table>
  );
}

function DealRow({ deal, onOpen }: { deal: QuietDeal; onOpen(): void }) {
  const { title, crmUrl, organization, value, owner, stage, quiet, snooze } = deal;
  const { text, tone } = VERDICT[quiet.verdict];
  const silence = silenceOf(quiet);
  return (
    <tr>
      <th scope="row">
        <Named name={title} crmUrl={crmUrl} />
        <span className="small muted company">
          {organization && (
            <>
              <bdi>{organization.name}</bdi>,{" "}
            </>
          )}
          <bdi>{stage?.name ?? "stage not known"}</bdi>
        </span>
      </th>
      <td data-name="Silence">
        <span className="number nowrap">{silence.days}</span> <Badge tone={tone}>{text}</Badge>
        {silence.of && <span className="small muted company">{silence.of}</span>}
      </td>
      <td data-name="Value" className="number">
        {value ? money(value) : "not known"}
      </td>
      <td data-name="Owner">
        <bdi>{owner?.name ?? "not known"}</bdi>
      </td>
      <td data-name="Why" className="small">
        {snooze ? (
          <>
            <bdi>{snooze.reason}</bdi> <span className="muted">(until {dateAndTime(snooze.until)})</span>
          </>
        ) : (
          <Why quiet={quiet} title={title} onOpen={onOpen} />
        )}
      </td>
      <td>
        <button
          type="button"
          className="link"
          aria-label={`${snooze ? "Wake or snooze" : "Snooze"} ${title}`}
          onClick={onOpen}
        >
          {snooze ? "Wake …" : "Snooze …"}
        </button>
      </td>
    </tr>
  );
}

function Why({ quiet, title, onOpen }: { quiet: QuietDeal["quiet"]; title: string; onOpen(): void }) {
  const { strongest, others } = byStrength(quiet);
  return (
    <>
      {strongest?.message ?? VERDICT[quiet.verdict].meaning}{" "}
      {others.length > 0 && (
        <button
          type="button"
          className="link"
          aria-label={`${counted(others.length, "more reason")} for ${title}`}
          onClick={onOpen}
        >
          + {others.length} more
        </button>
      )}
    </>
  );
}
