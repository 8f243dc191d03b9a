import { useMutation } from "urql";
import { RequestSyncDocument } from "../api/operations.generated";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";

/** The full check, in words: what it is for, what it costs and when it is not needed. */
export function Reconcile({ running }: { running: boolean }) {
  const [{ fetching, data, error }, request] = useMutation(RequestSyncDocument);
  const refusal = data && "message" in data.requestSync ? data.requestSync.message : null;
  return (
    <details>
      <summary>Deals or people are shown that the CRM no longer has?</summary>
      <div className="stack stack-tight folded">
        <p>
          A sync reads what has changed. What was deleted, merged or hidden in the CRM is found by a check that reads
          everything once more and takes out what is gone. Those of your meetings are looked at each day without it.
        </p>
        <p className="muted">
          It takes as many tokens as the first sync and may run for long. Nothing is changed in the CRM.
        </p>
        <div>
          <Button busy={fetching} disabled={running} onClick={() => request({ kind: "RECONCILE" })}>
            Check everything for what is gone
          </Button>
        </div>
        {refusal && !running && <Notice tone="warn" title={refusal} />}
        {error && <Problem error={error} />}
      </div>
    </details>
  );
}
