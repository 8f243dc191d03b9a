import type { BriefingQuery } from "../api/operations.generated";
import { apart } from "../ui/words";

export type Viewer = BriefingQuery["viewer"];
export type Meeting = NonNullable<BriefingQuery["meeting"]>;
export type Briefing = NonNullable<Meeting["briefing"]>;

/** A record of the CRM that a note can be written on. */
export interface Target {
  id: string;
  name: string;
}

/** Of what a browser has kept: another version of the page may have kept something else. */
export const isTarget = (kept: Partial<Target> | undefined): kept is Target =>
  typeof kept?.id === "string" && typeof kept.name === "string";

const onDeal = ({ id, title }: NonNullable<Briefing["deal"]>): Target => ({ id, name: `Deal: ${apart(title)}` });
const onPerson = ({ id, name }: Briefing["persons"][number]): Target => ({ id, name: `Person: ${apart(name)}` });

/** The meeting's deal first: it is what a note is most often about. */
export function targetsOf({ deal, persons, organizations }: Briefing): Target[] {
  return [
    ...(deal ? [onDeal(deal)] : []),
    ...persons.map(onPerson),
    ...organizations.map(({ id, name }) => ({ id, name: `Organization: ${apart(name)}` })),
  ];
}

/** As the service chooses where no target is named: the deal, or the only person where no deal could be meant. */
export function matchedTarget({ match, attendees }: Meeting, { deal, persons }: Briefing): Target | null {
  if (match.mayChange) return null;
  if (deal) return onDeal(deal);
  const [person, ...others] = persons;
  const isOpen = match.status !== "NONE" || attendees.some((attendee) => attendee.match.status === "AMBIGUOUS");
  return person && others.length === 0 && !isOpen ? onPerson(person) : null;
}
