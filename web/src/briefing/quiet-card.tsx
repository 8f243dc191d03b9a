import type { ContactFragment } from "../api/operations.generated";
import { Badge, Card, When } from "../ui/parts";
import { VERDICT } from "../ui/tones";
import { counted } from "../ui/words";
import { ContactChart } from "./contact-chart";
import type { Deal } from "./deal-card";

/** Whether the deal has gone quiet, why, and a picture of the contact behind it. */
export function QuietCard({ deal, timeline }: { deal: Deal; timeline: readonly ContactFragment[] }) {
  const { verdict, quietDays, reasons, nextChangeAt, quietSince, asOf } = deal.quiet;
  const { text, tone, meaning } = VERDICT[verdict];
  return (
    <Card title="Contact with the buyer" aside={<Badge tone={tone}>{text}</Badge>}>
      <p>
        {meaning}
        {quietDays !== null && ` There was no contact for ${counted(quietDays, "day")}.`}
      </p>
      {reasons.length > 0 && (
        <ul className="bullets">
          {reasons.map(({ code, message }) => (
            <li key={code}>{message}</li>
          ))}
        </ul>
      )}
      <ContactChart
        contacts={timeline}
        now={asOf}
        quietSince={quietSince}
        nextStepAt={deal.nextActivity?.dueAt ?? null}
      />
      {nextChangeAt && (
        <p className="small muted">
          If nothing happens, this changes <When at={nextChangeAt} />.
        </p>
      )}
    </Card>
  );
}
