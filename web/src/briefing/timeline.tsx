import { useState } from "react";
import { Button, Card, When } from "../ui/parts";
import { number } from "../ui/words";
import { keyedContacts, type MarkedContact } from "./silence";
import { inWords } from "./wording";

const SHORT = 6;

/** What happened last with these people and about this deal, newest first; the contact that counts is never left out. */
export function Timeline({ contacts }: { contacts: readonly MarkedContact[] }) {
  const [all, showAll] = useState(false);
  const shown = contacts.filter(({ counts }, index) => all || counts || index < SHORT);
  return (
    <Card title="Timeline">
      {contacts.length === 0 && <p className="muted">No contact is known.</p>}
      <ol className="timeline">
        {keyedContacts(shown).map(([key, contact]) => (
          <li key={key} className={contact.counts ? "timeline-counts" : undefined}>
            <bdi>{inWords(contact)}</bdi>
            <br />
            <span className="small muted">
              <When at={contact.at} on={contact.day} />
              {contact.counts && ", silence is counted from here"}
            </span>
          </li>
        ))}
      </ol>
      {contacts.length > shown.length && (
        <div className="on-screen">
          <Button onClick={() => showAll(true)}>Show all {number(contacts.length)}</Button>
        </div>
      )}
    </Card>
  );
}
