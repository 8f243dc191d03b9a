import { useState } from "react";
import { Link } from "wouter";
import type { FreshnessFragment, MeetingLineFragment } from "../api/operations.generated";
import { Badge } from "../ui/parts";
import { dateAndTime, span } from "../ui/words";
import { aboutOf } from "./about";
import { Withdraw, type Withdrawal } from "./withdraw";

interface MeetingLineProps {
  meeting: MeetingLineFragment;
  connection: FreshnessFragment;
  isToday: boolean;
  onChanged(): void;
}

export function MeetingLine({ meeting, connection, isToday, onChanged }: MeetingLineProps) {
  const [asked, ask] = useState<Withdrawal | null>(null);
  const { id, title, startsAt, endsAt, ownerEmail, cancelledAt, match } = meeting;
  const { deal, badge, instead } = aboutOf(meeting, connection);
  return (
    <li className="list-line">
      <div>
        <h3 className="list-title">
          <Link href={`/meetings/${id}`} dir="auto">
            {title}
          </Link>
        </h3>
        <p className="small muted">
          <time dateTime={startsAt}>{isToday ? span(startsAt, endsAt) : dateAndTime(startsAt)}</time>, {ownerEmail}
        </p>
      </div>
      <div className="row">
        {deal && <bdi>{deal}</bdi>}
        {badge && <Badge tone={badge.tone}>{badge.text}</Badge>}
        {instead && (
          <span className="muted" title={match.reason}>
            {instead}
          </span>
        )}
      </div>
      <div className="row">
        {!cancelledAt && (
          <button type="button" className="link" aria-label={`Cancel ${title}`} onClick={() => ask("cancel")}>
            Cancel …
          </button>
        )}
        <button type="button" className="link" aria-label={`Delete ${title}`} onClick={() => ask("delete")}>
          Delete …
        </button>
      </div>
      {asked && <Withdraw what={asked} meeting={meeting} onClose={() => ask(null)} onDone={onChanged} />}
    </li>
  );
}
