import { Link } from "wouter";
import { useChanges, useMatches } from "../api/changes";
import { BriefingDocument, type BriefingQuery } from "../api/operations.generated";
import { useRead, useRereads } from "../api/read";
import { Freshness, Staleness } from "../ui/freshness";
import { Gaps } from "../ui/gaps";
import { PageHead } from "../ui/page";
import { Empty, Loading } from "../ui/parts";
import { Problem } from "../ui/problem";
import { Candidates } from "./candidates";
import { ChangesCard } from "./changes-card";
import { CrmNotes } from "./crm-notes";
import { DealCard } from "./deal-card";
import { NoteKept } from "./note-kept";
import { Notes } from "./notes";
import { Attendees, OtherDeals } from "./people";
import { QuietCard } from "./quiet-card";
import { markCounted } from "./silence";
import type { Briefing, Meeting, Viewer } from "./targets";
import { Timeline } from "./timeline";
import { WhenAndWhom } from "./when-and-whom";

type Connection = BriefingQuery["connection"];

const TO_MEETINGS = <Link href="/meetings">Meetings</Link>;

/** What a seller needs before or in a meeting. */
export function BriefingPage({ id }: { id: string }) {
  const { data, error, reread } = useRead(BriefingDocument, { id });
  useChanges(reread);
  useMatches(reread);
  useRereads(data?.connection.sync.matching != null, reread);
  // With an error it is only what could not be read.
  if (data?.meeting === null && !error) return <NoSuchMeeting />;
  if (!data?.meeting) {
    return (
      <div className="stack">
        <PageHead title="Briefing" above={TO_MEETINGS} />
        {error ? <Problem error={error} again={reread} /> : <Loading what="The briefing" />}
      </div>
    );
  }
  const { meeting, viewer, connection } = data;
  return (
    <div className="stack briefing">
      <PageHead
        title={meeting.title}
        above={TO_MEETINGS}
        below={<WhenAndWhom meeting={meeting} />}
        aside={<Freshness connection={connection} asOf={meeting.briefing?.asOf ?? null} />}
      />
      {error && <Problem error={error} again={reread} />}
      <Staleness connection={connection} />
      {meeting.briefing && (
        <Body meeting={meeting} briefing={meeting.briefing} viewer={viewer} connection={connection} onChange={reread} />
      )}
      {!meeting.briefing && connection.state === "NOT_CONNECTED" && (
        <>
          <NotConnected />
          <NoteKept viewer={viewer} meetingId={meeting.id} />
        </>
      )}
    </div>
  );
}

interface BodyProps {
  meeting: Meeting;
  briefing: Briefing;
  viewer: Viewer;
  connection: Connection;
  onChange(): void;
}

/** In the order of a seller's glance, and on a narrow screen and on paper below each other in that order. */
function Body({ meeting, briefing, viewer, connection, onChange }: BodyProps) {
  const { deal, timeline, gaps } = briefing;
  const contacts = deal
    ? markCounted(timeline, deal.quiet.verdict, deal.quiet.reasons)
    : markCounted(timeline, "ACTIVE", []);
  return (
    <div className="columns columns-glance">
      <div className="stack">
        {deal && <DealCard deal={deal} meeting={meeting} onChange={onChange} />}
        <Candidates meeting={meeting} chosenId={deal?.id ?? null} onChosen={onChange} />
        {deal && <ChangesCard briefing={briefing} connectedAt={connection.connectedAt} />}
        {deal && <QuietCard deal={deal} contacts={contacts} />}
      </div>
      <aside className="stack" aria-label="People and history">
        <Attendees meeting={meeting} briefing={briefing} />
        <Timeline contacts={contacts} />
        <OtherDeals deals={deal ? briefing.otherDeals : notAmong(meeting.match.candidates, briefing.otherDeals)} />
      </aside>
      <div className="stack">
        {deal && <CrmNotes notes={deal.recentNotes} />}
        <Notes
          key={`${viewer.tenantId} ${viewer.userId}`}
          meeting={meeting}
          briefing={briefing}
          viewer={viewer}
          mappings={connection.fieldMappings}
          author={connection.boundUserName}
        />
        <Gaps gaps={gaps} />
      </div>
    </div>
  );
}

/** Those to choose from stand beside, with what speaks for each. */
const notAmong = (candidates: Meeting["match"]["candidates"], deals: Briefing["otherDeals"]) =>
  deals.filter(({ id }) => !candidates.some(({ deal }) => deal.id === id));

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
    <div className="stack">
      <PageHead title="There is no such meeting" />
      <Empty title="The address leads to no meeting of yours">
        <p className="muted">It may belong to another organization, or the address is not complete.</p>
        <Link href="/meetings" className="button">
          All meetings
        </Link>
      </Empty>
    </div>
  );
}
