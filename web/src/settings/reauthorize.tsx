import { Card } from "../ui/parts";
import { ConsentButton } from "./consent-button";
import type { Connection, Viewer } from "./use-settings";
import { REAUTHORIZATION } from "./wording";

export function Reauthorize({ viewer, connection }: { viewer: Viewer; connection: Connection }) {
  const { reauthorizationReason, boundUserName, companyName } = connection;
  return (
    <Card title="Someone has to authorize again">
      <div className="notice tone-bad" role="alert">
        <p>
          {reauthorizationReason ? REAUTHORIZATION[reauthorizationReason] : "The CRM asks for a new authorization."}
        </p>
        <p>
          Nothing is synced or written until then. What was read stays readable, as of the last sync. Authorize as a
          user of {companyName ?? "the same company"}
          {boundUserName && `; with ${boundUserName} the copy is kept as it is`}.
        </p>
      </div>
      <div className="stack stack-tight start">
        <ConsentButton viewer={viewer}>Authorize again</ConsentButton>
      </div>
    </Card>
  );
}
