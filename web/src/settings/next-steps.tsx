import { Link } from "wouter";
import type { RunFragment } from "../api/operations.generated";
import { Card } from "../ui/parts";
import { number } from "../ui/words";
import { percentOf } from "./figures";
import type { Connection } from "./use-settings";

type Step = { text: string; progress?: string; state: "done" | "now" | "later" };

interface NextStepsProps {
  connection: Connection;
  run: RunFragment | null;
  isMember: boolean;
}

/** What happens after a connect, one after the other, and how far it is. */
function stepsOf({ lastSuccessAt, matching }: Connection["sync"], run: RunFragment | null): Step[] {
  const isRead = lastSuccessAt !== null;
  return [
    isRead
      ? { text: "The CRM was read", state: "done" }
      : {
          text: "Reading the CRM for the first time",
          progress: run ? `, ${percentOf(run)} %` : "",
          state: "now",
        },
    matching
      ? {
          text: "Matching your meetings",
          progress: `: ${number(matching.done)} of ${number(matching.total)}`,
          state: "now",
        }
      : isRead
        ? { text: "Your meetings are matched to deals and people", state: "done" }
        : { text: "Then your meetings are matched", state: "later" },
  ];
}

/** What to do next. It goes on by itself; nobody has to wait here, and that it goes on is not read out with each look. */
export function NextSteps({ connection, run, isMember }: NextStepsProps) {
  const steps = stepsOf(connection.sync, run);
  return (
    <Card title="What comes next">
      <ol className="next-steps" aria-live="polite">
        {steps.map(({ text, progress, state }) => (
          <li key={text} className={`step-is-${state}`}>
            {state === "done" && <span className="visually-hidden">Done: </span>}
            {text}
            {progress && <span aria-live="off">{progress}</span>}
          </li>
        ))}
        <li className="step-is-later">
          <Link href="/meetings">Open the meetings</Link>: where several deals could be meant, choose one
        </li>
        {!isMember && (
          <li className="step-is-later">
            <a href="#nominated-fields">Nominate fields</a> that the service may write, if you want any
          </li>
        )}
      </ol>
    </Card>
  );
}
