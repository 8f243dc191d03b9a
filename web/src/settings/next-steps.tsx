import { Link } from "wouter";
import { Card } from "../ui/parts";
import { number } from "../ui/words";
import type { Connection } from "./use-settings";

type Step = { text: string; state: "done" | "now" | "later" };

/** What happens after a connect, one after the other, and how far it is. */
export function stepsOf({ sync }: Pick<Connection, "sync">): Step[] {
  const { lastSuccessAt, matching, current } = sync;
  const isRead = lastSuccessAt !== null;
  const progress = matching && `Matching your meetings: ${number(matching.done)} of ${number(matching.total)}`;
  const percent = current && !isRead ? `, ${Math.floor(current.progress * 100)} %` : "";
  return [
    {
      text: isRead ? "The CRM was read" : `Reading the CRM for the first time${percent}`,
      state: isRead ? "done" : "now",
    },
    {
      text: progress ?? (isRead ? "Your meetings are matched to deals and people" : "Then your meetings are matched"),
      state: matching ? "now" : isRead ? "done" : "later",
    },
  ];
}

/** What to do next. It goes on by itself; nobody has to wait here. */
export function NextSteps({ connection, isMember }: { connection: Connection; isMember: boolean }) {
  const steps = stepsOf(connection);
  return (
    <Card title="What comes next">
      <ol className="next-steps" aria-live="polite">
        {steps.map(({ text, state }) => (
          <li key={text} className={`step-is-${state}`}>
            {state === "done" && <span className="visually-hidden">Done: </span>}
            {text}
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
