import { useState } from "react";
import { useMutation } from "urql";
import { WakeDealDocument } from "../api/operations.generated";
import { announce } from "../ui/announcing";
import { Confirm } from "../ui/confirm";
import { Badge, Button, Fact, Facts, Notice } from "../ui/parts";
import { Problem } from "../ui/problem";
import { VERDICT } from "../ui/tones";
import { dateAndTime, money } from "../ui/words";
import { byStrength, type QuietDeal, silenceOf } from "./silence";
import { SnoozeForm } from "./snooze-form";

interface DealDialogProps {
  deal: QuietDeal;
  onClose(): void;
  /** It was snoozed or woken. */
  onChanged(): void;
}

/** All that is known of one deal's silence, and a word on it. */
export function DealDialog({ deal, onClose, onChanged }: DealDialogProps) {
  const { title, crmUrl, quiet, snooze } = deal;
  const { strongest, others } = byStrength(quiet);
  const { text, tone } = VERDICT[quiet.verdict];
  const [isAsking, setAsking] = useState(false);
  const done = (what: string) => {
    announce(what);
    onClose();
    onChanged();
  };
  return (
    <Confirm title={title} busy={isAsking} onClose={onClose}>
      <div className="row">
        <Badge tone={tone}>{text}</Badge>
        {crmUrl && (
          <a href={crmUrl} target="_blank" rel="noreferrer">
            Open in the CRM
          </a>
        )}
      </div>
      <DealFacts deal={deal} />
      <ul className="bullets">
        {[...(strongest ? [strongest] : []), ...others].map(({ code, message }) => (
          <li key={code}>{message}</li>
        ))}
      </ul>
      {snooze && (
        <Snoozed
          deal={deal}
          snooze={snooze}
          onAsking={setAsking}
          onWoken={() => done(`${title} is on the board again`)}
        />
      )}
      <SnoozeForm
        dealId={deal.id}
        isBusy={isAsking}
        onAsking={setAsking}
        onSnoozed={(until) => done(`${title} is snoozed until ${dateAndTime(until)}`)}
        onClose={onClose}
      />
    </Confirm>
  );
}

function DealFacts({ deal: { value, owner, organization, stage, pipeline, quiet } }: { deal: QuietDeal }) {
  const silence = silenceOf(quiet);
  return (
    <Facts>
      <Fact name="Silence">
        {silence.days}
        {silence.of && `, ${silence.of}`}
      </Fact>
      <Fact name="Value">{value ? money(value) : "not known"}</Fact>
      <Fact name="Owner">
        <bdi>{owner?.name ?? "not known"}</bdi>
      </Fact>
      <Fact name="Stage">
        <bdi>{stage?.name ?? "not known"}</bdi>
        {pipeline && (
          <>
            {" in "}
            <bdi>{pipeline.name}</bdi>
          </>
        )}
      </Fact>
      {organization && (
        <Fact name="Company">
          <bdi>{organization.name}</bdi>
        </Fact>
      )}
    </Facts>
  );
}

interface SnoozedProps {
  deal: QuietDeal;
  snooze: NonNullable<QuietDeal["snooze"]>;
  onAsking(isAsking: boolean): void;
  onWoken(): void;
}

function Snoozed({ deal, snooze: { reason, until, by }, onAsking, onWoken }: SnoozedProps) {
  const [{ fetching, data, error }, wake] = useMutation(WakeDealDocument);
  const refusal = data && "message" in data.wakeDeal ? data.wakeDeal.message : null;
  const woken = async () => {
    onAsking(true);
    const { data: answer } = await wake({ dealId: deal.id });
    onAsking(false);
    if (answer && "deal" in answer.wakeDeal) onWoken();
  };
  return (
    <>
      <Notice tone="info" title={`Snoozed until ${dateAndTime(until)}`}>
        <p>
          <bdi>{reason}</bdi> <span className="muted">({by})</span>
        </p>
        <Button busy={fetching} onClick={woken}>
          Wake it
        </Button>
      </Notice>
      {refusal && <Notice tone="bad" title={refusal} />}
      {error && <Problem error={error} />}
    </>
  );
}
