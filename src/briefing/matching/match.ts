import type { MatchedEntity } from "../../entities/matched-record";
import { mailboxOf } from "../../platform/email-address";
import { findCandidates } from "./deal-candidates";
import type { ChoiceFact, CopyFacts, MeetingFact } from "./facts";
import { withChoice, withoutChoice } from "./kept-deal";
import { type AttendeeMatch, matchAttendees } from "./match-attendees";
import { NO_COMPANY } from "./match-company";
import { type DealMatch, matchDeal, nobodyKnown, none } from "./match-deal";
import { pendingAttendee, pendingDeal, UNCONNECTED_DEAL, unconnectedAttendee } from "./pending";

export interface MatchedId {
  entity: MatchedEntity;
  crmId: number;
}

/** All that matching says of a meeting. */
export interface Match {
  attendees: AttendeeMatch[];
  deal: DealMatch;
  /** What the meeting makes readable (decision 0005). */
  readable: MatchedId[];
  /** Whether a user's earlier choice is given up with this. */
  dropsChoice: boolean;
}

/**
 * Matches a meeting: the same facts always give the same answer, in whatever order they come.
 * @param isRecorded the meeting was recorded with this: a choice stays where somebody in it leads to its deal. Else the
 * facts have changed by a sync, and a choice stays while its deal is there.
 */
export function match(meeting: MeetingFact, facts: CopyFacts, choice: ChoiceFact | null, isRecorded: boolean): Match {
  const { unread } = facts;
  const attendees = matchAttendees(meeting, facts).map((attendee) => pendingAttendee(attendee, unread));
  const found = findCandidates(meeting, attendees, sellersIn(meeting, facts), facts);
  const byRule = pendingDeal(found.length > 0 || isAnyoneKnown(attendees) ? matchDeal(found) : nobodyKnown(), unread);
  const dropsChoice = choice !== null && isRecorded && choice.isThere && !isLedTo(choice.dealId, attendees, facts);
  const deal = dropsChoice ? withoutChoice(byRule, choice) : withChoice(byRule, choice, unread.length > 0);
  return { attendees, deal, readable: readableWith(attendees, deal, facts), dropsChoice };
}

const isAnyoneKnown = (attendees: readonly AttendeeMatch[]) =>
  attendees.some(
    ({ personId, organizationId, candidateIds }) =>
      personId !== null || organizationId !== null || candidateIds.length > 0,
  );

/** Whether the deal is of one of the attendees, or of their companies: whenever it was open, whatever else could be meant. */
function isLedTo(dealId: number, attendees: readonly AttendeeMatch[], { deals }: CopyFacts): boolean {
  const deal = deals.find(({ crmId }) => crmId === dealId);
  return attendees.some(({ personId, candidateIds, organizationId }) => {
    const isOfPerson = [personId, ...candidateIds].some((id) => id !== null && deal?.personIds.includes(id));
    return isOfPerson || (organizationId !== null && deal?.organizationId === organizationId);
  });
}

/** Without a CRM: who is on our own side, and who is nobody. */
export function matchUnconnected(meeting: MeetingFact): Match {
  const attendees = matchAttendees(meeting, NOTHING).map(unconnectedAttendee);
  return { attendees, deal: UNCONNECTED_DEAL, readable: [], dropsChoice: false };
}

const NOTHING: CopyFacts = { users: [], persons: [], domains: [], deals: [], activities: [], unread: [] };

const CANCELLED = "The meeting was cancelled.";

/** A meeting that does not take place is about no deal, is contact with nobody and makes nothing readable. */
export const cancelled = ({ attendees }: Match): Match => ({
  attendees: attendees.map((attendee) => (attendee.side === "BUYER" ? { ...attendee, ...NOBODY } : attendee)),
  deal: none(CANCELLED),
  readable: [],
  dropsChoice: false,
});

const NOBODY = {
  ...{ status: "NONE", rule: null, reason: CANCELLED, personId: null, candidateIds: [] },
  ...{ ...NO_COMPANY, organizationReason: CANCELLED },
} as const satisfies Partial<AttendeeMatch>;

/** CRM users who are in the meeting; its owner is, whether invited or not. */
function sellersIn({ ownerAddress, attendees }: MeetingFact, { users }: CopyFacts): Set<number> {
  const present = [ownerAddress, ...attendees.map(({ address }) => address)].filter((address) => address !== null);
  const mailboxes = new Set(present.map(mailboxOf));
  return new Set(users.filter(({ address }) => mailboxes.has(mailboxOf(address))).map(({ crmId }) => crmId));
}

/** Matched persons and who else could be meant, their organizations and those of domains, the deals of the former. */
function readableWith(attendees: readonly AttendeeMatch[], deal: DealMatch, facts: CopyFacts): MatchedId[] {
  const matchedIds = new Set(attendees.map(({ personId }) => personId).filter((id) => id !== null));
  const personIds = new Set([...matchedIds, ...attendees.flatMap(({ candidateIds }) => candidateIds)]);
  const organizationIds = [
    ...attendees.map(({ organizationId }) => organizationId),
    ...facts.persons.filter(({ crmId }) => personIds.has(crmId)).map(({ organizationId }) => organizationId),
  ];
  const dealIds = [
    ...facts.deals.filter((fact) => fact.personIds.some((id) => matchedIds.has(id))).map(({ crmId }) => crmId),
    ...deal.candidates.map(({ dealId }) => dealId),
  ];
  const readable = (entity: MatchedEntity, ids: Iterable<number | null>): MatchedId[] =>
    [...new Set(ids)]
      .filter((id) => id !== null)
      .sort((a, b) => a - b)
      .map((crmId) => ({ entity, crmId }));
  return [...readable("PERSON", personIds), ...readable("ORGANIZATION", organizationIds), ...readable("DEAL", dealIds)];
}
