import { useState } from "react";
import { useMutation } from "urql";
import { DisconnectDocument } from "../api/operations.generated";
import { Confirm } from "../ui/confirm";
import { Button, Card, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import type { Connection, Viewer } from "./use-settings";

/** Any owner or admin may disconnect, and take a field back, on any plan: a lapsed plan keeps nobody's data. */
export const mayDisconnect = ({ role }: Viewer) => role === "OWNER" || role === "ADMIN";

interface DisconnectProps {
  viewer: Viewer;
  connection: Connection;
  /** Told what stays in the CRM. */
  onDone(remains: string): void;
}

export function Disconnect({ viewer, connection, onDone }: DisconnectProps) {
  const [asking, ask] = useState(false);
  const allowed = mayDisconnect(viewer);
  return (
    <Card title="Disconnect">
      <p className="muted small" id="disconnect-explained">
        {allowed
          ? "Stops syncing and deletes the copy of the CRM's data here. Notes that were written to the CRM stay there."
          : "Only an owner or admin of your organization may disconnect the CRM. Ask one of them."}
      </p>
      <div>
        <Button look="danger" disabled={!allowed} aria-describedby="disconnect-explained" onClick={() => ask(true)}>
          Disconnect …
        </Button>
      </div>
      {asking && <ConfirmDisconnect connection={connection} onDone={onDone} onClose={() => ask(false)} />}
    </Card>
  );
}

type ConfirmDisconnectProps = Omit<DisconnectProps, "viewer"> & { onClose(): void };

function ConfirmDisconnect({ connection, onDone, onClose }: ConfirmDisconnectProps) {
  const [{ fetching, data, error }, disconnect] = useMutation(DisconnectDocument);
  const refusal = data && "message" in data.disconnect ? data.disconnect.message : null;
  const confirmed = async () => {
    const { data: answer } = await disconnect({});
    if (answer && "remainsInCrm" in answer.disconnect) onDone(answer.disconnect.remainsInCrm);
  };
  const crm = connection.companyDomain ? `${connection.companyDomain}.pipedrive.com` : "Pipedrive";
  return (
    <Confirm title={`Disconnect ${connection.companyName ?? "the CRM"}?`} busy={fetching} onClose={onClose}>
      <div className="stack stack-tight">
        <h3>Deleted here, at once</h3>
        <ul className="bullets">
          <li>the access that {connection.boundUserName ?? "the user"} gave to the service</li>
          <li>the synced copy: deals, people, organizations, activities and notes</li>
          <li>which fields were nominated, and which deals were snoozed and why</li>
        </ul>
        <h3>Stays</h3>
        <ul className="bullets">
          <li>notes and field values that were written to the CRM</li>
          <li>your recorded meetings; they are matched again after the next connect</li>
          <li>the app's grant in the CRM</li>
        </ul>
        <h3>To end the grant as well</h3>
        <p>
          Open {crm}, go to the installed apps in its settings, and uninstall the app there. Deactivating the user who
          authorized it ends the grant too.
        </p>
      </div>
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
      <div className="row">
        <Button look="danger-main" busy={fetching} onClick={confirmed}>
          {fetching ? "Disconnecting …" : "Disconnect and delete the copy"}
        </Button>
        <Button disabled={fetching} onClick={onClose}>
          Keep it connected
        </Button>
      </div>
    </Confirm>
  );
}
