import { Card } from "../ui/parts";
import { draftSlot, sentSlot } from "./draft-slots";
import { keptDraft } from "./drafts";
import { keptNote, noteElsewhere } from "./kept-notes";
import type { Viewer } from "./targets";

/** What was typed before the CRM was disconnected: it waits for the next connect, and can be copied meanwhile. */
export function NoteKept({ viewer, meetingId }: { viewer: Viewer; meetingId: string }) {
  const draft = keptDraft(draftSlot(viewer, meetingId, "note"));
  const { text } = draft;
  if (text.trim() === "") return null;
  const slot = sentSlot(viewer, meetingId);
  const isSent = [keptNote(slot), noteElsewhere(slot, draft)].some((note) => note?.content === text);
  return (
    <Card title="Your note is kept">
      <p className="muted">
        {isSent ? "We do not know yet whether it was written to the CRM." : "It was not written to the CRM."} It stands
        in the form again once a CRM is connected.
      </p>
      <p className="kept-text" dir="auto">
        {text}
      </p>
    </Card>
  );
}
