import type { MatchedEntity } from "../../entities/matched-record";
import { mailboxOf } from "../../platform/email-address";
import { findCandidates } from "./deal-candidates";
import type { ChoiceFact, CopyFacts, MeetingFact } from "./facts";
import { type AttendeeMatch, matchAttendees } from "./match-attendees";
import { type DealMatch, matchDeal, nobodyKnown, withChoice, withoutChoice } from "./match-deal";
import { attendeeSoFar, dealSoFar } from "./so-far";

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
 * @param isRecorded the meeting was recorded with this: a choice stays where its deal is still a candidate. Else the
 * facts have changed by a sync, and a choice stays while its deal is there.
 */
export function match(meeting: MeetingFact, facts: CopyFacts, choice: ChoiceFact | null, isRecorded: boolean): Match {
  const attendees = matchAttendees(meeting, facts).map((attendee) => attendeeSoFar(attendee, facts.unread));
  const isAnyoneKnown = attendees.some(({ personId, organizationId }) => personId !== null || organizationId !== null);
  const candidates = findCandidates(meeting, attendees, sellersIn(meeting, facts), facts);
  const found = isAnyoneKnown
    ? matchDeal(candidates)
    : nobodyKnown(attendees.some(({ status }) => status === "AMBIGUOUS"));
  const byRule = dealSoFar(found, facts.unread);
  const isCandidate = byRule.candidates.some(({ dealId }) => dealId === choice?.dealId);
  const dropsChoice = choice !== null && isRecorded && choice.isThere && !isCandidate;
  const deal = dropsChoice ? withoutChoice(byRule) : withChoice(byRule, choice);
  return { attendees, deal, readable: readableWith(attendees, deal, facts), dropsChoice };
}

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
