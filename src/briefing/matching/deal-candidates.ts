import type { CopyFacts, DealFact, MeetingFact } from "./facts";
import { type AttendeeMatch, decidingPersons } from "./match-attendees";
import { isInWindow, wasClosed } from "./window";

/** Calendar and CRM seldom agree to the minute; a meeting that is further off is another one. */
export const SAME_TIME_MS = 15 * 60_000;

/** A deal that a meeting could be about, with what speaks for it. */
export interface Candidate {
  deal: DealFact;
  /** How many attendees take part in it, or come from its organization; shared addresses and domains do not count. */
  attendees: number;
  hasActivity: boolean;
  ownerAttends: boolean;
  wasClosed: boolean;
}

export interface Candidates {
  /** Whose deals they are: the attendees' own, or for want of those their companies'. */
  of: "PERSONS" | "ORGANIZATIONS";
  found: Candidate[];
}

/** Deals of the matched persons; only where those have none around the meeting, deals of the matched organizations. */
export function findCandidates(
  meeting: MeetingFact,
  matches: readonly AttendeeMatch[],
  sellerIds: ReadonlySet<number>,
  facts: CopyFacts,
): Candidates {
  const personIds = new Set(matches.map(({ personId }) => personId));
  const organizationIds = new Set(matches.map(({ organizationId }) => organizationId));
  const deciding = decidingPersons(meeting.attendees, matches);
  const around = facts.deals.filter((deal) => isInWindow(deal, meeting.startsAt)).sort((a, b) => a.crmId - b.crmId);
  const withActivity = new Set(
    facts.activities
      .filter(({ at }) => Math.abs(at.getTime() - meeting.startsAt.getTime()) <= SAME_TIME_MS)
      .filter(({ personIds: ids }) => ids.some((id) => deciding.has(id)))
      .map(({ dealId }) => dealId),
  );
  const candidate = (deal: DealFact, attendees: number): Candidate => ({
    deal,
    attendees,
    hasActivity: withActivity.has(deal.crmId),
    ownerAttends: deal.ownerId !== null && sellerIds.has(deal.ownerId),
    wasClosed: wasClosed(deal, meeting.startsAt),
  });
  const ofPersons = around.filter((deal) => deal.personIds.some((id) => personIds.has(id)));
  if (ofPersons.length > 0) {
    const takingPart = (deal: DealFact) => new Set(deal.personIds.filter((id) => deciding.has(id))).size;
    return { of: "PERSONS", found: ofPersons.map((deal) => candidate(deal, takingPart(deal))) };
  }
  const comingFrom = new Map<number, Set<number>>();
  for (const { personId, organizationId, organizationRule } of matches) {
    const isByPerson = organizationRule === "ORGANIZATION_OF_PERSON";
    if (personId === null || organizationId === null || !isByPerson || !deciding.has(personId)) continue;
    comingFrom.set(organizationId, (comingFrom.get(organizationId) ?? new Set()).add(personId));
  }
  const ofOrganizations = around.filter(
    (deal) => deal.organizationId !== null && organizationIds.has(deal.organizationId),
  );
  const found = ofOrganizations.map((deal) => candidate(deal, comingFrom.get(deal.organizationId ?? 0)?.size ?? 0));
  return { of: "ORGANIZATIONS", found };
}
