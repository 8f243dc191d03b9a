import { useCallback } from "react";
import { useQuery } from "urql";
import { Link } from "wouter";
import { useChanges } from "../api/changes";
import { useKept } from "../api/kept";
import { BriefingDocument, type BriefingQuery } from "../api/operations.generated";
import { Gaps } from "../ui/gaps";
import { useTitle } from "../ui/page";
import { Empty, Loading, When } from "../ui/parts";
import { Problem } from "../ui/problem";
import { dateAndTime } from "../ui/words";
import { Candidates } from "./candidates";
import { DealCard } from "./deal-card";
import { Notes } from "./notes";
import { Attendees, OtherDeals } from "./people";
import { QuietCard } from "./quiet-card";
import { Timeline } from "./timeline";

export type Meeting = NonNullable<BriefingQuery["meeting"]>;
export type Briefing = NonNullable<Meeting["briefing"]>;

/** What a seller needs before or in a meeting. */
export function BriefingPage({ id }: { id: string }) {
  const [{ data, error }, refresh] = useQuery({
    query: BriefingDocument,
    variables: { id },
    requestPolicy: "cache-and-network",
  });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  useChanges(reread);
  const shown = useKept(data);
  useTitle(shown ? (shown.meeting?.title ?? "There is no such meeting") : "Briefing");
  if (!shown) return error ? <Problem error={error} again={reread} /> : <Loading what="The briefing" />;
  const { meeting, viewer } = shown;
  if (!meeting) return <NoSuchMeeting />;
  return (
    <div className="stack">
      <Head meeting={meeting} />
      {error && <Problem error={error} again={reread} />}
      {meeting.briefing ? (
        <Body meeting={meeting} briefing={meeting.briefing} viewerId={viewer.userId} onChange={reread} />
      ) : (
        <NotConnected />
      )}
    </div>
  );
}

function Head({ meeting: { title, startsAt, ownerEmail, briefing } }: { meeting: Meeting }) {
  return (
    <header className="row row-apart page-head">
      <div>
        <p className="small">
          <Link href="/meetings">Meetings</Link>
        </p>
        <h1>{title}</h1>
        <p className="muted">
          <time dateTime={startsAt}>{dateAndTime(startsAt)}</time>, {ownerEmail}
        </p>
      </div>
      {briefing && (
        <p className="small muted">
          {briefing.asOf ? (
            <>
              CRM data as of <When at={briefing.asOf} />
            </>
          ) : (
            "The CRM has not been read to the end yet."
          )}
        </p>
      )}
    </header>
  );
}

interface BodyProps {
  meeting: Meeting;
  briefing: Briefing;
  viewerId: string;
  onChange(): void;
}

function Body({ meeting, briefing, viewerId, onChange }: BodyProps) {
  const { deal, timeline, gaps } = briefing;
  return (
    <>
      <Gaps gaps={gaps} />
      <div className="columns">
        <div className="stack">
          {deal && <DealCard deal={deal} reason={meeting.match.reason} />}
          <Candidates meeting={meeting} chosenId={deal?.id ?? null} onChosen={onChange} />
          {deal && <QuietCard deal={deal} timeline={timeline} />}
          <Notes meeting={meeting} briefing={briefing} viewerId={viewerId} />
        </div>
        <aside className="stack" aria-label="People and history">
          <Attendees meeting={meeting} persons={briefing.persons} />
          <Timeline timeline={timeline} />
          <OtherDeals deals={briefing.otherDeals} />
        </aside>
      </div>
    </>
  );
}

function NotConnected() {
  return (
    <Empty title="No CRM is connected">
      <p className="muted">A briefing shows what the CRM knows of the people in the meeting.</p>
      <Link href="/settings" className="button button-main">
        Open the CRM connection
      </Link>
    </Empty>
  );
}

function NoSuchMeeting() {
  return (
    <Empty title="There is no such meeting">
      <p className="muted">It may belong to another organization, or the address is not complete.</p>
      <Link href="/meetings" className="button">
        All meetings
      </Link>
    </Empty>
  );
}
