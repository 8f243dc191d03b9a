import { lazy } from "react";
import { Folded } from "./folded";

const RunList = lazy(() => import("./run-list"));

/** @param latest the last run that ended */
export function RunHistory({ latest }: { latest: string | undefined }) {
  return (
    <Folded title="Syncs so far" about="Show the latest runs">
      {(first, more) => <RunList first={first} more={more} latest={latest} />}
    </Folded>
  );
}
