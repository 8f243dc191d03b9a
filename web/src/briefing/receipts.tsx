import type { WritesQuery } from "../api/operations.generated";
import { Badge, When } from "../ui/parts";
import { WRITE_STATE } from "./wording";

export type Note = Extract<WritesQuery["crmWrites"]["nodes"][number], { __typename: "NoteWrite" }>;

/** What became of each note, also where that is not known. */
export function Receipts({ notes }: { notes: readonly Note[] }) {
  if (notes.length === 0) return null;
  return (
    <div className="stack stack-tight" aria-live="polite">
      <h3>Receipts</h3>
      <ul className="list">
        {notes.map((note) => (
          <li key={note.id} className="list-line">
            <Receipt note={note} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Receipt({ note }: { note: Note }) {
  const { state, reference, requestedAt, requestedBy, error } = note;
  const { text, tone } = WRITE_STATE[state];
  return (
    <>
      <div>
        <p>
          {targetName(note)} <span className="small muted">{reference}</span>
        </p>
        <p className="small muted">
          <When at={requestedAt} />, by {requestedBy}
        </p>
        {state === "UNKNOWN" && (
          <p className="small">
            The CRM's answer was lost, so the note may be there or not. The service looks for it by its reference, and
            never sends it again by itself. Do not write it a second time before this is settled.
          </p>
        )}
        {state === "FAILED" && error && <p className="small">{error.message}</p>}
      </div>
      <Badge tone={tone}>{text}</Badge>
    </>
  );
}

function targetName({ target }: Note): string {
  if (target?.__typename === "Deal") return target.title;
  if (target?.__typename === "Person" || target?.__typename === "Organization") return target.name;
  return "A record that can no longer be read here";
}
