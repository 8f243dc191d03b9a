import { useCallback, useEffect } from "react";
import { useQuery } from "urql";
import { useKept } from "../api/kept";
import { WritesDocument } from "../api/operations.generated";
import { Card } from "../ui/parts";
import { Problem } from "../ui/problem";
import type { Briefing, Meeting } from "./briefing-page";
import type { Target } from "./kept-notes";
import { NoteForm } from "./note-form";
import { Receipts } from "./receipts";

/** A lost answer is looked up by the service within minutes; the page looks whether it has been. */
const LOOK_AGAIN_MS = 10_000;

/** Writing a meeting's note, and the receipts of all that was written for it. */
export function Notes({ meeting, briefing, viewerId }: { meeting: Meeting; briefing: Briefing; viewerId: string }) {
  const [{ data, error }, refresh] = useQuery({
    query: WritesDocument,
    variables: { meetingId: meeting.id },
    requestPolicy: "cache-and-network",
  });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  const shown = useKept(data);
  const writes = shown?.crmWrites.nodes ?? [];
  const open = writes.some(({ state }) => state === "UNKNOWN");
  useEffect(() => {
    if (!open) return;
    const timer = setInterval(reread, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [open, reread]);
  return (
    <Card title="Note to the CRM">
      <NoteForm
        meetingId={meeting.id}
        viewerId={viewerId}
        targets={targetsOf(briefing)}
        matched={matchedTarget(meeting, briefing)}
        onChange={reread}
      />
      {error && <Problem error={error} again={reread} />}
      <Receipts writes={writes} />
    </Card>
  );
}

const onDeal = ({ id, title }: NonNullable<Briefing["deal"]>): Target => ({ id, name: `Deal: ${title}` });
const onPerson = ({ id, name }: Briefing["persons"][number]): Target => ({ id, name: `Person: ${name}` });

/** The meeting's deal first: it is what a note is most often about. */
function targetsOf({ deal, persons, organizations }: Briefing): Target[] {
  return [
    ...(deal ? [onDeal(deal)] : []),
    ...persons.map(onPerson),
    ...organizations.map(({ id, name }) => ({ id, name: `Organization: ${name}` })),
  ];
}

/** As the service chooses where no target is named: the deal, or the only person where no deal could be meant. */
function matchedTarget({ match, attendees }: Meeting, { deal, persons }: Briefing): Target | null {
  if (deal) return onDeal(deal);
  const [person, ...others] = persons;
  const isOpen = match.status !== "NONE" || attendees.some((attendee) => attendee.match.status === "AMBIGUOUS");
  return person && others.length === 0 && !isOpen ? onPerson(person) : null;
}
