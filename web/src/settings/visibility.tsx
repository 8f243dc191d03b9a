import { useEffect, useRef } from "react";
import { VisibilityDocument, type VisibilityQuery } from "../api/operations.generated";
import { useRead } from "../api/read";
import { Card, Notice, When } from "../ui/parts";
import { Problem } from "../ui/problem";
import { apart, counted, number } from "../ui/words";

type Report = NonNullable<VisibilityQuery["connection"]["visibility"]>;

/** Of a long list the first; who is missing is a matter of groups, not of each name. */
const NAMED = 12;

/** What the permissions of the user who authorized show. @param readAt when a sync last succeeded: it is counted anew then */
export function Visibility({ readAt }: { readAt: string | null }) {
  const { data, error, reread } = useRead(VisibilityDocument, {});
  const countedAt = useRef(readAt);
  useEffect(() => {
    if (readAt !== countedAt.current) reread();
    countedAt.current = readAt;
  }, [readAt, reread]);
  const report = data?.connection.visibility;
  if (!report) return error ? <Problem error={error} again={reread} /> : null;
  return (
    <Card title="What is seen of the CRM">
      {error && <Problem error={error} again={reread} />}
      <p>
        {counted(report.deals, "deal")}, {counted(report.persons, "person")} and{" "}
        {counted(report.organizations, "organization")}
        {report.asOf ? (
          <>
            , as of <When at={report.asOf} />.
          </>
        ) : (
          " so far; the first sync is not done."
        )}
      </p>
      {report.asOf && report.unseenUsers.length > 0 && <Unseen users={report.unseenUsers} />}
      <table className="owners">
        <caption className="visually-hidden">Deals that are seen, by owner</caption>
        <thead className="small muted">
          <tr>
            <th scope="col">Owner</th>
            <th scope="col">Deals</th>
            <th scope="col">Open</th>
          </tr>
        </thead>
        <tbody>
          {report.byOwner.map(({ owner, deals, openDeals }) => (
            <tr key={owner?.id ?? ""}>
              <th scope="row">
                <bdi>{owner?.name ?? "not known"}</bdi>
              </th>
              <td className="number">{number(deals)}</td>
              <td className="number">{number(openDeals)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Unseen({ users }: { users: Report["unseenUsers"] }) {
  const more = users.length - NAMED;
  const names = users.slice(0, NAMED).map(({ name }) => apart(name));
  return (
    <Notice tone="info" title={`Nothing is seen of ${counted(users.length, "active user")}`}>
      <p>
        {names.join(", ")}
        {more > 0 && ` and ${number(more)} more`}. If they work with deals, their visibility group is probably hidden
        from the user who authorized: let somebody authorize who sees it.
      </p>
    </Notice>
  );
}
