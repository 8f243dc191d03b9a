import { Card } from "../ui/parts";
import { draftSlot } from "./draft-slots";
import { keptDraft } from "./drafts";
import type { Viewer } from "./targets";

/** What was typed before the CRM was disconnected: it waits for the next connect, and can be copied meanwhile. */
export function NoteKept({ viewer, meetingId }: { viewer: Viewer; meetingId: string }) {
  const text = keptDraft(draftSlot(viewer, meetingId, "note"));
  if (text.trim() === "") return null;
  return (
    <Card title="Your note is kept">
      <p className="muted">It was not written to the CRM. It stands in the form again once a CRM is connected.</p>
      <p className="kept-text" dir="auto">
        {text}
      </p>
    </Card>
  );
}
