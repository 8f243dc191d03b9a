import type { RunFragment } from "../api/operations.generated";
import { counted, number, RESOURCE } from "../ui/words";
import { RUN_STATE } from "./wording";

type Step = RunFragment["steps"][number];

/** A run, step by step, in the order in which it reads. */
export function SyncSteps({ steps }: { steps: readonly Step[] }) {
  return (
    <ol className="steps">
      {steps.map((step) => (
        <li key={step.resource} className={`step step-${step.state.toLowerCase()}`}>
          <span>{RESOURCE[step.resource]}</span>
          <span className="muted small number">{inWords(step)}</span>
        </li>
      ))}
    </ol>
  );
}

function inWords({ state, fetched, written, removed, rejected }: Step): string {
  if (state === "QUEUED") return "waiting";
  const parts = [`${number(fetched)} read`];
  if (written > 0) parts.push(`${number(written)} new or changed`);
  if (removed > 0) parts.push(`${number(removed)} removed`);
  if (rejected > 0) parts.push(`${counted(rejected, "record")} could not be read`);
  const ended = state === "FAILED" || state === "CANCELLED";
  return ended ? `${RUN_STATE[state].text.toLowerCase()}, ${parts.join(", ")}` : parts.join(", ");
}
