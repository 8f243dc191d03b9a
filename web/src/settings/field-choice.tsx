import { useId, useState } from "react";
import { useMutation, useQuery } from "urql";
import {
  type CrmEntity,
  CustomFieldsDocument,
  type CustomFieldsQuery,
  SetFieldMappingDocument,
} from "../api/operations.generated";
import { fieldKind } from "../ui/field-types";
import { useFocusAtFirst } from "../ui/focus";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { counted, number } from "../ui/words";
import { found } from "./figures";

type Field = CustomFieldsQuery["connection"]["fields"][number];

/** Of what fits the search; a company may have hundreds. */
const MOST_SHOWN = 30;

interface FieldChoiceProps {
  entity: CrmEntity;
  present: string | undefined;
  onClose(changed: boolean): void;
}

/** The CRM's own list of custom fields, as read just now, to choose one of. */
export function FieldChoice({ entity, present, onClose }: FieldChoiceProps) {
  const [{ data, error, fetching }, refresh] = useQuery({
    query: CustomFieldsDocument,
    variables: { entity },
    requestPolicy: "network-only",
  });
  if (error) {
    return (
      <div className="stack stack-tight">
        <Problem error={error} again={refresh} />
        <div>
          <Button onClick={() => onClose(false)}>Cancel</Button>
        </div>
      </div>
    );
  }
  if (fetching || !data) return <p role="status">Reading the fields from the CRM …</p>;
  return <FieldForm entity={entity} present={present} fields={data.connection.fields} onClose={onClose} />;
}

function FieldForm({ entity, present, fields, onClose }: FieldChoiceProps & { fields: readonly Field[] }) {
  const id = useId();
  const search = useFocusAtFirst<HTMLInputElement>();
  const [typed, type] = useState("");
  const [key, setKey] = useState(present ?? "");
  const [{ fetching, data, error }, set] = useMutation(SetFieldMappingDocument);
  const refusal = data && "message" in data.setFieldMapping ? data.setFieldMapping.message : null;
  const fitting = found(fields, typed);
  const shown = fitting.slice(0, MOST_SHOWN);
  // What is out of sight is not taken.
  const chosen = shown.find((field) => field.key === key);
  const save = async () => {
    const { data: answer } = await set({ input: { entity, fieldKey: key } });
    if (answer && "mappings" in answer.setFieldMapping) onClose(true);
  };
  return (
    <form
      className="stack stack-tight"
      onSubmit={(event) => {
        event.preventDefault();
        if (chosen?.writable && !fetching) save();
      }}
    >
      <div className="field">
        <label htmlFor={id}>Search the custom fields</label>
        <input id={id} ref={search} className="input" value={typed} onChange={({ target }) => type(target.value)} />
        <p className="small muted" role="status">
          {counted(fitting.length, "field")}
          {fitting.length > MOST_SHOWN && `, the first ${number(MOST_SHOWN)} are shown`}
        </p>
      </div>
      <p className="small muted">
        As the CRM had them at most a minute ago; an hour, where few of its tokens are left today.
      </p>
      <fieldset className="field-list">
        <legend className="visually-hidden">Custom field</legend>
        {shown.map((field) => (
          <FieldLine key={field.key} field={field} isChosen={field.key === key} onChoose={() => setKey(field.key)} />
        ))}
      </fieldset>
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

function FieldLine({ field, isChosen, onChoose }: { field: Field; isChosen: boolean; onChoose(): void }) {
  const { name, type, writable, options } = field;
  return (
    <label className="check">
      <input type="radio" name="field" checked={isChosen} disabled={!writable} onChange={onChoose} />
      <span>
        <bdi>{name}</bdi>{" "}
        <span className="muted small">{writable ? fieldKind(type).text : "only the CRM fills it"}</span>
        {isChosen && options.length > 0 && (
          <span className="small muted">
            {`, ${counted(options.length, "option")}: `}
            <bdi>{options.map(({ label }) => label).join(", ")}</bdi>
          </span>
        )}
      </span>
    </label>
  );
}
