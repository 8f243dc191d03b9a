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

type Cursors = readonly (string | null)[];

/**
 * Meetings of one time. Each page stays where it is while newer ones are read. Which are shown is kept with the address in
 * the browser's history: who comes back from a meeting finds the list as long as it was, and so their place in it.
 */
export function MeetingSection(props: SectionProps) {
  const [pages, setPages] = useState<Cursors>(() => {
    const kept: unknown = window.history.state?.[props.name];
    return Array.isArray(kept) ? kept : [null];
  });
  const showMore = (cursor: string) => {
    const more = [...pages, cursor];
    setPages(more);
    window.history.replaceState({ ...window.history.state, [props.name]: more }, "");
  };
  return (
    <Card title={props.name}>
      {pages.map((after, index) => (
        <Page key={after} {...props} after={after} onMore={index === pages.length - 1 ? showMore : undefined} />
      ))}
    </Card>
  );
}

interface PageProps extends SectionProps {
  after: string | null;
  /** Absent where what follows is shown already. */
  onMore: ((cursor: string) => void) | undefined;
}

function Page({ name, filter, orderBy, isNarrowed, after, onMore, onChanged }: PageProps) {
  const [{ data, error }, refresh] = useQuery({
    query: MeetingsDocument,
    variables: { after, filter, orderBy },
    requestPolicy: "cache-and-network",
  });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  useChanges(reread);
  useMatches(reread);
  const shown = useKept(data);
  if (!shown) return error ? <Problem error={error} again={reread} /> : <Loading what={name} />;
  const { nodes, pageInfo } = shown.meetings;
  const { endCursor } = pageInfo;
  const changed = () => {
    reread();
    onChanged();
  };
  if (nodes.length === 0 && after === null) {
    const { at, fits } = NOTHING[name];
    return <p className="muted">{isNarrowed ? fits : at}</p>;
  }
  return (
    <>
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
      {onMore && pageInfo.hasNextPage && endCursor && (
        <div>
          <Button aria-label={`Show more: ${name}`} onClick={() => onMore(endCursor)}>
            Show more
          </Button>
        </div>
      )}
    </>
  );
}
