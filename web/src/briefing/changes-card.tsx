import { Link } from "wouter";
import { now } from "../api/clock";
import { Card, When } from "../ui/parts";
import { dayOf } from "../ui/words";
import { beginningOf, netChanges } from "./changed";
import type { Briefing } from "./targets";

interface ChangesProps {
  briefing: Briefing;
  connectedAt: string | null;
}

/** What is otherwise than when these people met last. */
export function ChangesCard({ briefing, connectedAt }: ChangesProps) {
  const { changes, previousMeeting } = briefing;
  const changed = netChanges(changes);
  const beginning = beginningOf(briefing, connectedAt, now());
  const asked = previousMeeting ? "Changed since the last meeting" : "Changed in the last 30 days";
  return (
    <Card title={beginning ? "Changed since the CRM was connected" : asked}>
      {beginning && <p className="small muted">{dayOf(beginning)}. What changed before may be missing here.</p>}
      {previousMeeting && (
        <p className="small muted">
          {beginning && "The last meeting: "}
          <Link href={`/meetings/${previousMeeting.id}`} dir="auto">
            {previousMeeting.title}
          </Link>
          , {dayOf(previousMeeting.startsAt)}
        </p>
      )}
      {changed.length === 0 ? (
        <p className="muted">As far as has been seen, nothing of the deal has changed.</p>
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
