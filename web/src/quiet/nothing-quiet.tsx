import { Link } from "wouter";
import type { FreshnessFragment } from "../api/operations.generated";
import { isFirstRead } from "../ui/first-read";
import { isStale } from "../ui/freshness";
import { Empty } from "../ui/parts";

/** Why the board is empty, and the way on. */
export function NothingQuiet({ connection, narrowed }: { connection: FreshnessFragment; narrowed: boolean }) {
  if (connection.state === "NOT_CONNECTED") {
    return (
      <Empty title="No CRM is connected">
        <p className="muted">Whether a deal has gone quiet is judged from what the CRM knows.</p>
        <Link href="/settings" className="button button-main">
          Open the CRM connection
        </Link>
      </Empty>
    );
  }
  if (isFirstRead(connection.sync)) {
    return (
      <Empty title="Whether deals have gone quiet is not known yet">
        <p className="muted">The CRM's data has not been read and matched to its end.</p>
      </Empty>
    );
  }
  if (narrowed) {
    return (
      <Empty title="No deal fits">
        <p className="muted">Other deals may be quiet nevertheless.</p>
        <Link href="/quiet" className="button">
          Show all quiet deals
        </Link>
      </Empty>
    );
  }
  if (isStale(connection.sync.lastSuccessAt)) {
    return (
      <Empty title="Whether deals have gone quiet is not known">
        <p className="muted">The copy of the CRM's data is too old to say it of any deal.</p>
        <Link href="/quiet?verdict=UNKNOWN" className="button">
          Show the open deals
        </Link>
      </Empty>
    );
  }
  return (
    <Empty title="No deal has gone quiet">
      <p className="muted">
        Every open deal of the people in your recorded meetings has recent contact or a next step. Deals without a
        recorded meeting are not looked at.
      </p>
    </Empty>
  );
}
