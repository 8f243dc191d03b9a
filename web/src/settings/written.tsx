import type { ReactNode } from "react";
import { Link } from "wouter";
import { WrittenDocument } from "../api/operations.generated";
import { useRead } from "../api/read";
import { Receipt } from "../briefing/receipts";
import { Loading } from "../ui/parts";
import { Problem } from "../ui/problem";
import { Folded } from "./folded";

/** @param isMember who sees only their own */
export function Written({ isMember }: { isMember: boolean }) {
  return (
    <Folded
      title={isMember ? "What you wrote to the CRM" : "What was written to the CRM"}
      about="Show notes and field values, with what became of each"
    >
      {(first, more) => <Writes first={first} more={more} />}
    </Folded>
  );
}

function Writes({ first, more }: { first: number; more: (hasMore: boolean) => ReactNode }) {
  const { data, error, reread } = useRead(WrittenDocument, { first });
  if (!data) return error ? <Problem error={error} again={reread} /> : <Loading what="The list of writes" />;
  const { nodes, pageInfo } = data.crmWrites;
  return (
    <>
      {nodes.length === 0 && <p className="muted">Nothing was written yet.</p>}
      <ul className="list">
        {nodes.map((write) => (
          <li key={write.id} className="list-line">
            <Receipt write={write}>
              <p className="small">
                {write.meeting ? (
                  <Link href={`/meetings/${write.meeting.id}`} dir="auto">
                    {write.meeting.title}
                  </Link>
                ) : (
                  <span className="muted">The meeting was deleted.</span>
                )}
              </p>
            </Receipt>
          </li>
        ))}
      </ul>
      {more(pageInfo.hasNextPage)}
    </>
  );
}
