import { useCallback, useState } from "react";
import { useQuery } from "urql";
import { Link } from "wouter";
import { useChanges } from "../api/changes";
import { useKept } from "../api/kept";
import { MeetingsDocument, type MeetingsQuery } from "../api/operations.generated";
import { Badge, Button, Empty, Loading } from "../ui/parts";
import { Problem } from "../ui/problem";
import { VERDICT } from "../ui/tones";
import { counted, dateAndTime } from "../ui/words";

type Meeting = MeetingsQuery["meetings"]["nodes"][number];

/** The recorded meetings, latest first, each with the deal that it is about. */
export function MeetingsPage() {
  const [pages, setPages] = useState<(string | null)[]>([null]);
  return (
    <div className="stack">
      <header className="page-head">
        <h1>Meetings</h1>
      </header>
      {pages.map((after, index) => (
        <Page
          key={after}
          after={after}
          onMore={index === pages.length - 1 ? (cursor) => setPages([...pages, cursor]) : undefined}
        />
      ))}
    </div>
  );
}

function Page({ after, onMore }: { after: string | null; onMore: ((cursor: string) => void) | undefined }) {
  const [{ data, error }, refresh] = useQuery({
    query: MeetingsDocument,
    variables: { after },
    requestPolicy: "cache-and-network",
  });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  useChanges(reread);
  const shown = useKept(data);
  if (error && !shown) return <Problem error={error} again={reread} />;
  if (!shown) return <Loading what="The list of meetings" />;
  const { nodes, pageInfo } = shown.meetings;
  const { endCursor } = pageInfo;
  if (nodes.length === 0 && after === null) return <NoMeetings />;
  return (
    <>
      {error && <Problem error={error} again={reread} />}
      <ul className="card list">
        {nodes.map((meeting) => (
          <MeetingLine key={meeting.id} meeting={meeting} />
        ))}
      </ul>
      {onMore && pageInfo.hasNextPage && endCursor && (
        <div>
          <Button onClick={() => onMore(endCursor)}>Show earlier meetings</Button>
        </div>
      )}
    </>
  );
}

function MeetingLine({ meeting }: { meeting: Meeting }) {
  const { id, title, startsAt, ownerEmail } = meeting;
  return (
    <li className="list-line">
      <div>
        <h2 className="list-title">
          <Link href={`/meetings/${id}`}>{title}</Link>
        </h2>
        <p className="small muted">
          <time dateTime={startsAt}>{dateAndTime(startsAt)}</time>, {ownerEmail}
        </p>
      </div>
      <div className="row">
        <About meeting={meeting} />
      </div>
    </li>
  );
}

function About({ meeting: { match } }: { meeting: Meeting }) {
  const { deal, status, candidates } = match;
  if (deal) {
    const { text, tone } = VERDICT[deal.quiet.verdict];
    return (
      <>
        <span>{deal.title}</span>
        <Badge tone={tone}>{text}</Badge>
      </>
    );
  }
  if (status === "NEEDS_CHOICE") return <Badge tone="warn">{counted(candidates.length, "deal")} to choose from</Badge>;
  return <span className="muted">{status === "PENDING" ? "Not known yet" : "No deal"}</span>;
}

function NoMeetings() {
  return (
    <Empty title="No meeting is recorded yet">
      <p className="muted">
        Meetings appear here as soon as the product records them, with the deal that they are about.
      </p>
    </Empty>
  );
}
