import { MINUTE_MS } from "../../platform/clock";
import { type CopyFacts, type DealFact, type MeetingFact, type Standing, standingAt } from "./facts";
import { type AttendeeMatch, decidingPositions } from "./match-attendees";

/** Calendar and CRM seldom agree to the minute; a meeting that is further off is another one. */
export const SAME_TIME_MS = 15 * MINUTE_MS;

/** A deal that a meeting could be about, with what speaks for it. */
export interface Candidate {
  deal: DealFact;
  /** Whose deal it is: the attendees' own, or for want of those their companies'. */
  of: "PERSONS" | "ORGANIZATIONS";
  standing: Standing;
  /** How many attendees take part in it, or come from its organization; shared addresses and domains do not count. */
  attendees: number;
  /** How many more take part in it if they are one certain person of those who have their address. */
  perhaps: number;
  hasActivity: boolean;
  ownerAttends: boolean;
}

/** The attendees behind whom more than a shared address stands. */
interface Deciding {
  /** The persons that they certainly are. */
  certain: ReadonlySet<number>;
  /** For each attendee who could be several persons: those. One set of persons counts once. */
  ambiguous: readonly (readonly number[])[];
}

function decidingOf(meeting: MeetingFact, matches: readonly AttendeeMatch[]): Deciding {
  const positions = decidingPositions(meeting.attendees);
  const deciding = matches.filter(({ position }) => positions.has(position));
  const sets = deciding.filter(({ candidateIds }) => candidateIds.length > 0).map(({ candidateIds }) => candidateIds);
  return {
    certain: new Set(deciding.map(({ personId }) => personId).filter((id) => id !== null)),
    ambiguous: [...new Map(sets.map((ids) => [ids.join(" "), ids])).values()],
  };
}

/**
 * Deals of the matched persons, and of all whom an ambiguous attendee could be; for want of those, deals of the matched
 * organizations. One that was opened after the meeting does not stand in the way of their companies'.
 */
export function findCandidates(
  meeting: MeetingFact,
  matches: readonly AttendeeMatch[],
  sellerIds: ReadonlySet<number>,
  facts: CopyFacts,
): Candidate[] {
  const { startsAt } = meeting;
  const deciding = decidingOf(meeting, matches);
  const personIds = new Set(matches.flatMap(({ personId, candidateIds }) => [personId, ...candidateIds]));
  const organizationIds = new Set(matches.map(({ organizationId }) => organizationId));
  const withActivity = dealsWithActivity(facts, startsAt, deciding);
  const comingFrom = attendeesFrom(matches, deciding.certain);
  const candidate = (deal: DealFact, of: Candidate["of"]): Candidate[] => {
    const standing = standingAt(deal, startsAt);
    if (standing === null) return [];
    const among = (id: number) => deal.personIds.includes(id);
    const takingPart = [...deciding.certain].filter(among).length;
    return [
      {
        deal,
        of,
        standing,
        hasActivity: withActivity.has(deal.crmId),
        attendees: of === "PERSONS" ? takingPart : (comingFrom.get(deal.organizationId ?? 0)?.size ?? 0),
        perhaps: deciding.ambiguous.filter((ids) => ids.some(among)).length,
        ownerAttends: deal.ownerId !== null && sellerIds.has(deal.ownerId),
      },
    ];
  };
  const deals = [...facts.deals].sort((a, b) => a.crmId - b.crmId);
  const isOfPersons = (deal: DealFact) => deal.personIds.some((id) => personIds.has(id));
  const own = deals.filter(isOfPersons).flatMap((deal) => candidate(deal, "PERSONS"));
  if (own.some(({ standing }) => standing !== "OPENED_LATER")) return own;
  const ofOrganizations = deals
    .filter((deal) => !isOfPersons(deal) && deal.organizationId !== null && organizationIds.has(deal.organizationId))
    .flatMap((deal) => candidate(deal, "ORGANIZATIONS"));
  return [...own, ...ofOrganizations];
}

/** Those to which an activity at the time points that has a person of the meeting in it. */
function dealsWithActivity(
  { activities }: CopyFacts,
  startsAt: Date,
  { certain, ambiguous }: Deciding,
): ReadonlySet<number> {
  const persons = new Set([...certain, ...ambiguous.flat()]);
  return new Set(
    activities
      .filter(({ at }) => Math.abs(at.getTime() - startsAt.getTime()) <= SAME_TIME_MS)
      .filter(({ personIds }) => personIds.some((id) => persons.has(id)))
      .map(({ dealId }) => dealId),
  );
}

/** Who comes from an organization as a person of it. */
function attendeesFrom(
  matches: readonly AttendeeMatch[],
  certain: ReadonlySet<number>,
): ReadonlyMap<number, ReadonlySet<number>> {
  const found = new Map<number, Set<number>>();
  for (const { personId, organizationId, organizationRule } of matches) {
    const isByPerson = organizationRule === "ORGANIZATION_OF_PERSON";
    if (personId === null || organizationId === null || !isByPerson || !certain.has(personId)) continue;
    found.set(organizationId, (found.get(organizationId) ?? new Set()).add(personId));
  }
  return found;
}
