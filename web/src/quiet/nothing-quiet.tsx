import { Link } from "wouter";
import { Empty } from "../ui/parts";

/** Why the board is empty, and the way on. */
export function NothingQuiet({ connected, narrowed }: { connected: boolean; narrowed: boolean }) {
  if (!connected) {
    return (
      <Empty title="No CRM is connected">
        <p className="muted">Whether a deal has gone quiet is judged from what the CRM knows.</p>
        <Link href="/settings" className="button button-main">
          Open the CRM connection
        </Link>
      </Empty>
    );
  }
  if (narrowed) {
    return (
      <Empty title="No deal fits">
        <p className="muted">Deals that others have may be quiet nevertheless.</p>
        <Link href="/quiet" className="button">
          Show all quiet deals
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
