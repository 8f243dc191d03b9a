import { lazy } from "react";
import { Folded } from "./folded";

const SecurityEventList = lazy(() => import("./security-event-list"));

/** For owners and admins. */
export function SecurityEvents() {
  return (
    <Folded title="Security events" about="Show who did what">
      {(first, more) => <SecurityEventList first={first} more={more} />}
    </Folded>
  );
}
