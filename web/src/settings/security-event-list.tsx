import type { ReactNode } from "react";
import { type AuditAction, SecurityEventsDocument } from "../api/operations.generated";
import { useRead } from "../api/read";
import { keyed } from "../ui/keys";
import { Badge, Loading } from "../ui/parts";
import { Problem } from "../ui/problem";
import { dateAndTime } from "../ui/words";

const ACTION: Record<AuditAction, string> = {
  CONSENT_STARTED: "Went to the CRM's consent page",
  CONSENT_COMPLETED: "Came back with the CRM's consent",
  CONSENT_REJECTED: "The CRM's consent was not accepted",
  CONNECTED: "Connected the CRM",
  REAUTHORIZED: "Authorized again",
  NEEDS_REAUTHORIZATION: "The CRM no longer accepted the authorization",
  DISCONNECTED: "Disconnected the CRM",
  FIELD_MAPPING_SET: "Nominated a field",
  FIELD_MAPPING_CLEARED: "Took a nominated field back",
  SYNC_REQUESTED: "Asked for a sync",
  DEAL_CHOSEN: "Chose a meeting's deal, or took that back",
  DEAL_SNOOZED: "Snoozed a deal, or ended that",
  MEETING_CANCELLED: "Cancelled a meeting",
  MEETING_DELETED: "Deleted a meeting",
  QUIET_SETTINGS_SET: "Changed the settings of silence",
  POLICY_REFUSED: "Tried what role or plan do not allow",
  KEYS_ROTATED: "Stored tokens were sealed with another key",
  CRM_PROBED: "Looked at how the CRM answers",
  PERSON_EXPORTED: "Exported what is held about a person",
  PERSON_ERASED: "Erased what was held about a person",
  PERSON_KEPT_OUT: "Keeps a person out whose data was erased",
  PERSON_LET_IN: "Let a person in again",
  TENANT_ERASED: "Erased everything of the organization",
};

/** What nobody but the service's operator does; the rest without a user it did by itself. */
const OF_OPERATOR: ReadonlySet<AuditAction> = new Set<AuditAction>([
  "KEYS_ROTATED",
  "CRM_PROBED",
  "PERSON_EXPORTED",
  "PERSON_ERASED",
  "PERSON_KEPT_OUT",
  "PERSON_LET_IN",
  "TENANT_ERASED",
]);
/** Their subject is an id that says nothing to people. */
const OF_AN_ID = /^(DEAL|MEETING|SYNC)_/;

/** Who did what, and what came of it. */
export default function SecurityEventList({ first, more }: { first: number; more: (hasMore: boolean) => ReactNode }) {
  const { data, error, reread } = useRead(SecurityEventsDocument, { first });
  if (!data) return error ? <Problem error={error} again={reread} /> : <Loading what="The list of events" />;
  const { nodes, pageInfo } = data.auditEvents;
  return (
    <>
      <ul className="list">
        {keyed(nodes, ({ at, action, userId }) => `${at} ${action} ${userId}`).map(
          ([key, { at, action, refused, code, subject, userId, role, was, became }]) => (
            <li key={key} className="list-line">
              <div>
                <p>{ACTION[action]}</p>
                <p className="small muted">
                  <time dateTime={at}>{dateAndTime(at)}</time>, by{" "}
                  {userId ? <bdi>{userId}</bdi> : `the service${OF_OPERATOR.has(action) ? "'s operator" : " itself"}`}
                  {role && ` (${role.toLowerCase()})`}
                  {code && <span className="breakable">, {code}</span>}
                  {subject && !OF_AN_ID.test(action) && <span className="breakable">, {subject}</span>}
                </p>
                {(was ?? became) !== null && (
                  <details className="small">
                    <summary>From what to what</summary>
                    <p className="muted breakable">
                      From {was ?? "nothing"} to {became ?? "nothing"}
                    </p>
                  </details>
                )}
              </div>
              {refused && <Badge tone="warn">Refused</Badge>}
            </li>
          ),
        )}
      </ul>
      {more(pageInfo.hasNextPage)}
    </>
  );
}
