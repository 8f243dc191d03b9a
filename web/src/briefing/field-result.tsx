import type { MappingFragment } from "../api/operations.generated";
import { Badge, Named, Notice } from "../ui/parts";
import { isSignedOut, Problem } from "../ui/problem";
import { recordOf } from "./receipts";
import type { FieldWriting } from "./use-field-writing";
import { fateOf, RECORD } from "./wording";

interface ResultProps {
  writing: FieldWriting;
  mappings: readonly MappingFragment[];
}

/** What became of each value, or what is known meanwhile. */
export function FieldResult({ writing, mappings }: ResultProps) {
  if (writing.is === "SENT") return null;
  if (writing.is === "REFUSED") return <Notice tone="bad" title={writing.message} />;
  if (writing.is === "STOPPED" || writing.is === "RENOMINATED") {
    return (
      <>
        {writing.error && <Problem error={writing.error} />}
        <p className="small">
          {writing.is === "RENOMINATED"
            ? "Another field, or none, has been nominated since. Edit what is to be written."
            : "Send the fields again, or edit them first. However often they arrive, they are written once."}
        </p>
      </>
    );
  }
  if (writing.is === "LOST") {
    if (writing.error && isSignedOut(writing.error)) return <Problem error={writing.error} />;
    return (
      <Notice tone="warn" title="We do not know yet whether the fields were written">
        <p>The same is asked again until an answer comes. However often it arrives, it is written once.</p>
      </Notice>
    );
  }
  return (
    <div role="status">
      <ul className="list">
        {writing.writes.map((write) => {
          const { id, entity, error } = write;
          const { text, tone } = fateOf(write);
          const record = recordOf(write);
          const field = mappings.find(({ fieldKey }) => fieldKey === write.fieldKey);
          return (
            <li key={id} className="list-line">
              <div>
                <bdi>{field?.fieldName ?? write.fieldKey}</bdi> of{" "}
                {record ? <Named name={record.name} crmUrl={record.crmUrl} /> : `the ${RECORD[entity]}`}
                {error && <p className="small">{error.message}</p>}
              </div>
              <Badge tone={tone}>{text}</Badge>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
