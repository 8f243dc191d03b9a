import { useCallback, useEffect, useRef, useState } from "react";
import { type Client, type CombinedError, useClient } from "urql";
import { useChanges, useSilences } from "../api/changes";
import { useKept } from "../api/kept";
import { type DealFilter, type DealOrder, QuietDealsDocument, type QuietDealsQuery } from "../api/operations.generated";

/** As many as come at once, and with each "Show more". */
const PAGE = 50;
/** As many as the service gives in one answer. */
const MOST_IN_ONE = 100;
type Page = QuietDealsQuery;
interface Board {
  connection: Page["connection"];
  totalCount: Page["deals"]["totalCount"];
  totals: Page["deals"]["totals"];
  deals: Page["deals"]["nodes"];
  hasMore: boolean;
}

interface Asked {
  filter: DealFilter;
  orderBy: DealOrder;
}

/** With an error there is none, or it lacks something. */
interface Answer {
  board?: Board;
  error: CombinedError | undefined;
}

/** As many deals as were shown already, however many pages that takes, so that reading anew takes none away. */
async function readBoard(client: Client, asked: Asked, wanted: number, isOver: () => boolean): Promise<Answer> {
  const pages: Page[] = [];
  const deals: Board["deals"] = [];
  let missing: CombinedError | undefined;
  for (;;) {
    const after = pages.at(-1)?.deals.pageInfo.endCursor ?? null;
    const variables = { ...asked, first: Math.min(MOST_IN_ONE, wanted - deals.length), after };
    const read = client.query(QuietDealsDocument, variables, { requestPolicy: "network-only" });
    const { data, error } = await read.toPromise();
    if (!data) return { error };
    missing ??= error;
    pages.push(data);
    deals.push(...data.deals.nodes);
    const [first = data] = pages;
    const { hasNextPage } = data.deals.pageInfo;
    if (hasNextPage && deals.length < wanted && !isOver()) continue;
    const { totalCount, totals } = first.deals;
    const board = { connection: data.connection, totalCount, totals, deals, hasMore: hasNextPage };
    return { board, error: missing };
  }
}

/** The board as it is, read anew whenever something changes. What is shown stays until what is newer has come. */
export function useBoard(asked: Asked) {
  const client = useClient();
  const [answer, setAnswer] = useState<Answer>();
  const [isReading, setReading] = useState(true);
  const [wanted, setWanted] = useState(PAGE);
  const [version, setVersion] = useState(0);
  const reread = useCallback(() => setVersion((before) => before + 1), []);
  useChanges(reread);
  useSilences(reread);
  const question = JSON.stringify({ asked, wanted, version });
  // The client gives equal questions that are under way one answer: an older one is waited for, so that none is taken for newer.
  const underWay = useRef(Promise.resolve());
  useEffect(() => {
    let isOver = false;
    const now: { asked: Asked; wanted: number } = JSON.parse(question);
    setReading(true);
    underWay.current = underWay.current.then(async () => {
      if (isOver) return;
      const latest = await readBoard(client, now.asked, now.wanted, () => isOver);
      if (isOver) return;
      setReading(false);
      setAnswer(latest);
    });
    return () => {
      isOver = true;
    };
  }, [client, question]);
  const { data: board, error } = useKept(answer?.board, answer?.error);
  return { board, error, isReading, reread, showMore: () => setWanted((before) => before + PAGE) };
}
