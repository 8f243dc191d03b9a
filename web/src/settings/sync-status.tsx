import { useMutation } from "urql";
import { RequestSyncDocument, type RunFragment } from "../api/operations.generated";
import { Gaps } from "../ui/gaps";
import { Badge, Button, Card, Fact, Facts, Notice, When } from "../ui/parts";
import { Problem } from "../ui/problem";
import { Budget } from "./budget";
import { percentOf } from "./figures";
import { Reconcile } from "./reconcile";
import { SyncSteps } from "./sync-steps";
import type { Connection } from "./use-settings";
import { RUN_KIND, RUN_STATE } from "./wording";

interface SyncStatusProps {
  connection: Connection;
  run: RunFragment | null;
  /** A full check is for owners and admins. */
  isMember: boolean;
}

/** How fresh and how whole the copy is, and the run that is at work. */
export function SyncStatus({ connection: { state, sync, budget }, run, isMember }: SyncStatusProps) {
  return (
    <Card title="Sync" aside={state === "CONNECTED" && <SyncNow running={run !== null} />}>
      {run && <Running run={run} />}
      <Facts>
        <Fact name="Last success">{sync.lastSuccessAt ? <When at={sync.lastSuccessAt} /> : "none yet"}</Fact>
        <Fact name="Next sync">{nextSync(state, run, sync.nextRunAt)}</Fact>
        {sync.last && <Fact name="Last run">{<LastRun run={sync.last} />}</Fact>}
      </Facts>
      {!run && state === "CONNECTED" && sync.last?.error && (
        <Notice tone="bad" title="The last run failed">
          <p>{sync.last.error.message}</p>
        </Notice>
      )}
      {!run && sync.last && (
        <details>
          <summary>What the last run read</summary>
          <SyncSteps steps={sync.last.steps} />
        </details>
      )}
      {budget && <Budget budget={budget} />}
      <Gaps gaps={sync.gaps} />
      {state === "CONNECTED" && !isMember && <Reconcile running={run !== null} />}
    </Card>
  );
}

function nextSync(state: Connection["state"], run: RunFragment | null, at: string | null) {
  if (state !== "CONNECTED") return "after someone authorized again";
  if (run) return "running now";
  return at ? <When at={at} /> : "by request only";
}

function LastRun({ run }: { run: RunFragment }) {
  const { text, tone } = RUN_STATE[run.state];
  return (
    <>
      {RUN_KIND[run.kind]} <Badge tone={tone}>{text}</Badge>
    </>
  );
}

function Running({ run }: { run: RunFragment }) {
  const percent = percentOf(run);
  return (
    <div className="stack stack-tight">
      <div className="row row-apart">
        <strong>{run.state === "QUEUED" ? "Waiting for a worker" : `${RUN_KIND[run.kind]} is running`}</strong>
        <span className="number">{percent} %</span>
      </div>
      <progress className="bar" max={100} value={percent} aria-label="Progress of the sync" />
      <SyncSteps steps={run.steps} />
    </div>
  );
}

function SyncNow({ running }: { running: boolean }) {
  const [{ fetching, data, error }, request] = useMutation(RequestSyncDocument);
  const refusal = data && "message" in data.requestSync ? data.requestSync : null;
  return (
    <>
      <Button busy={fetching} disabled={running} onClick={() => request({ kind: "INCREMENTAL" })}>
        {running ? "Syncing …" : "Sync now"}
      </Button>
      {refusal && !running && (
        <Notice tone="warn" title={refusal.message}>
          {refusal.retryAt && (
            <p>
              It may be asked again <When at={refusal.retryAt} />.
            </p>
          )}
        </Notice>
      )}
      {error && <Problem error={error} />}
    </>
  );
}
