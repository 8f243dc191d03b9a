import { useEffect, useEffectEvent } from "react";
import { useSubscription } from "urql";
import { type MappingFragment, WriteSettledDocument, WritesDocument } from "../api/operations.generated";
import { useRead, useRereads } from "../api/read";
import { Card } from "../ui/parts";
import { Problem } from "../ui/problem";
import { draftSlot, sentSlot } from "./draft-slots";
import { FieldForm } from "./field-form";
import { NoteForm } from "./note-form";
import { Receipts } from "./receipts";
import { type Briefing, type Meeting, matchedTarget, targetsOf, type Viewer } from "./targets";

/** The viewer's own writes are told of when they are settled; those of others are looked at so often. */
const LOOK_AGAIN_MS = 10_000;

interface NotesProps {
  meeting: Meeting;
  briefing: Briefing;
  viewer: Viewer;
  mappings: readonly MappingFragment[];
  /** Whom the CRM shows as the author of what is written. */
  author: string | null;
}

/** Writing a meeting's note and its nominated fields, and the receipts of all that was written for it. */
export function Notes({ meeting, briefing, viewer, mappings, author }: NotesProps) {
  const { data, error, reread } = useRead(WritesDocument, { meetingId: meeting.id });
  const writes = data?.crmWrites.nodes ?? [];
  useRereads(
    writes.some(({ state }) => state === "UNKNOWN"),
    reread,
    LOOK_AGAIN_MS,
  );
  useSettled(reread);
  return (
    <Card title="Note to the CRM">
      <NoteForm
        meetingId={meeting.id}
        slot={draftSlot(viewer, meeting.id, "note")}
        sentSlot={sentSlot(viewer, meeting.id)}
        targets={targetsOf(briefing)}
        matched={matchedTarget(meeting, briefing)}
        mayChange={meeting.match.mayChange}
        author={author}
        onChange={reread}
      />
      <FieldForm
        meetingId={meeting.id}
        slot={draftSlot(viewer, meeting.id, "fields")}
        mappings={mappings}
        briefing={briefing}
        mayChange={meeting.match.mayChange}
        writes={writes}
        onChange={reread}
      />
      {error && <Problem error={error} again={reread} />}
      <Receipts writes={writes} mappings={mappings} />
    </Card>
  );
}

function useSettled(reread: () => void): void {
  const [{ data, error }] = useSubscription({ query: WriteSettledDocument });
  const onSettled = useEffectEvent(reread);
  useEffect(() => {
    if (data || error) onSettled();
  }, [data, error]);
}
