import { useCallback } from "react";
import { useQuery } from "urql";
import { useChanges } from "../api/changes";
import { useKept } from "../api/kept";
import { type RunFragment, SettingsDocument, type SettingsQuery } from "../api/operations.generated";

export type Viewer = SettingsQuery["viewer"];
export type Connection = SettingsQuery["connection"];

const isOpen = ({ state }: RunFragment) => state === "QUEUED" || state === "RUNNING";

/** Progress comes by subscription and is newer than what was read; whether a run is there at all is for the read to say. */
function runningNow(read: RunFragment | null, told: RunFragment | undefined): RunFragment | null {
  if (!told || (read && read.id !== told.id)) return read;
  return isOpen(told) ? told : null;
}

/** The connection as it is, and the run that is at work. */
export function useSettings() {
  const [{ data, error }, refresh] = useQuery({ query: SettingsDocument, requestPolicy: "cache-and-network" });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  const told = useChanges(reread);
  const shown = useKept(data);
  const run = shown?.connection.state === "CONNECTED" ? runningNow(shown.connection.sync.current, told) : null;
  return { viewer: shown?.viewer, connection: shown?.connection, run, error, reread };
}
