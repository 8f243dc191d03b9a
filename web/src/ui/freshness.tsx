import { Link } from "wouter";
import { now } from "../api/clock";
import { useIsLive } from "../api/liveness";
import type { FreshnessFragment } from "../api/operations.generated";
import { Notice, When } from "./parts";
import { dateAndTime, number } from "./words";

const HOUR_MS = 3_600_000;
/** The schedule syncs many times a day: a copy that is older has missed several. */
const STALE_AFTER_MS = 24 * HOUR_MS;

/** How old what is shown may be; beside the heading of every page that shows data. @param asOf absent: the last sync's */
export function Freshness({ connection, asOf }: { connection: FreshnessFragment; asOf?: string | null }) {
  const live = useIsLive();
  const { state, sync } = connection;
  const known = asOf === undefined ? sync.lastSuccessAt : asOf;
  return (
    <p className="small muted">
      <span role="status">{!live && "Reconnecting for live updates … "}</span>
      {state !== "NOT_CONNECTED" && (known ? <AsOf at={known} /> : "The CRM has not been read to the end yet.")}
      {sync.matching && (
        <>
          {" "}
          Matching your meetings: {number(sync.matching.done)} of {number(sync.matching.total)}.
        </>
      )}
    </p>
  );
}

const AsOf = ({ at }: { at: string }) => (
  <>
    CRM data as of <When at={at} />
    <span className="on-paper">, {dateAndTime(at)}</span>.
  </>
);

/** What keeps the data from being newer, above it; nothing while all is well. */
export function Staleness({ connection: { state, trouble, sync } }: { connection: FreshnessFragment }) {
  if (state === "NEEDS_REAUTHORIZATION") {
    return (
      <Notice tone="warn" title="What you see is no longer renewed">
        <p>The CRM does not accept the authorization any more.</p>
        <Link href="/settings">Open the CRM connection</Link>
      </Notice>
    );
  }
  if (trouble) {
    return (
      <Notice tone="warn" title="What you see may be out of date">
        <p>{trouble.message}</p>
      </Notice>
    );
  }
  if (state === "CONNECTED" && isStale(sync.lastSuccessAt)) {
    return <Notice tone="warn" title="What you see is older than a day: no sync has succeeded since" />;
  }
  return null;
}

export const isStale = (at: string | null): boolean => at !== null && now() - new Date(at).getTime() > STALE_AFTER_MS;
