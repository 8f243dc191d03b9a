import type { ReactNode } from "react";
import type { MappingFragment, WritesQuery, WrittenToFragment } from "../api/operations.generated";
import { Badge, Named, When } from "../ui/parts";
import { fateOf, RECORD } from "./wording";

type Write = WritesQuery["crmWrites"]["nodes"][number];

/** What became of each note and field value, also where that is not known. */
export function Receipts({ writes, mappings }: { writes: readonly Write[]; mappings: readonly MappingFragment[] }) {
  if (writes.length === 0) return null;
  return (
    <div className="stack stack-tight" aria-live="polite">
      <h3>Receipts</h3>
      <ul className="list">
        {writes.map((write) => (
          <li key={write.id} className="list-line">
            <Receipt write={write} mappings={mappings} />
          </li>
        ))}
      </ul>
    </div>
  );
}

interface ReceiptProps {
  write: Write;
  /** A field that is nominated no more has no name here. */
  mappings?: readonly MappingFragment[];
  /** What more is said of it. */
  children?: ReactNode;
}

export function Receipt({ write, mappings = [], children }: ReceiptProps) {
  const { state, requestedAt, requestedBy, error } = write;
  const { text, tone } = fateOf(write);
  const isNote = write.__typename === "NoteWrite";
  return (
    <>
      <div>
        <p>
          <RecordName write={write} />{" "}
          <span className="small muted breakable">
            {isNote ? write.reference : `field ${fieldName(write, mappings)}`}
          </span>
        </p>
        <p className="small muted">
          <When at={requestedAt} />, by <bdi>{requestedBy}</bdi>
        </p>
        {children}
        {error && <p className="small">{error.message}</p>}
        {state === "UNKNOWN" && !error && <p className="small">It is being sent, and nothing is known of it yet.</p>}
        {state === "UNKNOWN" && isNote && <p className="small">Written again, it may be there twice.</p>}
      </div>
      <Badge tone={tone}>{text}</Badge>
    </>
  );
}

const fieldName = ({ fieldKey }: { fieldKey: string }, mappings: readonly MappingFragment[]): string =>
  mappings.find((mapping) => mapping.fieldKey === fieldKey)?.fieldName ?? fieldKey;

function RecordName({ write }: { write: Write }) {
  const record = recordOf(write);
  if (!record) return <>A {RECORD[write.entity]} that can no longer be read here</>;
  return <Named {...record} />;
}

type WrittenTo = WrittenToFragment | { __typename: string } | null;

/** What was written to; null where it is no longer readable. */
export function recordOf({ target }: { target: WrittenTo }): { name: string; crmUrl: string | null } | null {
  if (!target || !("id" in target)) return null;
  return { name: "title" in target ? target.title : target.name, crmUrl: target.crmUrl };
}
