import { useEffect, useEffectEvent } from "react";
import { useSubscription } from "urql";
import {
  ConnectionChangedDocument,
  MeetingMatchedDocument,
  type RunFragment,
  SyncProgressedDocument,
} from "./operations.generated";

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

/**
 * Reads anew when a meeting's match changes: by what a sync has read, or because somebody chose.
 * @param id of the one meeting that is shown; absent: any
 */
export function useMatches(reread: () => void, id?: string): void {
  const [{ data }] = useSubscription({ query: MeetingMatchedDocument });
  const onChange = useEffectEvent(reread);
  useEffect(() => {
    if (data && (id === undefined || data.meetingMatched.id === id)) onChange();
  }, [data, id]);
}
