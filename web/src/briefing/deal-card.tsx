import { Badge, Card, Fact, Facts, When } from "../ui/parts";
import { day, money } from "../ui/words";
import type { Briefing } from "./briefing-page";
import { DEAL_STATUS } from "./wording";

export type Deal = NonNullable<Briefing["deal"]>;
const NOT_KNOWN = "not known";

/** The deal that the meeting is about, and why it is that one. */
export function DealCard({ deal, reason }: { deal: Deal; reason: string }) {
  const { title, status, crmUrl, organization } = deal;
  return (
    <Card title={title} aside={<Badge tone={DEAL_STATUS[status].tone}>{DEAL_STATUS[status].text}</Badge>}>
      <p className="muted">
        {organization?.name ?? "No company"}
        {crmUrl && (
          <>
            {", "}
            <a href={crmUrl} target="_blank" rel="noreferrer">
              open in the CRM
            </a>
          </>
        )}
      </p>
      <DealFacts deal={deal} />
      <p className="small">
        <strong>Why this deal:</strong> {reason}
      </p>
      {!deal.participantsKnown && (
        <p className="small tone-warn notice">
          The participants of this deal could not be read, so people may be missing.
        </p>
      )}
      {deal.recentNotes.map(({ id, text, createdAt, author }) => (
        <blockquote key={id} className="quote">
          <p>{text}</p>
          <footer className="small muted">
            {author?.name ?? "Somebody"}, <When at={createdAt} />
          </footer>
        </blockquote>
      ))}
    </Card>
  );
}

function DealFacts({ deal }: { deal: Deal }) {
  const { stage, pipeline, value, owner, expectedCloseDate, stageChangedAt, nextActivity } = deal;
  return (
    <Facts>
      <Fact name="Stage">
        {stage?.name ?? NOT_KNOWN}
        <br />
        <span className="small muted">
          {pipeline?.name ?? "pipeline not known"}
          {stageChangedAt && (
            <>
              , since <When at={stageChangedAt} />
            </>
          )}
        </span>
      </Fact>
      <Fact name="Value">
        <span className="number">{value ? money(value) : NOT_KNOWN}</span>
      </Fact>
      <Fact name="Expected to close">{expectedCloseDate ? day(expectedCloseDate) : NOT_KNOWN}</Fact>
      <Fact name="Owner">{owner?.name ?? NOT_KNOWN}</Fact>
      <Fact name="Next step">
        {nextActivity ? (
          <>
            {nextActivity.subject}
            {nextActivity.dueAt && (
              <>
                , <When at={nextActivity.dueAt} />
              </>
            )}
          </>
        ) : (
          "none planned"
        )}
      </Fact>
    </Facts>
  );
}
