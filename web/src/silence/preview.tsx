import { useEffect, useState } from "react";
import { useQuery } from "urql";
import { SilencePreviewDocument, type SilencePreviewQuery } from "../api/operations.generated";
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
  const [{ data, error, fetching }, refresh] = useQuery({
    query: SilencePreviewDocument,
    variables: { input: JSON.parse(asked) },
    requestPolicy: "network-only",
  });
  const answer = data?.previewQuietSettings;
  // What was found for other settings is no answer to these.
  if (fetching || asked !== wished) return <p role="status">Looking …</p>;
  if (error) return <Problem error={error} again={() => refresh({ requestPolicy: "network-only" })} />;
  if (!answer) return <p role="status">Looking …</p>;
  if ("message" in answer) return <Notice tone="bad" title={answer.message} />;
  const { becomeQuiet, stopBeingQuiet, deals } = answer;
  const more = becomeQuiet + stopBeingQuiet - deals.length;
  return (
    <div className="stack stack-tight">
      <p role="status">
        {counted(becomeQuiet, "deal")} would become quiet, {counted(stopBeingQuiet, "deal")} would stop being quiet.
      </p>
      <Deals title="Would become quiet" deals={deals.filter((deal) => !isQuiet(deal))} />
      <Deals title="Would stop being quiet" deals={deals.filter(isQuiet)} />
      {more > 0 && <p className="small muted">and {counted(more, "more deal")}</p>}
    </div>
  );
}

type Previewed = Extract<SilencePreviewQuery["previewQuietSettings"], { deals: unknown }>["deals"][number];

/** A deal that would change, and is on the board by what holds now, would stop; a snooze may be what ends. */
const isQuiet = ({ quiet: { verdict }, snooze }: Previewed) =>
  snooze === null && (verdict === "QUIET" || verdict === "GHOSTED");

function Deals({ title, deals }: { title: string; deals: readonly Previewed[] }) {
  if (deals.length === 0) return null;
  return (
    <section aria-label={title}>
      <h3 className="small">{title}</h3>
      <ul className="bullets small">
        {deals.map(({ id, title: name, value }) => (
          <li key={id}>
            <bdi>{name}</bdi>
            {value && <span className="muted"> {money(value)}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
