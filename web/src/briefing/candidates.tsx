import { useState } from "react";
import { useMutation } from "urql";
import { ChooseDealDocument } from "../api/operations.generated";
import { announce } from "../ui/announcing";
import { Button, Card, Notice, ToTheCrm, When } from "../ui/parts";
import { Problem } from "../ui/problem";
import { apart, day, money } from "../ui/words";
import type { Meeting } from "./targets";
import { DEAL_STATUS, inWords } from "./wording";

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
  // A deal that is matched and not there could not be read: nobody is asked for another.
  if (others.length === 0 || (status === "MATCHED" && chosenId === null)) return null;
  if (chosenId === null) {
    return (
      <Card title="Which deal is this meeting about?">
        <p className="muted">{reason}</p>
        <Choices meeting={meeting} candidates={others} onChosen={onChosen} />
      </Card>
    );
  }
  return (
    <details className="card on-screen">
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
  const take = async ({ id, title }: Candidate["deal"]) => {
    setChoosing(id);
    const { data: answer } = await choose({ meetingId: meeting.id, dealId: id });
    if (!answer || "message" in answer.chooseDeal) return;
    announce(`The meeting is about ${title} now.`);
    onChosen();
  };
  return (
    <>
      <ul className="choices">
        {candidates.map(({ deal, reason }) => (
          <li key={deal.id} className="choice row row-apart">
            <Evidence deal={deal} reason={reason} />
            <Button
              busy={fetching && choosing === deal.id}
              aria-label={`Choose ${deal.title}`}
              onClick={() => take(deal)}
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

/** What speaks for a deal, and what tells it from the others. */
function Evidence({ deal, reason }: Candidate) {
  const { title, crmUrl, status, organization, stage, value, owner, expectedCloseDate, lastInteraction } = deal;
  const facts = [
    organization && apart(organization.name),
    status === "OPEN" ? stage && apart(stage.name) : DEAL_STATUS[status].text,
    value && money(value),
    owner && `owned by ${apart(owner.name)}`,
    expectedCloseDate && `expected to close ${day(expectedCloseDate)}`,
  ];
  return (
    <div className="stack stack-tight">
      <h3 dir="auto">{title}</h3>
      <p>{reason}</p>
      <p className="small muted breakable">{facts.filter(Boolean).join(", ")}</p>
      <p className="small muted">
        {lastInteraction ? (
          <>
            Last contact: <bdi>{inWords(lastInteraction)}</bdi>,{" "}
            <When at={lastInteraction.at} on={lastInteraction.day} />
          </>
        ) : (
          "No contact is known"
        )}
        <ToTheCrm crmUrl={crmUrl} />
      </p>
    </div>
  );
}
