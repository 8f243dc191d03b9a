import { Badge } from "../ui/parts";
import { VERDICT } from "../ui/tones";
import { counted, money } from "../ui/words";
import type { QuietDeal, StageGroup } from "./groups";

/** The quiet deals of one stage, the longest silence first. */
export function StageTable({ stage: { name, deals } }: { stage: StageGroup }) {
  return (
    <table className="deals">
      <caption>
        <h3>
          {name} <span className="muted">{counted(deals.length, "deal")}</span>
        </h3>
      </caption>
      <thead className="small muted">
        <tr>
          <th scope="col">Deal</th>
          <th scope="col">Silence</th>
          <th scope="col">Value</th>
          <th scope="col">Owner</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {deals.map((deal) => (
          <DealRow key={deal.id} deal={deal} />
        ))}
      </tbody>
    </table>
  );
}

function DealRow({ deal: { title, crmUrl, organization, value, owner, quiet } }: { deal: QuietDeal }) {
  const { text, tone } = VERDICT[quiet.verdict];
  return (
    <tr>
      <th scope="row">
        {crmUrl ? (
          <a href={crmUrl} target="_blank" rel="noreferrer">
            {title}
          </a>
        ) : (
          title
        )}
        {organization && <span className="small muted company">{organization.name}</span>}
      </th>
      <td data-name="Silence">
        <span className="number nowrap">
          {quiet.quietDays === null ? "not known" : counted(quiet.quietDays, "day")}
        </span>
        <br />
        <Badge tone={tone}>{text}</Badge>
      </td>
      <td data-name="Value" className="number nowrap">
        {value ? money(value) : "not known"}
      </td>
      <td data-name="Owner">{owner?.name ?? "nobody"}</td>
      <td data-name="Why" className="small why">
        {quiet.reasons.map(({ code, message }) => (
          <p key={code}>{message}</p>
        ))}
      </td>
    </tr>
  );
}
