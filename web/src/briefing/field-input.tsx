import { useId } from "react";
import { asNumber, fieldKind } from "../ui/field-types";
import type { FieldOptions } from "./field-options";

interface FieldInputProps {
  name: string;
  type: string | null;
  options: FieldOptions["list"];
  parts: readonly string[];
  isLocked: boolean;
  /** The id of what says what is missing. */
  describedBy: string | undefined;
  onChange(parts: string[]): void;
}

/** What fills one field in, by its type. */
export function FieldInput({ name, type, options, parts, isLocked, describedBy, onChange }: FieldInputProps) {
  const id = useId();
  const [first = "", second = ""] = parts;
  const { text, input } = fieldKind(type);
  const label = (
    <label htmlFor={id} dir="auto">
      {name} <span className="muted small">({text})</span>
    </label>
  );
  const described = { "aria-describedby": describedBy };
  const common = { id, className: "input", disabled: isLocked, dir: "auto", ...described } as const;
  switch (input) {
    case "long":
      return (
        <div className="field">
          {label}
          <textarea {...common} rows={3} value={first} onChange={({ target }) => onChange([target.value])} />
        </div>
      );
    case "choice":
      return (
        <div className="field">
          {label}
          <select
            {...common}
            disabled={isLocked || options === null}
            value={first}
            onChange={({ target }) => onChange(target.value ? [target.value] : [])}
          >
            {options === null ? <option value={first}>{NOT_KNOWN}</option> : <option value="">Nothing chosen</option>}
            {withChosen(options, [first]).map((option) => (
              <option key={option.crmId} value={option.crmId}>
                {option.label}
              </option>
            ))}
          </select>
        </div>
      );
    case "choices":
      return (
        <fieldset className="field plain-set" disabled={isLocked} {...described}>
          <legend>
            {name} <span className="muted small">({text})</span>
          </legend>
          {options === null && <p className="small muted">{NOT_KNOWN}</p>}
          {withChosen(options, parts).map((option) => (
            <label key={option.crmId} className="check">
              <input
                type="checkbox"
                checked={parts.includes(option.crmId)}
                onChange={({ target: { checked } }) =>
                  onChange(checked ? [...parts, option.crmId] : parts.filter((chosen) => chosen !== option.crmId))
                }
              />
              {option.label}
            </label>
          ))}
        </fieldset>
      );
    case "amount":
    case "dates":
    case "times": {
      const [kind, secondName] = { amount: ["text", "currency"], dates: ["date", "until"], times: ["time", "until"] }[
        input
      ];
      return (
        <div className="field">
          {label}
          <div className="row pair">
            <input
              {...common}
              type={kind}
              value={first}
              {...(input === "amount" && { inputMode: "decimal" })}
              onChange={({ target }) => onChange([target.value, second])}
            />
            <input
              {...common}
              id={`${id}-second`}
              type={kind}
              aria-label={`${name}: ${secondName}`}
              placeholder={input === "amount" ? "EUR" : undefined}
              value={second}
              onChange={({ target }) => onChange([first, target.value])}
            />
          </div>
          {input === "amount" && <ReadAs typed={first} />}
        </div>
      );
    }
    case "number":
      return (
        <div className="field">
          {label}
          <input {...common} value={first} onChange={({ target }) => onChange([target.value])} />
          <ReadAs typed={first} />
        </div>
      );
    default:
      return (
        <div className="field">
          {label}
          <input
            {...common}
            type={input === "date" || input === "time" ? input : "text"}
            value={first}
            onChange={({ target }) => onChange([target.value])}
          />
        </div>
      );
  }
}

const NOT_KNOWN = "What can be chosen is not known yet";

/** What was chosen and is no option any more is shown as well: it would be sent, or stand in the way, unseen. */
function withChosen(options: FieldOptions["list"], parts: readonly string[]): NonNullable<FieldOptions["list"]> {
  if (!options) return [];
  const others = parts.filter((chosen) => chosen !== "" && !options.some(({ crmId }) => crmId === chosen));
  return [...options, ...others.map((crmId) => ({ crmId, label: `Not in the CRM's list: ${crmId}` }))];
}

/** What is written, where that looks otherwise: "1.200" is one thing in German and another in English. */
function ReadAs({ typed }: { typed: string }) {
  const number = asNumber(typed);
  return (
    <span className="small muted" aria-live="polite">
      {number !== typed.trim() && `Written as ${number}`}
    </span>
  );
}
