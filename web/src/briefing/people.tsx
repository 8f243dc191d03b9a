import { useState } from "react";
import { Badge, Button, Card, Named, When } from "../ui/parts";
import { apart, money, number } from "../ui/words";
import { type PersonWithWord, withLastWord } from "./last-word";
import type { Briefing, Meeting } from "./targets";
import { DEAL_STATUS } from "./wording";

const SIDE = { BUYER: "buyer", SELLER: "our side", IGNORED: "left out" } as const;

/** Of a town hall the first; the others are there for who looks for them. */
const SHORT = 8;

/** Why no attendee is shown as a person of the CRM. */
function nobody({ cancelledAt, attendees }: Meeting): string {
  if (cancelledAt) return "Nobody is looked up for a meeting that was cancelled.";
  const isOpen = attendees.some(({ match }) => match.status === "PENDING");
  return isOpen ? "Who the attendees are in the CRM is not known yet." : "No attendee is a known person of the CRM.";
}

/** The known people first, who spoke last before the others, then who else was there and why they are not known. */
export function Attendees({ meeting, briefing }: { meeting: Meeting; briefing: Briefing }) {
  const [all, showAll] = useState(false);
  const persons = withLastWord(briefing.persons, briefing.timeline);
  const others = meeting.attendees.filter(({ match }) => match.status !== "MATCHED");
  const shown = all ? persons : persons.slice(0, SHORT);
  return (
    <Card title="People">
      {persons.length === 0 && <p className="muted">{nobody(meeting)}</p>}
      <ul className="stack">
        {shown.map(({ person, last }) => (
          <li key={person.id}>
            <PersonLine person={person} last={last} />
          </li>
        ))}
      </ul>
      {persons.length > shown.length && (
        <div>
          <Button onClick={() => showAll(true)}>Show all {number(persons.length)}</Button>
        </div>
      )}
      {others.length > 0 && (
        <details className="on-screen">
          <summary>Others in the meeting ({number(others.length)})</summary>
          <ul className="stack stack-tight small">
            {others.map(({ email, name, side, match }) => (
              <li key={email} className="breakable">
                <bdi>{name ?? email}</bdi> <span className="muted">({SIDE[side]})</span>
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

function PersonLine({ person: { name, crmUrl, organization, emails }, last }: PersonWithWord) {
  const mail = emails.find(({ primary }) => primary) ?? emails[0];
  return (
    <>
      <h3 dir="auto">
        {crmUrl ? (
          <a href={crmUrl} target="_blank" rel="noreferrer">
            {name}
          </a>
        ) : (
          name
        )}
      </h3>
      <p className="small muted breakable">
        <bdi>{organization?.name ?? "Company not known"}</bdi>
        {mail && (
          <>
            <br />
            <bdi>{mail.address}</bdi>
          </>
        )}
        <br />
        {last ? (
          <>
            {last.what === null ? "last wrote" : <bdi>{last.what}</bdi>} <When at={last.at} on={last.day} />
          </>
        ) : (
          "no word of theirs is known"
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
            <Named name={title} crmUrl={crmUrl} />{" "}
            <Badge tone={DEAL_STATUS[status].tone}>{DEAL_STATUS[status].text}</Badge>
            <br />
            <span className="small muted breakable">
              {[stage && apart(stage.name), value && money(value)].filter(Boolean).join(", ")}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
