import { useState } from "react";
import type { ContactFragment } from "../api/operations.generated";
import { Button, Card, When } from "../ui/parts";
import { CONTACT } from "./wording";

const SHORT = 6;

/** What happened last with these people and about this deal, newest first. */
export function Timeline({ timeline }: { timeline: readonly ContactFragment[] }) {
  const [all, showAll] = useState(false);
  const shown = all ? timeline : timeline.slice(0, SHORT);
  return (
    <Card title="Timeline">
      {timeline.length === 0 && <p className="muted">No contact is known.</p>}
      <ol className="timeline">
        {shown.map((contact) => (
          <li key={`${contact.kind} ${contact.at} ${contact.person?.id} ${contact.activity?.id}`}>
            {inWords(contact)}
            <br />
            <span className="small muted">
              <When at={contact.at} />
            </span>
          </li>
        ))}
      </ol>
      {timeline.length > shown.length && (
        <div>
          <Button onClick={() => showAll(true)}>Show all {timeline.length}</Button>
        </div>
      )}
    </Card>
  );
}

/** "Mail from Marta Lindqvist", "Call about the offer (call)". */
export function inWords({ kind, person, activity }: ContactFragment): string {
  if (activity) return `${activity.subject} (${activity.type})`;
  const { text } = CONTACT[kind];
  const mail = kind === "INCOMING_MAIL" || kind === "OUTGOING_MAIL";
  return mail ? `${text} ${person?.name ?? "somebody"}` : text;
}
