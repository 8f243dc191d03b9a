import { Card, Fact, Facts, Notice, When } from "../ui/parts";
import { apart } from "../ui/words";
import type { Connection } from "./use-settings";

/** Whose eyes and hands the service has, and what troubles it now. */
export function ConnectedAccount({ connection, welcome }: { connection: Connection; welcome: boolean }) {
  const { state, boundUserName, boundEmail, companyName, companyDomain, connectedAt, trouble } = connection;
  return (
    <Card title="Connected account">
      {welcome && state === "CONNECTED" && (
        <Notice tone="ok" title={`Connected as ${apart(boundUserName ?? "")} of ${apart(companyName ?? "")}`}>
          <p>Is this the right account? If another user was signed in to the CRM, disconnect and connect again.</p>
        </Notice>
      )}
      <Facts>
        <Fact name="CRM user">
          <bdi>{boundUserName}</bdi>
          <br />
          <span className="muted">{boundEmail}</span>
        </Fact>
        <Fact name="Company">
          <bdi>{companyName}</bdi>
          {companyDomain && (
            <>
              <br />
              <span className="muted">{companyDomain}.pipedrive.com</span>
            </>
          )}
        </Fact>
        <Fact name="Connected">{connectedAt ? <When at={connectedAt} /> : "not known"}</Fact>
      </Facts>
      {trouble && (
        <Notice tone="warn" title="The CRM is in trouble, and the connection holds">
          <p>{trouble.message}</p>
          <p className="small">
            Since <When at={trouble.since} />, last seen <When at={trouble.lastSeenAt} />.
          </p>
        </Notice>
      )}
    </Card>
  );
}
