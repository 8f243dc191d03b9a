import { useCallback, useEffect, useRef } from "react";
import { useQuery } from "urql";
import { Link, useSearch, useSearchParams } from "wouter";
import { useChanges, useMatches } from "../api/changes";
import { useKept } from "../api/kept";
import { MeDocument, MeetingCountsDocument, type MeetingCountsQuery } from "../api/operations.generated";
import { announce } from "../ui/announcing";
import { Freshness, Staleness } from "../ui/freshness";
import { PageHead } from "../ui/page";
import { Empty, Loading, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { counted, number, zone } from "../ui/words";
import { MeetingSection } from "./meeting-section";
import { Narrowing } from "./narrowing";
import { useToday } from "./use-today";
import { filterOf, isNarrowed, readWishes, sectionsAt, type Tab, type Wishes, writeWishes } from "./wishes";

/** The recorded meetings as a list of work: what is today, what comes, what has been, and where somebody has to choose. */
export function MeetingsPage() {
  const wishes = readWishes(useSearch());
  const [, setSearch] = useSearchParams();
  const wish = (changed: Partial<Wishes>) => setSearch(writeWishes({ ...wishes, ...changed }), { replace: true });
  const me = useMe();
  const isKnown = me.email !== undefined || !wishes.mine;
  const email = me.email ?? null;
  const { counts, isReading, ...read } = useCounts(wishes, email, isKnown);
  const error = read.error ?? (isKnown ? undefined : me.error);
  const reread = () => {
    me.reread();
    read.reread();
  };
  useFound(wishes, isReading ? undefined : counts);
  return (
    <div className="stack">
      <PageHead
        title="Meetings"
        below={<p className="small">Times are those of {zone()}.</p>}
        aside={counts && <Freshness connection={counts.connection} />}
      />
      {error && <Problem error={error} again={reread} />}
      {!counts && !error && <Loading what="The list of meetings" />}
      {counts && isKnown && (
        <>
          <Truth connection={counts.connection} />
          {counts.recorded.totalCount === 0 ? (
            <NoMeetings />
          ) : (
            <>
              <Tabs wishes={wishes} counts={counts} />
              <Narrowing wishes={wishes} email={me.email} onWish={wish} />
              <Sections wishes={wishes} email={email} onChanged={reread} />
            </>
          )}
        </>
      )}
    </div>
  );
}

/** Whose meetings are "mine"; undefined until that is known, and asked for again whenever the page reads anew. */
function useMe() {
  const [{ data, error }, ask] = useQuery({ query: MeDocument });
  const isMissing = !data;
  const reread = useCallback(() => {
    if (isMissing) ask({ requestPolicy: "network-only" });
  }, [isMissing, ask]);
  useChanges(reread);
  return { email: data?.viewer.email, error, reread };
}

/** How many there are under each tab, of what is searched for. */
function useCounts(wishes: Wishes, email: string | null, isKnown: boolean) {
  const [{ data, error, fetching, stale }, refresh] = useQuery({
    query: MeetingCountsDocument,
    variables: {
      all: filterOf({ ...wishes, tab: "all" }, email),
      toChoose: filterOf({ ...wishes, tab: "choice" }, email),
      withoutDeal: filterOf({ ...wishes, tab: "none" }, email),
    },
    requestPolicy: "cache-and-network",
    pause: !isKnown,
  });
  // What is asked for before that is known would be everybody's.
  const reread = useCallback(() => {
    if (isKnown) refresh({ requestPolicy: "network-only" });
  }, [isKnown, refresh]);
  useChanges(reread);
  useMatches(reread);
  const kept = useKept(data, error);
  return { counts: kept.data, error: kept.error, isReading: fetching || stale, reread };
}

/** Reads out how many there are once others are asked for: whoever types or presses a tab does not see the list change. */
function useFound(wishes: Wishes, counts: MeetingCountsQuery | undefined): void {
  const asked = writeWishes(wishes);
  const told = useRef(asked);
  const found = counts?.[TAB[wishes.tab].of].totalCount;
  useEffect(() => {
    if (found === undefined || told.current === asked) return;
    told.current = asked;
    announce(found === null ? "Many meetings" : counted(found, "meeting"));
  }, [found, asked]);
}

function Truth({ connection }: { connection: MeetingCountsQuery["connection"] }) {
  if (connection.state !== "NOT_CONNECTED") return <Staleness connection={connection} />;
  return (
    <Notice tone="info" title="No CRM is connected, so no meeting is matched to a deal">
      <Link href="/settings">Open the CRM connection</Link>
    </Notice>
  );
}

const TAB: Record<Tab, { name: string; of: "all" | "toChoose" | "withoutDeal" }> = {
  all: { name: "All", of: "all" },
  choice: { name: "Needs a choice", of: "toChoose" },
  none: { name: "No deal", of: "withoutDeal" },
};

/** Without a connection nobody has looked for deals: then there is nothing to choose, and no "No deal" either. */
function Tabs({ wishes, counts }: { wishes: Wishes; counts: MeetingCountsQuery }) {
  const tabs = counts.connection.state === "NOT_CONNECTED" ? (["all"] as const) : (["all", "choice", "none"] as const);
  return (
    <nav aria-label="Which meetings">
      <ul className="row">
        {tabs.map((tab) => {
          const { name, of } = TAB[tab];
          const count = counts[of].totalCount;
          return (
            <li key={tab}>
              <Link
                href={`/meetings${writeWishes({ ...wishes, tab })}`}
                className="tab"
                aria-current={tab === wishes.tab ? "page" : undefined}
              >
                {name} ({count === null ? "many" : number(count)})
              </Link>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

interface SectionsProps {
  wishes: Wishes;
  email: string | null;
  onChanged(): void;
}

function Sections({ wishes, email, onChanged }: SectionsProps) {
  const today = useToday();
  const filter = filterOf(wishes, email);
  return sectionsAt(today).map(({ name, within, orderBy }) => (
    <MeetingSection
      key={`${name} ${within.to} ${JSON.stringify(filter)}`}
      name={name}
      filter={{ ...filter, ...within }}
      orderBy={orderBy}
      isNarrowed={isNarrowed(wishes)}
      onChanged={onChanged}
    />
  ));
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
