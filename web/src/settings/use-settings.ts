import { useCallback, useEffect } from "react";
import { useQuery, useSubscription } from "urql";
import { useKept } from "../api/kept";
import {
  ConnectionChangedDocument,
  type RunFragment,
  SettingsDocument,
  type SettingsQuery,
  SyncProgressedDocument,
} from "../api/operations.generated";

export type Viewer = SettingsQuery["viewer"];
export type Connection = SettingsQuery["connection"];

const isOpen = ({ state }: RunFragment) => state === "QUEUED" || state === "RUNNING";

/** Progress comes by subscription and is newer than what was read; whether a run is there at all is for the read to say. */
function runningNow(read: RunFragment | null, told: RunFragment | undefined): RunFragment | null {
  if (!told || (read && read.id !== told.id)) return read;
  return isOpen(told) ? told : null;
}

/** The connection as it is. Every change of it and every run that begins or ends makes the page read it anew. */
export function useSettings() {
  const [{ data, error }, refresh] = useQuery({ query: SettingsDocument, requestPolicy: "cache-and-network" });
  const [{ data: changed }] = useSubscription({ query: ConnectionChangedDocument });
  const [{ data: progressed }] = useSubscription({ query: SyncProgressedDocument });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  const told = progressed?.syncProgressed;
  const phase = told && `${told.id} ${told.state}`;

  useEffect(() => {
    if (changed) reread();
  }, [changed, reread]);
  useEffect(() => {
    if (phase) reread();
  }, [phase, reread]);

  const shown = useKept(data);
  const run = shown?.connection.state === "CONNECTED" ? runningNow(shown.connection.sync.current, told) : null;
  return { viewer: shown?.viewer, connection: shown?.connection, run, error, reread };
}
