import { Badge, When } from "../ui/parts";
import { apart, counted, dayOf, span } from "../ui/words";
import type { Briefing, Meeting } from "./targets";

/** Named in the heading; who else comes is in the list of people. */
const NAMED = 3;

/** When the meeting is and with whom, in two lines. */
export function WhenAndWhom({ meeting }: { meeting: Meeting }) {
  const { startsAt, endsAt, cancelledAt, owner, ownerEmail } = meeting;
  return (
    <>
      <p>
        {cancelledAt && (
          <>
            <Badge tone="warn">Cancelled</Badge>{" "}
          </>
        )}
        <strong>
          <time dateTime={startsAt}>
            {dayOf(startsAt)}, {span(startsAt, endsAt)}
          </time>
        </strong>
        , <When at={startsAt} />
      </p>
      <p>
        With <bdi>{namesOf(meeting)}</bdi>; held by <bdi>{owner?.name ?? ownerEmail}</bdi>
      </p>
    </>
  );
}

/** The buyers by name, as the calendar or the CRM has it, and how many more there are. */
function namesOf({ attendees, briefing }: Meeting): string {
  const known = new Map(briefing?.persons.flatMap((person) => namesByAddress(person)));
  const buyers = attendees
    .filter(({ side }) => side === "BUYER")
    .map(({ name, email }) => name ?? known.get(email.toLowerCase()) ?? email)
    .map(apart);
  if (buyers.length === 0) return "nobody from the customer's side";
  const more = buyers.length - NAMED;
  const named = buyers.slice(0, NAMED).join(", ");
  return more > 0 ? `${named} and ${counted(more, "other")}` : named;
}

const namesByAddress = ({ name, emails }: Briefing["persons"][number]) =>
  emails.map(({ address }) => [address.toLowerCase(), name] as const);
