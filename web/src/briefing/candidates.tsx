import { useState } from "react";
import { useMutation } from "urql";
import { ChooseDealDocument } from "../api/operations.generated";
import { Button, Card, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { money } from "../ui/words";
import type { Meeting } from "./briefing-page";

interface CandidatesProps {
  meeting: Meeting;
  chosenId: string | null;
  onChosen(): void;
}

/** Every deal that could be meant. Where none is certain a person chooses; where one is, they may correct it. */
export function Candidates({ meeting, chosenId, onChosen }: CandidatesProps) {
  const { status, reason, candidates } = meeting.match;
  const others = candidates.filter(({ deal }) => deal.id !== chosenId);
  if ((status === "NONE" || status === "PENDING") && others.length === 0) {
    return (
      <Card title={status === "NONE" ? "No deal" : "Not known yet"}>
        <p>{reason}</p>
      </Card>
    );
  }
  if (others.length === 0) return null;
  if (chosenId === null) {
    return (
      <Card title="Which deal is this meeting about?">
        <p className="muted">{reason}</p>
        <Choices meeting={meeting} candidates={others} onChosen={onChosen} />
      </Card>
    );
  }
  return (
    <details className="card">
      <summary>It is about another deal</summary>
      <Choices meeting={meeting} candidates={others} onChosen={onChosen} />
    </details>
  );
}

type Candidate = Meeting["match"]["candidates"][number];

function Choices({ meeting, candidates, onChosen }: Omit<CandidatesProps, "chosenId"> & { candidates: Candidate[] }) {
  const [choosing, setChoosing] = useState<string | null>(null);
  const [{ fetching, data, error }, choose] = useMutation(ChooseDealDocument);
  const refusal = data && "message" in data.chooseDeal ? data.chooseDeal.message : null;
  return (
    <>
      <ul className="choices">
        {candidates.map(({ deal, reason }) => (
          <li key={deal.id} className="choice row row-apart">
            <div>
              <h3>{deal.title}</h3>
              <p className="small muted">
                {[deal.stage?.name, deal.value && money(deal.value), deal.owner?.name].filter(Boolean).join(", ")}
              </p>
              <p className="small">{reason}</p>
            </div>
            <Button
              busy={fetching && choosing === deal.id}
              aria-label={`Choose ${deal.title}`}
              onClick={() => {
                setChoosing(deal.id);
                choose({ meetingId: meeting.id, dealId: deal.id }).then(onChosen);
              }}
            >
              Choose
            </Button>
          </li>
        ))}
      </ul>
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
    </>
  );
}
