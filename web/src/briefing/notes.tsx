import { useCallback, useEffect } from "react";
import { useQuery } from "urql";
import { useKept } from "../api/kept";
import { WritesDocument } from "../api/operations.generated";
import { Card } from "../ui/parts";
import { Problem } from "../ui/problem";
import type { Briefing, Meeting } from "./briefing-page";
import { NoteForm, type Target } from "./note-form";
import { Receipts } from "./receipts";

/** A lost answer is looked up by the service within minutes; the page looks whether it has been. */
const LOOK_AGAIN_MS = 10_000;

/** Writing a meeting's note, and the receipts of all that was written for it. */
export function Notes({ meeting, briefing }: { meeting: Meeting; briefing: Briefing }) {
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
  const targets = targetsOf(briefing);
  return (
    <Card title="Note to the CRM">
      {targets.length === 0 ? (
        <p className="muted">Nobody in this meeting is matched to the CRM, so there is nothing to write a note on.</p>
      ) : (
        <NoteForm meetingId={meeting.id} targets={targets} onWritten={reread} />
      )}
      {error && <Problem error={error} again={reread} />}
      <Receipts writes={writes} />
    </Card>
  );
}

/** The meeting's deal first: it is what a note is most often about. */
function targetsOf({ deal, persons, organizations }: Briefing): Target[] {
  return [
    ...(deal ? [{ id: deal.id, name: `Deal: ${deal.title}` }] : []),
    ...persons.map(({ id, name }) => ({ id, name: `Person: ${name}` })),
    ...organizations.map(({ id, name }) => ({ id, name: `Organization: ${name}` })),
  ];
}
