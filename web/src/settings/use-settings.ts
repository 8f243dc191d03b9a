import { useChanges } from "../api/changes";
import { type RunFragment, SettingsDocument, type SettingsQuery } from "../api/operations.generated";
import { useRead, useRereads } from "../api/read";

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
  const { data: shown, error, reread } = useRead(SettingsDocument, {});
  const told = useChanges(reread);
  useRereads(shown?.connection.sync.matching != null, reread);
  const run = shown?.connection.state === "CONNECTED" ? runningNow(shown.connection.sync.current, told) : null;
  return { viewer: shown?.viewer, connection: shown?.connection, run, error, reread };
}
