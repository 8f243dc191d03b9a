import { Badge, Card, Fact, Facts, ToTheCrm, When } from "../ui/parts";
import { day, money } from "../ui/words";
import { TakeBack } from "./take-back";
import type { Briefing, Meeting } from "./targets";
import { DEAL_STATUS } from "./wording";

export type Deal = NonNullable<Briefing["deal"]>;
const NOT_KNOWN = "not known";

/** The deal that the meeting is about, and why it is that one. */
export function DealCard({ deal, meeting, onChange }: { deal: Deal; meeting: Meeting; onChange(): void }) {
  const { title, status, crmUrl, organization } = deal;
  const { reason, rule } = meeting.match;
  return (
    <Card title={title} aside={<Badge tone={DEAL_STATUS[status].tone}>{DEAL_STATUS[status].text}</Badge>}>
      <p className="muted">
        <bdi>{organization?.name ?? "Company not known"}</bdi>
        <ToTheCrm crmUrl={crmUrl} />
      </p>
      <DealFacts deal={deal} />
      <div className="row row-apart">
        <p className="small">
          <strong>Why this deal:</strong> {reason}
        </p>
        {rule === "CHOSEN" && <TakeBack meetingId={meeting.id} onDone={onChange} />}
      </div>
      {!deal.participantsKnown && (
        <p className="small tone-warn notice">Who takes part in this deal is not known, so people may be missing.</p>
      )}
    </Card>
  );
}

function Due({ activity: { dueAt, dueDay } }: { activity: NonNullable<Deal["nextActivity"]> }) {
  return (
    dueAt && (
      <>
        , <When at={dueAt} on={dueDay} />
      </>
    )
  );
}

function DealFacts({ deal }: { deal: Deal }) {
  const { stage, pipeline, value, owner, expectedCloseDate, stageChangedAt, nextActivity } = deal;
  return (
    <Facts>
      <Fact name="Stage">
        <bdi>{stage?.name ?? NOT_KNOWN}</bdi>
        <br />
        <span className="small muted">
          <bdi>{pipeline?.name ?? "pipeline not known"}</bdi>
          {stageChangedAt && (
            <>
              , entered <When at={stageChangedAt} />
            </>
          )}
        </span>
      </Fact>
      <Fact name="Value">
        <span className="number">{value ? money(value) : NOT_KNOWN}</span>
      </Fact>
      <Fact name="Expected to close">{expectedCloseDate ? day(expectedCloseDate) : NOT_KNOWN}</Fact>
      <Fact name="Owner">
        <bdi>{owner?.name ?? NOT_KNOWN}</bdi>
      </Fact>
      <Fact name="Next step">
        {nextActivity ? (
          <>
            <bdi>{nextActivity.subject}</bdi>
            <Due activity={nextActivity} />
          </>
        ) : (
          "none planned"
        )}
      </Fact>
    </Facts>
  );
}
