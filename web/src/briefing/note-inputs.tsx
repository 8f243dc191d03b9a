import { useId } from "react";
import type { Target } from "./targets";
import type { DraftText } from "./use-draft";

interface WhereProps {
  targets: readonly Target[];
  target: Target | null;
  isLocked: boolean;
  onChoose(target: Target): void;
}

export function Where({ targets, target, isLocked, onChoose }: WhereProps) {
  const id = useId();
  // A note that was sent is shown where it was sent to, also where the match says otherwise by now.
  const shown = target && !targets.some((other) => other.id === target.id) ? [target, ...targets] : targets;
  return (
    <div className="field">
      <label htmlFor={id}>Write on</label>
      <select
        id={id}
        className="input"
        value={target?.id ?? ""}
        disabled={isLocked}
        onChange={({ target: { value } }) => {
          const chosen = targets.find((other) => other.id === value);
          if (chosen) onChoose(chosen);
        }}
      >
        {!target && <option value="">Choose where to write …</option>}
        {shown.map(({ id: value, name }) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

/** What may be written, and whether the browser keeps it until then. */
export function NoteText({ draft, isLocked }: { draft: DraftText; isLocked: boolean }) {
  const id = useId();
  const { text, isKept, type } = draft;
  return (
    <div className="field">
      <label htmlFor={id}>Note</label>
      <textarea
        id={id}
        className="input note-text"
        dir="auto"
        rows={7}
        value={text}
        readOnly={isLocked}
        placeholder="What was said and agreed. Markdown works."
        aria-describedby={`${id}-kept`}
        onChange={({ target }) => type(target.value)}
      />
      <p id={`${id}-kept`} className={isKept ? "small muted" : "small notice tone-warn"}>
        {isKept
          ? "What you type is kept in this browser, for you alone, until it is written."
          : "This browser cannot keep your text: it is lost when you close or reload the page before it is written."}
      </p>
    </div>
  );
}
