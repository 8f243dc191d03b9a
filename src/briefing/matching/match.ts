import type { DealRule, MatchedEntity } from "../../entities/meeting";
import { mailboxOf } from "../../platform/email-address";
import { type CopyFacts, decides, findCandidates, type MatchedList, type MeetingFact } from "./facts";
import { type AttendeeMatch, type Attending, attendingOf, FREE_MAIL, leadsTo, matchAttendees } from "./match-attendees";
import { type DealMatch, matchDeal, none } from "./match-deal";

/** The deal that no rule may change: a user chose it, or a note or field was written by the match. */
export interface ChoiceFact {
  dealId: number;
  /** Whether the deal is in the copy that is connected now. */
  isThere: boolean;
  /** What the match said when something was written by it; null: a user chose. */
  written: { rule: DealRule | null; reason: string } | null;
  /** The mailboxes of those who led to it; none: that is not known. */
  keptFor: readonly string[];
}

interface MatchedId {
  entity: MatchedEntity;
  crmId: number;
}

/** All that matching says of a meeting. */
export interface Match {
  attendees: AttendeeMatch[];
  /** It may change while the lists that decide are read for the first time. */
  deal: DealMatch & { mayChange: boolean };
  /** What the meeting makes readable (decision 0005). */
  readable: MatchedId[];
  /** Whether a user's earlier choice is given up with this. */
  dropsChoice: boolean;
  /** The mailboxes of those for whom its deal is kept, should it be chosen or written to. */
  keptFor: string[];
}

/**
 * Matches a meeting: the same facts always give the same answer, in whatever order they come.
 * A deal that is kept stays while one of those who led to it attends, whatever a sync has brought; with others while one of them
 * leads to it. Until that is known it is in doubt: a note that went by a guess could never be taken back.
 */
export function match(meeting: MeetingFact, facts: CopyFacts, choice: ChoiceFact | null): Match {
  const { unread } = facts;
  const attendees = matchAttendees(meeting, facts).map((attendee) => pendingAttendee(attendee, unread));
  const found = findCandidates(meeting, attendees, sellersIn(meeting, facts), facts);
  const absent = none(attendees.some(isKnown) ? NO_DEAL : NOBODY_KNOWN);
  const byRule = pendingDeal(found.length > 0 ? matchDeal(found) : absent, unread);
  const who = attendingOf(meeting, attendees);
  const kept = dealOf(choice?.dealId ?? null, facts);
  const isOfOthers = choice?.isThere === true && areOthers(choice, who) && !who.some((one) => leadsTo(one, kept));
  const dropsChoice = isOfOthers && unread.length === 0 && !kept?.isUnasked;
  const held = isOfOthers ? inDoubt(byRule, choice) : withChoice(byRule, choice, unread.length > 0);
  const deal = { ...(dropsChoice ? withoutChoice(byRule, choice) : held), mayChange: unread.some(decides) };
  const before = choice?.dealId === deal.dealId ? choice.keptFor : [];
  const about = dealOf(deal.dealId, facts);
  const leaders = who.filter((one) => leadsTo(one, about));
  const keptFor = deal.dealId === null ? [] : keptForNow(before, leaders, who);
  return { attendees, deal, readable: readableWith(attendees, deal, facts), dropsChoice, keptFor };
}

/** Who led to the deal and attends, and who leads to it now; for want of both those before, until others are judged. */
function keptForNow(before: readonly string[], leaders: readonly Attending[], who: readonly Attending[]): string[] {
  const people = who.filter((one) => before.includes(one.mailbox) || leaders.includes(one));
  if (people.length === 0 && before.length > 0) return [...before];
  const kept = people.length > 0 ? people : who.filter(isBuyer);
  return [...new Set(kept.map(({ mailbox }) => mailbox))].sort();
}

const NOBODY_KNOWN = "No attendee is a known person of the CRM, or from a known company.";
const NO_DEAL =
  "No deal of the attendees or their companies was open when the meeting began, closed in the 14 days before it or opened in the 14 days after it.";
const isBuyer = ({ side }: AttendeeMatch) => side === "BUYER";
const isKnown = (one: AttendeeMatch) => (one.personId ?? one.organizationId ?? one.candidateIds[0] ?? null) !== null;

const dealOf = (dealId: number | null, { deals }: CopyFacts) => deals.find(({ crmId }) => crmId === dealId);

/** Whether buyers attend, and none of those for whom the deal is kept, on whatever side. */
const areOthers = ({ keptFor }: ChoiceFact, who: readonly Attending[]): boolean =>
  keptFor.length > 0 && who.some(isBuyer) && !who.some(({ mailbox }) => keptFor.includes(mailbox));

/** Who is ours and who is ignored can be told without a CRM; of anybody else nothing is known, not even an absence. */
export function matchUnconnected(meeting: MeetingFact): Match {
  const attendees = matchAttendees(meeting, NOTHING).map((attendee) => pendingFor(attendee, NOTHING_CONNECTED));
  const deal: Match["deal"] = { ...none(NOTHING_CONNECTED), status: "PENDING", mayChange: true };
  return { attendees, deal, readable: [], dropsChoice: false, keptFor: [] };
}

const NOTHING: CopyFacts = { users: [], persons: [], domains: [], deals: [], activities: [], unread: [] };

const CANCELLED = "The meeting was cancelled.";

/** A meeting that does not take place is about no deal, is contact with nobody and makes nothing readable. */
export const cancelled = ({ attendees }: Match): Match => ({
  attendees: attendees.map((attendee) => (attendee.side === "BUYER" ? { ...attendee, ...NOBODY } : attendee)),
  deal: { ...none(CANCELLED), mayChange: false },
  readable: [],
  dropsChoice: false,
  keptFor: [],
});

const NOBODY = {
  ...{ status: "NONE", rule: null, reason: CANCELLED, personId: null, candidateIds: [] },
  ...{ organizationStatus: "NONE", organizationId: null, organizationRule: null, organizationReason: CANCELLED },
} as const satisfies Partial<AttendeeMatch>;

/** CRM users who are in the meeting; its owner is, whether invited or not. */
function sellersIn({ ownerAddress, attendees }: MeetingFact, { users }: CopyFacts): Set<number> {
  const present = [ownerAddress, ...attendees.map(({ address }) => address)].filter((address) => address !== null);
  const mailboxes = new Set(present.map(mailboxOf));
  return new Set(users.filter(({ mailbox }) => mailboxes.has(mailbox)).map(({ crmId }) => crmId));
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

const CHOSEN_REASON = "A user chose this deal.";
const NOT_READ = "has not been read from the connected CRM yet; the meeting is matched again then.";
const whichOf = ({ written }: ChoiceFact) =>
  `The deal ${written ? "for which something was written" : "that a user chose"}`;
const GONE =
  "The deal that a user chose is not in the connected CRM, or no longer visible there, and no other takes its place.";
const NO_OTHER = "No other could be meant.";
const STAYS = " The match stays as it was when something was written to the CRM for this meeting.";
const UNREAD = "have not been read to their end yet";
/** What was said of a match when something was written, and what of it holds once it stays. */
const MAY_CHANGE = new RegExp(`\\. The CRM's [a-z, ]+ ${UNREAD}, so this may change\\.`);
const AS_READ = ", as far as the CRM had been read then.";

/**
 * What the rules say, where a user's choice and what was written stand above them: no other deal ever takes the place of
 * one that was chosen, and what was written to is still what the meeting is about when the rules come to something else.
 * @param isReading lists are being read for the first time
 */
function withChoice(match: DealMatch, choice: ChoiceFact | null, isReading: boolean): DealMatch {
  if (!choice) return match;
  const { dealId, isThere, written } = choice;
  if (written && (isThere ? match.dealId === dealId : !isReading)) return match;
  if (!isThere) {
    const isOpen = match.candidates.length > 0;
    const reason = isReading ? `${whichOf(choice)} ${NOT_READ}` : `${GONE} ${isOpen ? "Choose another." : NO_OTHER}`;
    const status = isOpen ? "NEEDS_CHOICE" : isReading ? "PENDING" : "NONE";
    return { ...none(reason), status, candidates: match.candidates };
  }
  const words = written ? `${written.reason.replace(STAYS, "").replace(MAY_CHANGE, AS_READ)}${STAYS}` : CHOSEN_REASON;
  const candidates = candidatesWith(match, choice);
  return { status: "MATCHED", rule: written ? written.rule : "CHOSEN", reason: words, dealId, candidates };
}

function candidatesWith({ candidates }: DealMatch, { dealId, written }: ChoiceFact): DealMatch["candidates"] {
  const why = written ? "Something was written to the CRM while the meeting was about it." : "A user chose it.";
  return candidates.some((one) => one.dealId === dealId) ? candidates : [...candidates, { dealId, reason: why }];
}

/** Others attend by now, of whom it is not known yet whether they lead to the deal. */
const inDoubt = (match: DealMatch, choice: ChoiceFact): DealMatch => ({
  ...none(`${whichOf(choice)} was others', and who takes part in it is still to be read.`),
  status: "NEEDS_CHOICE",
  candidates: candidatesWith(match, choice),
});

/** Where the meeting was recorded anew and the deal that it was about fits its attendees no more. */
const withoutChoice = (match: DealMatch, choice: ChoiceFact): DealMatch => ({
  ...match,
  reason: `${whichOf(choice)} before is none of the attendees' as they are recorded now. ${match.reason}`,
});

/**
 * While no CRM is connected, or its lists are read for the first time, nobody can say that something is not there: what
 * would be NONE is PENDING, and what is found may not be all of it.
 */
export const NOTHING_CONNECTED = "No CRM is connected. The meeting is matched when one is.";

const ALL_OF = new Intl.ListFormat("en-GB");
const notReadYet = (lists: readonly MatchedList[]) => `The CRM's ${ALL_OF.format(lists).toLowerCase()} ${UNREAD}`;
const untilRead = (unread: readonly MatchedList[]) => `${notReadYet(unread)}, so this may change.`;

function pendingAttendee(attendee: AttendeeMatch, unread: readonly MatchedList[]): AttendeeMatch {
  if (unread.length === 0) return attendee;
  const { status, reason } = attendee;
  const isOpen = status === "AMBIGUOUS" || (status === "MATCHED" && unread.includes("PERSONS"));
  const said = isOpen ? { ...attendee, reason: `${reason} ${untilRead(unread)}` } : attendee;
  return pendingFor(said, `${notReadYet(unread)}; it is looked up again then.`);
}

/** @param reason why nothing is known yet */
function pendingFor(attendee: AttendeeMatch, reason: string): AttendeeMatch {
  if (attendee.side !== "BUYER") return attendee;
  const isUnknown = attendee.status === "NONE";
  // A person that is known has a company or none; what free mail stands for, no list will bring.
  const hasNoCompany = attendee.organizationStatus === "NONE" && attendee.organizationReason !== FREE_MAIL;
  return {
    ...attendee,
    ...(isUnknown ? { status: "PENDING", reason } : {}),
    ...(hasNoCompany ? { organizationStatus: "PENDING", organizationReason: reason } : {}),
  };
}

function pendingDeal(deal: DealMatch, unread: readonly MatchedList[]): DealMatch {
  if (unread.length === 0) return deal;
  return deal.status === "NONE"
    ? { ...deal, status: "PENDING", reason: `${notReadYet(unread)}; the meeting is matched again then.` }
    : { ...deal, reason: `${deal.reason} ${untilRead(unread)}` };
}
