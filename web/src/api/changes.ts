import { useEffect, useEffectEvent } from "react";
import { useSubscription } from "urql";
import {
  ConnectionChangedDocument,
  MeetingMatchedDocument,
  type RunFragment,
  SilenceChangedDocument,
  SyncProgressedDocument,
} from "./operations.generated";

/** A sync tells what it has changed one by one: a page waits for the rest before it reads. */
const SETTLING_MS = 1_000;

/**
 * Reads anew whenever the connection changes, and whenever a run begins or ends. A subscription only wakes: what is
 * true is for the read to say.
 * @returns the latest run, as it goes
 */
export function useChanges(reread: () => void): RunFragment | undefined {
  const [{ data: changed }] = useSubscription({ query: ConnectionChangedDocument });
  const [{ data: progressed }] = useSubscription({ query: SyncProgressedDocument });
  const run = progressed?.syncProgressed;
  const phase = run && `${run.id} ${run.state}`;
  const onChange = useEffectEvent(reread);
  useEffect(() => {
    if (changed) onChange();
  }, [changed]);
  useEffect(() => {
    if (phase) onChange();
  }, [phase]);
  return run;
}

/** Reads anew after matches of meetings have changed. */
export function useMatches(reread: () => void): void {
  const [told] = useSubscription({ query: MeetingMatchedDocument });
  useBurst(told, reread);
}

/** Reads anew after verdicts of deals have changed. */
export function useSilences(reread: () => void): void {
  const [told] = useSubscription({ query: SilenceChangedDocument });
  useBurst(told, reread);
}

/** Once after each burst of what is told. An error says that some was missed. */
function useBurst({ data, error }: { data?: unknown; error?: unknown }, reread: () => void): void {
  const onEnd = useEffectEvent(reread);
  useEffect(() => {
    if (!data && !error) return;
    const timer = setTimeout(onEnd, SETTLING_MS);
    return () => clearTimeout(timer);
  }, [data, error]);
}
