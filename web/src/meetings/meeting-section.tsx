import { useCallback, useState } from "react";
import { useQuery } from "urql";
import { useChanges, useMatches } from "../api/changes";
import { useKept } from "../api/kept";
import { type MeetingFilter, type MeetingOrder, MeetingsDocument } from "../api/operations.generated";
import { Button, Card, Loading } from "../ui/parts";
import { Problem } from "../ui/problem";
import { MeetingLine } from "./meeting-line";
import type { Section } from "./wishes";

interface SectionProps {
  name: Section["name"];
  filter: MeetingFilter;
  orderBy: MeetingOrder;
  /** Others of that time may be there, and are not asked for. */
  isNarrowed: boolean;
  onChanged(): void;
}

const NOTHING: Record<Section["name"], { at: string; fits: string }> = {
  Today: { at: "No meeting today.", fits: "No meeting of today fits." },
  Upcoming: { at: "No meeting is ahead.", fits: "No meeting ahead fits." },
  Past: { at: "No meeting has been.", fits: "No past meeting fits." },
};

/**
 * Meetings of one time. How many pages are shown is kept with the address in the browser's history: who comes back from a
 * meeting finds the list as long as it was, and so their place in it.
 */
export function MeetingSection(props: SectionProps) {
  const [pages, setPages] = useState<number>(() => {
    const kept: unknown = window.history.state?.[props.name];
    return typeof kept === "number" ? kept : 1;
  });
  const showMore = () => {
    setPages(pages + 1);
    window.history.replaceState({ ...window.history.state, [props.name]: pages + 1 }, "");
  };
  return (
    <Card title={props.name}>
      <Page {...props} after={null} following={pages - 1} onMore={showMore} />
    </Card>
  );
}

interface PageProps extends SectionProps {
  after: string | null;
  /** Pages that are shown behind it. */
  following: number;
  onMore(): void;
}

/** Each page begins where the one before it ends now: a meeting that came or went shows none twice, and leaves none out. */
function Page(props: PageProps) {
  const { name, filter, orderBy, isNarrowed, after, following, onMore, onChanged } = props;
  const [read, refresh] = useQuery({
    query: MeetingsDocument,
    variables: { after, filter, orderBy },
    requestPolicy: "cache-and-network",
  });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  useChanges(reread);
  useMatches(reread);
  const { data: shown, error } = useKept(read.data, read.error);
  const problem = error && <Problem error={error} again={reread} />;
  if (!shown) return problem ?? <Loading what={name} />;
  const { nodes, pageInfo } = shown.meetings;
  const { endCursor, hasNextPage } = pageInfo;
  const changed = () => {
    reread();
    onChanged();
  };
  if (nodes.length === 0 && after === null) {
    const { at, fits } = NOTHING[name];
    return problem ?? <p className="muted">{isNarrowed ? fits : at}</p>;
  }
  return (
    <>
      {problem}
      <ul className="list">
        {nodes.map((meeting) => (
          <MeetingLine
            key={meeting.id}
            meeting={meeting}
            connection={shown.connection}
            isToday={name === "Today"}
            onChanged={changed}
          />
        ))}
      </ul>
      {hasNextPage && following > 0 && <Page {...props} after={endCursor} following={following - 1} />}
      {hasNextPage && following === 0 && (
        <div>
          <Button aria-label={`Show more: ${name}`} onClick={onMore}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}
