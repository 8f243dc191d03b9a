import { useEffect, useEffectEvent, useState } from "react";
import { Link, useSearch, useSearchParams } from "wouter";
import { useChanges } from "../api/changes";
import { QuietChoicesDocument } from "../api/operations.generated";
import { useRead } from "../api/read";
import { announce } from "../ui/announcing";
import { Freshness, Staleness } from "../ui/freshness";
import { PageHead } from "../ui/page";
import { Button, Card, Loading } from "../ui/parts";
import { Problem } from "../ui/problem";
import { counted } from "../ui/words";
import { DealDialog } from "./deal-dialog";
import { DealTable } from "./deal-table";
import { Filters } from "./filters";
import { NothingQuiet } from "./nothing-quiet";
import { QuietChart } from "./quiet-chart";
import { headline, type QuietDeal } from "./silence";
import { useBoard } from "./use-board";
import { filterOf, isNarrowed, readWishes, type Wishes, writeWishes } from "./wishes";

/** Open deals that have gone quiet, as a list and as a picture. */
export function QuietPage() {
  const wishes = readWishes(useSearch());
  const [, setSearch] = useSearchParams();
  const wish = (changed: Partial<Wishes>) => setSearch(writeWishes({ ...wishes, ...changed }), { replace: true });
  const { data: choices, error, reread } = useRead(QuietChoicesDocument, {});
  useChanges(reread);
  const [currencies, setCurrencies] = useState<readonly string[]>([]);
  return (
    <div className="stack">
      <PageHead
        title="Quiet deals"
        aside={
          <Link href="/quiet/settings" className="button">
            When is a deal quiet?
          </Link>
        }
      />
      <Filters wishes={wishes} choices={choices?.connection} currencies={currencies} onWish={wish} />
      {error && !choices && (
        <div className="row small" role="status">
          Owners and pipelines could not be read.
          <Button onClick={reread}>Read them again</Button>
        </div>
      )}
      <Board
        key={writeWishes(wishes)}
        wishes={wishes}
        onSeen={(seen) => setCurrencies((known) => union(known, seen))}
      />
    </div>
  );
}

interface BoardProps {
  wishes: Wishes;
  /** The currencies of what fits: a filter by value needs one. */
  onSeen(currencies: readonly string[]): void;
}

/** The same list where nothing is new, so that nothing is drawn again for it. */
function union(known: readonly string[], seen: readonly string[]): readonly string[] {
  const added = seen.filter((one) => !known.includes(one));
  return added.length === 0 ? known : [...known, ...added].sort();
}

function Board({ wishes, onSeen }: BoardProps) {
  const { board, error, isReading, reread, showMore } = useBoard({ filter: filterOf(wishes), orderBy: wishes.order });
  const [opened, open] = useState<QuietDeal | null>(null);
  const told = useEffectEvent(onSeen);
  useEffect(() => {
    if (board) told(board.deals.flatMap(({ value }) => value?.currency ?? []));
  }, [board]);
  const said = board && headline(board);
  useEffect(() => {
    if (said) announce(said);
  }, [said]);
  if (!board) return error ? <Problem error={error} again={reread} /> : <Loading what="The board" />;
  const { connection, deals, hasMore } = board;
  return (
    <>
      {error && <Problem error={error} again={reread} />}
      <Staleness connection={connection} />
      {deals.length === 0 ? (
        <NothingQuiet connection={connection} narrowed={isNarrowed(wishes)} />
      ) : (
        <Card title={headline(board)} aside={<Freshness connection={connection} />}>
          <QuietChart deals={deals} onOpen={open} />
          <DealTable deals={deals} onOpen={open} />
        </Card>
      )}
      {hasMore && (
        <div className="row">
          <Button busy={isReading} onClick={showMore}>
            Show more
          </Button>
          <span className="small muted">{counted(deals.length, "deal")} shown, in the list and the picture.</span>
        </div>
      )}
      {opened && <DealDialog deal={opened} onClose={() => open(null)} onChanged={reread} />}
    </>
  );
}
