import { now } from "../api/clock";
import type { ShownReasonFragment } from "../api/operations.generated";
import { Badge, Card, When } from "../ui/parts";
import { VERDICT } from "../ui/tones";
import { counted, dayUnit } from "../ui/words";
import { ContactChart } from "./contact-chart";
import type { Deal } from "./deal-card";
import { type MarkedContact, nearChange, sortReasons } from "./silence";

/** Whether the deal has gone quiet, why, and a picture of the contact behind it. */
export function QuietCard({ deal, contacts }: { deal: Deal; contacts: readonly MarkedContact[] }) {
  const { verdict, quietDays, businessDays, reasons, nextChangeAt, quietSince, asOf } = deal.quiet;
  const { text, tone, meaning } = VERDICT[verdict];
  const { fired, besides } = sortReasons(verdict, reasons);
  const changesAt = nearChange(nextChangeAt, now());
  return (
    <Card title="Contact with the buyer" aside={<Badge tone={tone}>{text}</Badge>}>
      <p>
        {meaning}
        {quietDays !== null && ` ${silenceInWords(verdict === "GHOSTED", counted(quietDays, dayUnit(businessDays)))}`}
      </p>
      <Reasons reasons={fired} />
      <ContactChart contacts={contacts} now={asOf} quietSince={quietSince} nextStep={deal.nextActivity} />
      {besides.length > 0 && (
        <>
          <h3>Worth knowing</h3>
          <Reasons reasons={besides} />
        </>
      )}
      {changesAt && (
        <p className="small muted">
          If nothing happens, this changes <When at={changesAt} />.
        </p>
      )}
    </Card>
  );
}

const silenceInWords = (isGhosted: boolean, days: string): string =>
  isGhosted ? `The buyer has been silent for ${days}.` : `There was no contact for ${days}.`;

function Reasons({ reasons }: { reasons: readonly ShownReasonFragment[] }) {
  if (reasons.length === 0) return null;
  return (
    <ul className="bullets">
      {reasons.map(({ code, message }) => (
        <li key={code}>{message}</li>
      ))}
    </ul>
  );
}
