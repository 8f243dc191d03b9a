import { useEffect, useEffectEvent } from "react";
import { type CombinedError, useSubscription } from "urql";
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
  const [{ data: changed, error: ofChange }] = useSubscription({ query: ConnectionChangedDocument });
  const [{ data: progressed, error: ofProgress }] = useSubscription({ query: SyncProgressedDocument });
  const run = progressed?.syncProgressed;
  const phase = run && `${run.id} ${run.state}`;
  const [missedChange, missedProgress] = [missedBy(ofChange), missedBy(ofProgress)];
  const onChange = useEffectEvent(reread);
  useEffect(() => {
    if (changed || missedChange) onChange();
  }, [changed, missedChange]);
  useEffect(() => {
    if (phase || missedProgress) onChange();
  }, [phase, missedProgress]);
  return run;
}

/** What tells that some was missed. The client goes on giving an error with each later event, as another one each time. */
const missedBy = (error: CombinedError | undefined) => error?.networkError ?? error?.graphQLErrors[0];

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
