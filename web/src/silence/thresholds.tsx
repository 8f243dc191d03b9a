import { useEffect, useId, useRef, useState } from "react";
import type { SilenceQuery } from "../api/operations.generated";
import { Choice } from "../ui/choice";
import { Button, Card } from "../ui/parts";
import { faultOf, type Line, REASONS, reasonOf } from "./draft";

type Pipelines = SilenceQuery["connection"]["pipelines"];

interface ThresholdsProps {
  lines: readonly Line[];
  pipelines: Pipelines;
  /** Whether these are all there are. */
  isWhole: boolean;
  onChange(lines: readonly Line[]): void;
}

/** After how many days what counts; where nothing is said, the standard days do. */
export function Thresholds({ lines, pipelines, isWhole, onChange }: ThresholdsProps) {
  const [added, setAdded] = useState<string | null>(null);
  const adding = useRef<HTMLButtonElement>(null);
  const add = () => {
    const key = crypto.randomUUID();
    setAdded(key);
    onChange([...lines, { key, scope: "", code: "NO_RECENT_ACTIVITY", days: "14" }]);
  };
  const remove = (line: Line) => {
    adding.current?.focus();
    onChange(lines.filter((one) => one !== line));
  };
  return (
    <Card title="After how many days">
      {lines.length === 0 && isWhole && (
        <p className="muted">
          Nothing is set: the standard days hold, and where the CRM says after how many days a deal rots in its stage,
          those.
        </p>
      )}
      <ul className="choices">
        {lines.map((line) => (
          <li key={line.key} className="choice">
            <Threshold
              line={line}
              fault={faultOf(line, lines)}
              pipelines={pipelines}
              isAdded={line.key === added}
              onChange={(part) => onChange(lines.map((one) => (one === line ? { ...line, ...part } : one)))}
              onRemove={() => remove(line)}
            />
          </li>
        ))}
      </ul>
      <div>
        <Button ref={adding} onClick={add}>
          Add days
        </Button>
      </div>
    </Card>
  );
}

interface ThresholdProps {
  line: Line;
  fault: string | null;
  pipelines: Pipelines;
  /** It takes the focus as it comes. */
  isAdded: boolean;
  onChange(part: Partial<Line>): void;
  onRemove(): void;
}

function Threshold({ line, fault, pipelines, isAdded, onChange, onRemove }: ThresholdProps) {
  const { scope, code, days } = line;
  const { text, unit } = reasonOf(code);
  const id = useId();
  const parts = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isAdded) parts.current?.querySelector("select")?.focus();
  }, [isAdded]);
  return (
    <div ref={parts} className="filters">
      <Choice
        name="When"
        value={code}
        onChoose={(chosen) => onChange({ code: REASONS.find((one) => one.code === chosen)?.code ?? code })}
      >
        {REASONS.map((reason) => (
          <option key={reason.code} value={reason.code}>
            {reason.text}
          </option>
        ))}
        {text === code && <option value={code}>{code}</option>}
      </Choice>
      <div className="field days">
        <label htmlFor={id}>{unit}</label>
        <input
          id={id}
          className="input"
          inputMode="numeric"
          value={days}
          aria-invalid={fault !== null}
          aria-describedby={`${id}-fault ${id}-hint`}
          onChange={({ target }) => onChange({ days: target.value })}
        />
      </div>
      <Scope scope={scope} pipelines={pipelines} onChange={onChange} />
      <Button aria-label={`Remove: ${text} ${days} ${unit.toLowerCase()}`} onClick={onRemove}>
        Remove
      </Button>
      <span id={`${id}-fault`} className="small fault" aria-live="polite">
        {fault}
      </span>
      {code === "NO_RECENT_ACTIVITY" && (
        <span id={`${id}-hint`} className="small muted">
          Also in place of the days after which deals rot in their stage, where the CRM has any.
        </span>
      )}
    </div>
  );
}

function Scope({ scope, pipelines, onChange }: Pick<ThresholdProps, "pipelines" | "onChange"> & { scope: string }) {
  return (
    <Choice name="Of" value={scope} none="All deals" onChoose={(chosen) => onChange({ scope: chosen ?? "" })}>
      {pipelines.map((pipeline) => (
        <optgroup key={pipeline.id} label={pipeline.name}>
          <option value={`pipeline ${pipeline.id}`}>{pipeline.name}, all stages</option>
          {pipeline.stages.map((stage) => (
            <option key={stage.id} value={`stage ${stage.id}`}>
              {stage.name}
            </option>
          ))}
        </optgroup>
      ))}
    </Choice>
  );
}
