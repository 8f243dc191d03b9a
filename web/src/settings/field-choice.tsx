import { useId, useState } from "react";
import { useMutation, useQuery } from "urql";
import {
  type CrmEntity,
  CustomFieldsDocument,
  type CustomFieldsQuery,
  SetFieldMappingDocument,
} from "../api/operations.generated";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { counted } from "../ui/words";

type Field = CustomFieldsQuery["connection"]["fields"][number];

interface FieldChoiceProps {
  entity: CrmEntity;
  present: string | undefined;
  onClose(changed: boolean): void;
}

/** The CRM's own list of custom fields, read now, to choose one of. */
export function FieldChoice({ entity, present, onClose }: FieldChoiceProps) {
  const [{ data, error, fetching }, refresh] = useQuery({
    query: CustomFieldsDocument,
    variables: { entity },
    requestPolicy: "network-only",
  });
  if (error) return <Problem error={error} again={refresh} />;
  if (fetching || !data) return <p role="status">Reading the fields from the CRM …</p>;
  return <FieldForm entity={entity} present={present} fields={data.connection.fields} onClose={onClose} />;
}

function FieldForm({ entity, present, fields, onClose }: FieldChoiceProps & { fields: readonly Field[] }) {
  const id = useId();
  const writable = fields.filter((field) => field.writable);
  const [key, setKey] = useState(present ?? writable[0]?.key ?? "");
  const [{ fetching, data, error }, set] = useMutation(SetFieldMappingDocument);
  const refusal = data && "message" in data.setFieldMapping ? data.setFieldMapping.message : null;
  const chosen = fields.find((field) => field.key === key);
  const save = async () => {
    const { data: answer } = await set({ input: { entity, fieldKey: key } });
    if (answer && "mappings" in answer.setFieldMapping) onClose(true);
  };
  return (
    <form
      className="stack stack-tight"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <div className="field">
        <label htmlFor={id}>Custom field</label>
        <select id={id} className="input" value={key} onChange={({ target }) => setKey(target.value)}>
          {fields.map((field) => (
            <option key={field.key} value={field.key} disabled={!field.writable}>
              {`${field.name} (${field.type})${field.writable ? "" : ", only the CRM fills it"}`}
            </option>
          ))}
        </select>
      </div>
      {chosen && chosen.options.length > 0 && (
        <p className="small muted">
          {counted(chosen.options.length, "option")}: {chosen.options.map(({ label }) => label).join(", ")}
        </p>
      )}
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
      <div className="row">
        <button type="submit" className="button button-main" aria-busy={fetching} disabled={!chosen?.writable}>
          Use this field
        </button>
        <Button onClick={() => onClose(false)}>Cancel</Button>
      </div>
    </form>
  );
}
