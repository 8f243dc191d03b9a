import { Badge, Card, When } from "../ui/parts";
import { money } from "../ui/words";
import type { Briefing, Meeting } from "./briefing-page";
import { DEAL_STATUS } from "./wording";

type Person = Briefing["persons"][number];

const SIDE = { BUYER: "buyer", SELLER: "our side", IGNORED: "left out" } as const;

/** The known people first, then who else was there and why they are not known. */
export function Attendees({ meeting, persons }: { meeting: Meeting; persons: readonly Person[] }) {
  const others = meeting.attendees.filter(({ match }) => match.status !== "MATCHED");
  return (
    <Card title="People">
      {persons.length === 0 && <p className="muted">No attendee is a known person of the CRM.</p>}
      <ul className="stack">
        {persons.map((person) => (
          <li key={person.id}>
            <PersonLine person={person} />
          </li>
        ))}
      </ul>
      {others.length > 0 && (
        <details>
          <summary>Others in the meeting ({others.length})</summary>
          <ul className="stack stack-tight small">
            {others.map(({ email, name, side, match }) => (
              <li key={email}>
                {name ?? email} <span className="muted">({SIDE[side]})</span>
                <br />
                <span className="muted">{match.reason}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </Card>
  );
}

function PersonLine({ person: { name, crmUrl, organization, emails, lastIncomingMailAt } }: { person: Person }) {
  const mail = emails.find(({ primary }) => primary) ?? emails[0];
  return (
    <>
      <h3>
        {crmUrl ? (
          <a href={crmUrl} target="_blank" rel="noreferrer">
            {name}
          </a>
        ) : (
          name
        )}
      </h3>
      <p className="small muted breakable">
        {organization?.name ?? "No company"}
        {mail && (
          <>
            <br />
            {mail.address}
          </>
        )}
        {lastIncomingMailAt && (
          <>
            <br />
            last wrote <When at={lastIncomingMailAt} />
          </>
        )}
      </p>
    </>
  );
}

export function OtherDeals({ deals }: { deals: Briefing["otherDeals"] }) {
  if (deals.length === 0) return null;
  return (
    <Card title="Other deals of these people">
      <ul className="stack stack-tight">
        {deals.map(({ id, title, status, value, stage, crmUrl }) => (
          <li key={id}>
            {crmUrl ? (
              <a href={crmUrl} target="_blank" rel="noreferrer">
                {title}
              </a>
            ) : (
              title
            )}{" "}
            <Badge tone={DEAL_STATUS[status].tone}>{DEAL_STATUS[status].text}</Badge>
            <br />
            <span className="small muted">{[stage?.name, value && money(value)].filter(Boolean).join(", ")}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
