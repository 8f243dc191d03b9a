import type { CrmEntity, WritesQuery } from "../api/operations.generated";
import { Badge, When } from "../ui/parts";
import { WRITE_STATE } from "./wording";

type Write = WritesQuery["crmWrites"]["nodes"][number];
type Note = Extract<Write, { __typename: "NoteWrite" }>;

const RECORD: Record<CrmEntity, string> = { DEAL: "deal", PERSON: "person", ORGANIZATION: "organization" };

/** What became of each note and field value, also where that is not known. */
export function Receipts({ writes }: { writes: readonly Write[] }) {
  if (writes.length === 0) return null;
  return (
    <div className="stack stack-tight" aria-live="polite">
      <h3>Receipts</h3>
      <ul className="list">
        {writes.map((write) => (
          <li key={write.id} className="list-line">
            <Receipt write={write} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Receipt({ write }: { write: Write }) {
  const { state, requestedAt, requestedBy, error } = write;
  const { text, tone } = WRITE_STATE[state];
  const what = write.__typename === "NoteWrite" ? "note" : "value";
  return (
    <>
      <div>
        {write.__typename === "NoteWrite" ? (
          <p>
            {targetName(write)} <span className="small muted">{write.reference}</span>
          </p>
        ) : (
          <p>
            Nominated field of the {RECORD[write.entity]}{" "}
            <span className="small muted breakable">{write.fieldKey}</span>
          </p>
        )}
        <p className="small muted">
          <When at={requestedAt} />, by {requestedBy}
        </p>
        {state === "UNKNOWN" && (
          <p className="small">
            The CRM's answer was lost, so the {what} may be there or not. The service looks it up, and never sends it
            again by itself. Do not write it a second time before this is settled.
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
