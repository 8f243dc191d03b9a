import { type ReactNode, useEffect } from "react";
import { RunsDocument, type RunsQuery } from "../api/operations.generated";
import { useRead } from "../api/read";
import { Badge, Loading } from "../ui/parts";
import { Problem } from "../ui/problem";
import { counted, dateAndTime, RESOURCE } from "../ui/words";
import { duration } from "./figures";
import { RUN_KIND, RUN_STATE } from "./wording";

type Run = RunsQuery["syncRuns"]["nodes"][number];

interface RunListProps {
  first: number;
  more: (hasMore: boolean) => ReactNode;
  latest: string | undefined;
}

/** @param latest changes with each run that ends: the list is read anew then */
export default function RunList({ first, more, latest }: RunListProps) {
  const { data, error, reread } = useRead(RunsDocument, { first });
  useEffect(() => {
    if (latest) reread();
  }, [latest, reread]);
  if (!data) return error ? <Problem error={error} again={reread} /> : <Loading what="The history" />;
  const { nodes, pageInfo } = data.syncRuns;
  return (
    <>
      {nodes.length === 0 && <p className="muted">No sync has begun yet.</p>}
      <ul className="list">
        {nodes.map((run) => (
          <li key={run.id} className="list-line">
            <RunLine run={run} />
          </li>
        ))}
      </ul>
      {more(pageInfo.hasNextPage)}
    </>
  );
}

function RunLine({ run }: { run: Run }) {
  const { kind, state, queuedAt, startedAt, finishedAt, error, gaps, steps } = run;
  const { text, tone } = RUN_STATE[state];
  const written = steps.reduce((sum, step) => sum + step.written + step.removed, 0);
  const failed = steps.filter((step) => step.state === "FAILED").map(({ resource }) => RESOURCE[resource]);
  return (
    <>
      <div>
        <p>{RUN_KIND[kind]}</p>
        <p className="small muted">
          <time dateTime={startedAt ?? queuedAt}>{dateAndTime(startedAt ?? queuedAt)}</time>
          {startedAt && finishedAt && `, took ${duration(startedAt, finishedAt)}`}
          {state === "SUCCEEDED" && `, ${counted(written, "record")} changed`}
        </p>
        {error && (
          <p className="small">
            {failed.length > 0 && <strong>{failed.join(", ")}: </strong>}
            {error.message}
          </p>
        )}
        {gaps.map(({ resource, code, message }) => (
          <p key={`${resource} ${code}`} className="small">
            <strong>{RESOURCE[resource]}</strong>: {message}
          </p>
        ))}
      </div>
      <Badge tone={tone}>{text}</Badge>
    </>
  );
}
