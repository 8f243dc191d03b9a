import { useEffect, useEffectEvent, useId } from "react";
import type { MappingFragment, WritesQuery } from "../api/operations.generated";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { keptDraft } from "./drafts";
import { FieldInput } from "./field-input";
import { type FieldOptions, mayBeWritten, useFieldOptions } from "./field-options";
import { FieldResult } from "./field-result";
import {
  asFilled,
  asText,
  editable,
  type Filled,
  filledOf,
  mayChangeOf,
  missingOf,
  recordsOf,
  settled,
  targetOf,
  unchanged,
  unwritten,
  valuesOf,
} from "./field-values";
import type { Briefing, Target } from "./targets";
import { useDraft } from "./use-draft";
import { useFieldWriting } from "./use-field-writing";
import { RECORD } from "./wording";

interface FieldFormProps {
  meetingId: string;
  slot: string;
  mappings: readonly MappingFragment[];
  briefing: Briefing;
  /** Whether the match may come to say otherwise. */
  mayChange: boolean;
  /** The meeting's receipts as they are now. */
  writes: WritesQuery["crmWrites"]["nodes"];
  onChange(): void;
}

/** The nominated fields of the meeting's records, each with its result. */
export function FieldForm(props: FieldFormProps) {
  const { meetingId, slot, mappings, briefing, writes: receipts, onChange } = props;
  const id = useId();
  const draft = useDraft(slot);
  const filled = asFilled(draft.text);
  // An older form may report into what is kept, and a newer one change it.
  const kept = () => asFilled(keptDraft(slot).text);
  const { writing, isLocked, ...sender } = useFieldWriting(meetingId, mappings, (writes, sent) => {
    const now = kept();
    draft.type(asText(unwritten(now, unchanged(sent, now, mappings), writes)));
    onChange();
  });
  const settle = useEffectEvent((known: typeof receipts) => {
    const left = asText(settled(kept(), known));
    if (left !== asText(filled)) draft.type(left);
  });
  useEffect(() => settle(receipts), [receipts]);
  const shown = mappings.filter(({ entity }) => recordsOf(entity, briefing).length > 0);
  const options = useFieldOptions(shown);
  if (shown.length === 0) return null;
  const writable = shown.filter((mapping) => mayBeWritten(mapping) && options[mapping.entity].list !== null);
  const values = valuesOf(writable, filled, briefing, props.mayChange);
  const mayChange = (entity: MappingFragment["entity"]) => mayChangeOf(entity, briefing, props.mayChange);
  const missing = (mapping: MappingFragment) => {
    const { entity, health } = mapping;
    const lacking = missingOf(mapping, recordsOf(entity, briefing), filledOf(mapping, filled), mayChange(entity));
    return lacking && health !== "MISSING_IN_CRM" ? { id: `${id}-${entity}`, text: lacking } : null;
  };
  const isStopped = writing?.is === "STOPPED";
  const isRenominated = writing?.is === "RENOMINATED";
  return (
    <form
      className="stack field-form"
      aria-label="Nominated fields"
      onSubmit={(event) => {
        event.preventDefault();
        if (isStopped) sender.sendAgain();
        else if (!isLocked && values.length > 0) sender.send(values);
      }}
    >
      <h3>Nominated fields</h3>
      {shown.map((mapping) => (
        <Field
          key={mapping.entity}
          mapping={mapping}
          records={recordsOf(mapping.entity, briefing)}
          mayChange={mayChange(mapping.entity)}
          filled={filledOf(mapping, filled)}
          options={options[mapping.entity]}
          missing={missing(mapping)}
          isLocked={isLocked}
          onChange={(one) => draft.type(asText({ ...filled, [mapping.entity]: one }))}
        />
      ))}
      {!draft.isKept && (
        <p className="small notice tone-warn">This browser cannot keep what you fill in until it is written.</p>
      )}
      {writing && <FieldResult writing={writing} mappings={mappings} />}
      <div className="row">
        {!isRenominated && (
          <button
            type="submit"
            className="button"
            aria-busy={isLocked && !isStopped}
            aria-describedby={shown.flatMap((mapping) => missing(mapping)?.id ?? []).join(" ") || undefined}
            disabled={!isStopped && (values.length === 0 || isLocked)}
          >
            {isStopped ? "Send again" : writing?.is === "SENT" ? "Writing …" : "Write the fields"}
          </button>
        )}
        {(isStopped || isRenominated) && <Button onClick={sender.edit}>Edit</Button>}
      </div>
    </form>
  );
}

interface FieldProps {
  mapping: MappingFragment;
  records: readonly Target[];
  mayChange: boolean;
  filled: Filled | undefined;
  options: FieldOptions;
  /** What it lacks to be written. */
  missing: { id: string; text: string } | null;
  isLocked: boolean;
  onChange(filled: Filled): void;
}

function Field({ mapping, records, mayChange, filled, options, missing, isLocked, onChange }: FieldProps) {
  const { entity, fieldKey, fieldName, fieldType, health } = mapping;
  const name = fieldName ?? fieldKey;
  const target = targetOf(records, filled, mayChange);
  const parts = filled?.parts ?? [];
  const isUnknown = filled?.writeId !== undefined;
  const [only] = records;
  if (!mayBeWritten(mapping)) {
    return (
      <p className="small">
        <bdi>{name}</bdi> of the {RECORD[entity]} {health === "NOT_WRITABLE" ? "is filled by" : "is gone from"} the CRM,
        so nothing can be written into it. An owner or admin can nominate another field.
      </p>
    );
  }
  return (
    <div className="stack stack-tight">
      <FieldInput
        name={name}
        type={fieldType}
        options={options.list}
        parts={parts}
        isLocked={isLocked || isUnknown}
        describedBy={missing?.id}
        onChange={(typed) => onChange({ fieldKey, targetId: target?.id, parts: typed })}
      />
      {options.error && <Problem error={options.error} again={options.reread} />}
      {records.length > 1 || mayChange ? (
        <select
          className="input"
          aria-label={`Which ${RECORD[entity]} gets ${name}`}
          aria-describedby={missing?.id}
          value={target?.id ?? ""}
          disabled={isLocked || isUnknown}
          onChange={({ target: { value } }) => onChange({ fieldKey, targetId: value, parts })}
        >
          <option value="">Choose the {RECORD[entity]} …</option>
          {records.map((record) => (
            <option key={record.id} value={record.id}>
              {record.name}
            </option>
          ))}
        </select>
      ) : target ? (
        <p className="small muted">
          On the {RECORD[entity]} <bdi>{target.name}</bdi>
        </p>
      ) : (
        <p className="small">
          Filled in for another {RECORD[entity]}. Only what you change here is for <bdi>{only?.name}</bdi>.
        </p>
      )}
      {missing && (
        <p id={missing.id} className="small notice tone-warn">
          {missing.text}: until then it is not written.
        </p>
      )}
      {filled && isUnknown && (
        <Notice tone="warn" title="We do not know yet whether this was written">
          <p>It stays as it was sent until that is known, and is not sent again unless you edit it.</p>
          <Button disabled={isLocked} onClick={() => onChange(editable(filled))}>
            Edit
          </Button>
        </Notice>
      )}
    </div>
  );
}
