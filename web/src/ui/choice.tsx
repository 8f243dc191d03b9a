import { type ReactNode, useId } from "react";

interface ChoiceProps {
  name: string;
  value: string | null;
  /** What no choice is called; absent: there is always one. */
  none?: string;
  onChoose(value: string | null): void;
  children: ReactNode;
}

/** One of a list, under its name. */
export function Choice({ name, value, none, onChoose, children }: ChoiceProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{name}</label>
      <select id={id} className="input" value={value ?? ""} onChange={({ target }) => onChoose(target.value || null)}>
        {none && <option value="">{none}</option>}
        {children}
      </select>
    </div>
  );
}
