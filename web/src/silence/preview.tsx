import { useEffect, useState } from "react";
import { useQuery } from "urql";
import { useKept } from "../api/kept";
import { SilencePreviewDocument } from "../api/operations.generated";
import { Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { counted, money } from "../ui/words";
import { type Draft, inputOf } from "./draft";

/** All deals are judged for it: it waits until a change is made. */
const CHANGING_MS = 500;

/** What the board would show with these settings, against how it is. Nothing is stored. */
export function Preview({ draft }: { draft: Draft }) {
  const wished = JSON.stringify(inputOf(draft));
  const [asked, ask] = useState(wished);
  useEffect(() => {
    const timer = setTimeout(() => ask(wished), CHANGING_MS);
    return () => clearTimeout(timer);
  }, [wished]);
  const [{ fetching, ...read }, refresh] = useQuery({
    query: SilencePreviewDocument,
    variables: { input: JSON.parse(asked) },
    requestPolicy: "network-only",
  });
  const { data, error } = useKept(read.data, read.error);
  const answer = data?.previewQuietSettings;
  if (error) return <Problem error={error} again={() => refresh({ requestPolicy: "network-only" })} />;
  if (!answer) return <p role="status">Looking …</p>;
  if ("message" in answer) return <Notice tone="bad" title={answer.message} />;
  const { becomeQuiet, stopBeingQuiet, deals } = answer;
  const more = becomeQuiet + stopBeingQuiet - deals.length;
  return (
    <div className="stack stack-tight" aria-busy={fetching || asked !== wished}>
      <p role="status">
        {counted(becomeQuiet, "deal")} would become quiet, {counted(stopBeingQuiet, "deal")} would stop being quiet.
      </p>
      <ul className="bullets small">
        {deals.map(({ id, title, value }) => (
          <li key={id}>
            <bdi>{title}</bdi>
            {value && <span className="muted"> {money(value)}</span>}
          </li>
        ))}
      </ul>
      {more > 0 && <p className="small muted">and {counted(more, "more deal")}</p>}
    </div>
  );
}
