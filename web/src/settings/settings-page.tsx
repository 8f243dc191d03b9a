import { useState } from "react";
import { useIsLive } from "../api/liveness";
import { isFirstRead } from "../ui/first-read";
import { PageHead } from "../ui/page";
import { Badge, Loading, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { AboutAccess } from "./about-access";
import { ConnectedAccount } from "./connected-account";
import { Disconnect } from "./disconnect";
import { NextSteps } from "./next-steps";
import { NominatedFields } from "./nominated-fields";
import { NotConnected } from "./not-connected";
import { Reauthorize } from "./reauthorize";
import { RunHistory } from "./run-history";
import { SecurityEvents } from "./security-events";
import { SyncStatus } from "./sync-status";
import { type Connection, useSettings, type Viewer } from "./use-settings";
import { Visibility } from "./visibility";
import { STATE } from "./wording";
import { Written } from "./written";

/** Settings, CRM: who is bound, how the sync stands, and what may be done about it. */
export function SettingsPage({ welcome }: { welcome: boolean }) {
  const { viewer, connection, run, error, reread } = useSettings();
  const [remains, setRemains] = useState<string | null>(null);
  return (
    <div className="stack">
      <PageHead
        title="CRM connection"
        above={<span className="muted">Settings</span>}
        aside={connection && <State connection={connection} />}
      />
      {error && <Problem error={error} again={reread} />}
      {!connection && !error && <Loading what="The connection" />}
      {connection && viewer && (
        <div className="columns">
          <div className="stack">
            {remains && connection.state === "NOT_CONNECTED" && (
              <Notice tone="ok" title="Disconnected. The copy of the CRM's data is being deleted.">
                <p>{remains}</p>
              </Notice>
            )}
            <Body viewer={viewer} connection={connection} run={run} welcome={welcome} />
          </div>
          <aside className="stack" aria-label="About the connection">
            <AboutAccess />
            {connection.state !== "NOT_CONNECTED" && (
              <Disconnect viewer={viewer} connection={connection} onDone={setRemains} />
            )}
          </aside>
        </div>
      )}
    </div>
  );
}

function State({ connection: { state } }: { connection: Connection }) {
  const live = useIsLive();
  const { text, tone } = STATE[state];
  return (
    <div className="row" role="status">
      {!live && <span className="muted small">Reconnecting for live updates …</span>}
      <Badge tone={tone}>{text}</Badge>
    </div>
  );
}

interface BodyProps {
  viewer: Viewer;
  connection: Connection;
  run: Connection["sync"]["current"];
  welcome: boolean;
}

function Body({ viewer, connection, run, welcome }: BodyProps) {
  if (connection.state === "NOT_CONNECTED") return <NotConnected viewer={viewer} />;
  const { sync } = connection;
  const isMember = viewer.role === "MEMBER";
  const isBeginning = connection.state === "CONNECTED" && (welcome || isFirstRead(sync));
  return (
    <>
      {connection.state === "NEEDS_REAUTHORIZATION" && <Reauthorize viewer={viewer} connection={connection} />}
      <ConnectedAccount connection={connection} welcome={welcome} />
      {isBeginning && <NextSteps connection={connection} run={run} isMember={isMember} />}
      <SyncStatus connection={connection} run={run} isMember={isMember} />
      {!isMember && <Visibility readAt={sync.lastSuccessAt} />}
      <NominatedFields viewer={viewer} connected={connection.state === "CONNECTED"} />
      <RunHistory latest={sync.last?.id} />
      <Written isMember={isMember} />
      {!isMember && <SecurityEvents />}
    </>
  );
}
