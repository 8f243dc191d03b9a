import { useId, useMemo, useState } from "react";
import type { CrmNoteFragment } from "../api/operations.generated";
import { Button, Card, ToTheCrm, When } from "../ui/parts";
import { NoteHtml } from "./note-html";

/** Characters of markup that are shown without a further click; about ten lines. */
const SHORT = 900;

/** What people wrote of the deal in the CRM, as they formatted it. */
export function CrmNotes({ notes }: { notes: readonly CrmNoteFragment[] }) {
  if (notes.length === 0) return null;
  return (
    <Card title="Notes in the CRM">
      {notes.map((note) => (
        <CrmNote key={note.id} note={note} />
      ))}
    </Card>
  );
}

function CrmNote({ note: { html, createdAt, author, ours, crmUrl, truncated } }: { note: CrmNoteFragment }) {
  const id = useId();
  const isLong = html.length > SHORT;
  const [whole, showWhole] = useState(false);
  const content = useMemo(() => <NoteHtml html={html} />, [html]);
  return (
    <article className="quote stack stack-tight">
      <div id={id} dir="auto" className={isLong && !whole ? "note-short" : undefined}>
        {content}
      </div>
      {isLong && (
        <div className="on-screen">
          <Button aria-controls={id} aria-expanded={whole} onClick={() => showWhole(!whole)}>
            {whole ? "Show less" : "Show the whole note"}
          </Button>
        </div>
      )}
      <p className="small muted">
        <bdi>{author?.name ?? "Somebody"}</bdi>
        {ours && " through this service"}, <When at={createdAt} />
        {truncated && ", longer in the CRM"}
        <ToTheCrm crmUrl={crmUrl} />
      </p>
    </article>
  );
}
