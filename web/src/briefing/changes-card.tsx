import { Link } from "wouter";
import { Card, When } from "../ui/parts";
import { dayOf } from "../ui/words";
import { netChanges } from "./changed";
import type { Briefing } from "./targets";

/** What is otherwise than when these people met last. */
export function ChangesCard({ briefing: { changes, previousMeeting } }: { briefing: Briefing }) {
  const changed = netChanges(changes);
  return (
    <Card title={previousMeeting ? "Changed since the last meeting" : "Changed in the last 30 days"}>
      {previousMeeting && (
        <p className="small muted">
          <Link href={`/meetings/${previousMeeting.id}`} dir="auto">
            {previousMeeting.title}
          </Link>
          , {dayOf(previousMeeting.startsAt)}
        </p>
      )}
      {changed.length === 0 ? (
        <p className="muted">Nothing of the deal has changed in the CRM.</p>
      ) : (
        <ul className="changes">
          {changed.map(({ kind, what, from, to, seenAt }) => (
            <li key={kind}>
              <span className="muted">{what}</span>{" "}
              <span>
                <s>
                  <span className="visually-hidden">was </span>
                  <bdi>{from}</bdi>
                </s>{" "}
                <span aria-hidden="true">→</span>
                <span className="visually-hidden">, is now</span> <strong dir="auto">{to}</strong>{" "}
                <span className="small muted">
                  seen <When at={seenAt} />
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
