import { useCallback, useState } from "react";
import { useQuery } from "urql";
import { Link } from "wouter";
import { useChanges } from "../api/changes";
import { useKept } from "../api/kept";
import { QuietDealsDocument, type QuietVerdict } from "../api/operations.generated";
import { Button, Card, Empty, Loading } from "../ui/parts";
import { Problem } from "../ui/problem";
import { counted, money } from "../ui/words";
import { byPipelineAndStage, type QuietDeal, totals } from "./groups";
import { QuietChart } from "./quiet-chart";
import { StageTable } from "./stage-table";

const QUIET: QuietVerdict[] = ["QUIET", "GHOSTED"];
const QUIET_OR_COOLING: QuietVerdict[] = [...QUIET, "COOLING"];

/** Open deals that have gone quiet, by pipeline and stage, the longest silence first. */
export function QuietPage() {
  const [cooling, showCooling] = useState(false);
  return (
    <div className="stack">
      <header className="row row-apart page-head">
        <h1>Quiet deals</h1>
        <label className="row check">
          <input type="checkbox" checked={cooling} onChange={({ target }) => showCooling(target.checked)} />
          Also deals that are cooling
        </label>
      </header>
      <Board key={String(cooling)} verdicts={cooling ? QUIET_OR_COOLING : QUIET} />
    </div>
  );
}

function Board({ verdicts }: { verdicts: QuietVerdict[] }) {
  const [before, setBefore] = useState<QuietDeal[]>([]);
  const [after, setAfter] = useState<string | null>(null);
  const [{ data, error, fetching }, refresh] = useQuery({
    query: QuietDealsDocument,
    variables: { verdicts, after },
    requestPolicy: "cache-and-network",
  });
  const reread = useCallback(() => refresh({ requestPolicy: "network-only" }), [refresh]);
  useChanges(() => {
    setBefore([]);
    setAfter(null);
    reread();
  });
  const shown = useKept(data);
  if (!shown) return error ? <Problem error={error} again={reread} /> : <Loading what="The board" />;
  const { nodes, pageInfo } = shown.deals;
  const known = new Set(before.map(({ id }) => id));
  const deals = [...before, ...nodes.filter(({ id }) => !known.has(id))];
  const more = () => {
    setBefore(deals);
    setAfter(pageInfo.endCursor);
  };
  return (
    <>
      {error && <Problem error={error} again={reread} />}
      {deals.length === 0 ? (
        <Nothing connected={shown.connection.state !== "NOT_CONNECTED"} />
      ) : (
        <Groups deals={deals} />
      )}
      {pageInfo.hasNextPage && (
        <div className="row">
          <Button busy={fetching} onClick={more}>
            Show more
          </Button>
          <span className="small muted">
            {counted(deals.length, "deal")} shown; there are more with a shorter silence.
          </span>
        </div>
      )}
    </>
  );
}

function Groups({ deals }: { deals: readonly QuietDeal[] }) {
  const groups = byPipelineAndStage(deals);
  const sums = totals(deals).map(money).join(" and ");
  return (
    <>
      <Card title={`${counted(deals.length, "deal")}${sums && `, worth ${sums}`}`}>
        <QuietChart groups={groups} />
      </Card>
      {groups.map(({ key, name, stages }) => (
        <Card key={key} title={name}>
          {stages.map((stage) => (
            <StageTable key={stage.key} stage={stage} />
          ))}
        </Card>
      ))}
    </>
  );
}

function Nothing({ connected }: { connected: boolean }) {
  if (connected) {
    return (
      <Empty title="No deal has gone quiet">
        <p className="muted">
          Every open deal of the people in your recorded meetings has recent contact or a next step. Deals without a
          recorded meeting are not looked at.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No CRM is connected">
      <p className="muted">Whether a deal has gone quiet is judged from what the CRM knows.</p>
      <Link href="/settings" className="button button-main">
        Open the CRM connection
      </Link>
    </Empty>
  );
}
