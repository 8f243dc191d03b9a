import { useId, useState } from "react";
import { useMutation } from "urql";
import { SnoozeDealDocument } from "../api/operations.generated";
import { Button, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { endOfDay, inDays } from "./days";

const USUAL_DAYS = 14;
/** The service takes no later end than that. */
const MOST_DAYS = 365;
const LONGEST_REASON = 500;

interface SnoozeFormProps {
  dealId: string;
  /** Something is asked for, here or beside: what becomes of it is waited for. */
  isBusy: boolean;
  onAsking(isAsking: boolean): void;
  onSnoozed(until: string): void;
  onClose(): void;
}

/** Why the deal is quiet, and until when that explains it. The CRM is told nothing of it. */
export function SnoozeForm({ dealId, isBusy, onAsking, onSnoozed, onClose }: SnoozeFormProps) {
  const ids = { reason: useId(), until: useId() };
  const [reason, setReason] = useState("");
  const [until, setUntil] = useState(() => inDays(USUAL_DAYS, new Date()));
  const [{ fetching, data, error }, snooze] = useMutation(SnoozeDealDocument);
  const refusal = data && "message" in data.snoozeDeal ? data.snoozeDeal.message : null;
  const isReady = reason.trim() !== "" && until !== "";
  const save = async () => {
    if (!isReady || isBusy) return;
    const end = endOfDay(until);
    onAsking(true);
    const { data: answer } = await snooze({ dealId, until: end, reason: reason.trim() });
    onAsking(false);
    if (answer && "deal" in answer.snoozeDeal) onSnoozed(end);
  };
  return (
    <form
      className="stack stack-tight"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <h3>Snooze it</h3>
      <div className="field">
        <label htmlFor={ids.reason}>Why it is quiet</label>
        <input
          id={ids.reason}
          className="input"
          value={reason}
          maxLength={LONGEST_REASON}
          dir="auto"
          onChange={({ target }) => setReason(target.value)}
        />
      </div>
      <div className="field">
        <label htmlFor={ids.until}>Until the end of</label>
        <input
          id={ids.until}
          className="input"
          type="date"
          required
          value={until}
          min={inDays(0, new Date())}
          max={inDays(MOST_DAYS, new Date())}
          onChange={({ target }) => setUntil(target.value)}
        />
      </div>
      <p className="small muted">It leaves the board until then, or until the buyer's next contact.</p>
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
      <div className="row">
        <button type="submit" className="button button-main" aria-busy={fetching} disabled={!isReady}>
          Snooze
        </button>
        <Button disabled={isBusy} onClick={onClose}>
          Close
        </Button>
      </div>
    </form>
  );
}
