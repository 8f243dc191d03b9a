import type { AttendeeSide, MatchStatus, PersonRule } from "../../entities/meeting";
import { companyDomainOf, mailboxOf } from "../../platform/email-address";
import { ignoredBecause, isRoleAddress } from "./address-kinds";
import type { AttendeeFact, CopyFacts, MeetingFact, PersonFact } from "./facts";
import { CompanyMatch, companyOf, NO_COMPANY } from "./match-company";
import { standingAt } from "./window";

/** Who an attendee is, and for which company. */
export interface AttendeeMatch extends CompanyMatch {
  position: number;
  side: AttendeeSide;
  status: MatchStatus;
  rule: PersonRule | null;
  reason: string;
  personId: number | null;
  candidateIds: number[];
}

type Match = Omit<AttendeeMatch, "position" | keyof CompanyMatch>;

/** Who each attendee is: one of us, a person of the CRM, or a stranger. Names never link; a tie is never broken. */
export function matchAttendees(meeting: MeetingFact, facts: CopyFacts): AttendeeMatch[] {
  const isOurs = oursTeller(meeting, facts);
  const holders = holderFinder(facts.persons);
  return meeting.attendees.map(({ position, address }) => {
    const known = address === null ? NOT_AN_ADDRESS : (isOurs(address) ?? ignored(address));
    if (known || address === null) return { position, ...(known ?? NOT_AN_ADDRESS), ...NO_COMPANY };
    const match = matchBuyer(address, holders(address), meeting, facts);
    const person = facts.persons.find(({ crmId }) => crmId === match.personId) ?? null;
    return { position, ...match, ...companyOf(address, person, facts.domains) };
  });
}

/** The attendees behind whom more than a shared address stands: only these may decide on a deal. */
export function decidingPositions(attendees: readonly AttendeeFact[]): ReadonlySet<number> {
  return new Set(
    attendees.filter(({ address }) => address !== null && !isRoleAddress(address)).map(({ position }) => position),
  );
}

const NOT_AN_ADDRESS = nobody("IGNORED", "This is not an e-mail address.");

function ignored(address: string): Match | null {
  const reason = ignoredBecause(address);
  return reason === null ? null : nobody("IGNORED", reason);
}

/** Decision 0020: CRM users, the meeting's owner, and whoever shares the owner's company domain. */
function oursTeller({ ownerAddress }: MeetingFact, { users }: CopyFacts): (address: string) => Match | null {
  const mailboxes = new Set(users.map((user) => mailboxOf(user.address)));
  const owner = ownerAddress && mailboxOf(ownerAddress);
  const ownDomain = ownerAddress && companyDomainOf(ownerAddress);
  return (address) => {
    const mailbox = mailboxOf(address);
    if (mailbox === owner) return nobody("SELLER", "The meeting's owner.");
    if (mailboxes.has(mailbox)) return nobody("SELLER", "A user of the CRM: one of your own.");
    if (ownDomain === null || companyDomainOf(address) !== ownDomain || ignoredBecause(address)) return null;
    return nobody("SELLER", "Has the same company domain as the meeting's owner: one of your own.");
  };
}

interface Holders {
  rule: "EMAIL_EXACT" | "EMAIL_WITHOUT_TAG";
  persons: readonly PersonFact[];
}

/** Who has an address: those with exactly this one, else those whose address goes to the same mailbox. */
function holderFinder(persons: readonly PersonFact[]): (address: string) => Holders {
  const exact = indexed(persons, (address) => address);
  const untagged = indexed(persons, mailboxOf);
  return (address) => {
    const same = exact.get(address);
    if (same) return { rule: "EMAIL_EXACT", persons: same };
    return { rule: "EMAIL_WITHOUT_TAG", persons: untagged.get(mailboxOf(address)) ?? [] };
  };
}

function indexed(persons: readonly PersonFact[], key: (address: string) => string): Map<string, PersonFact[]> {
  const found = new Map<string, PersonFact[]>();
  for (const person of persons) {
    for (const value of new Set(person.addresses.map(key))) found.set(value, [...(found.get(value) ?? []), person]);
  }
  return found;
}

const APART_FROM = ", apart from what mail programs add or leave out";
const REASONS = {
  EMAIL_EXACT: "This person has exactly this address in the CRM.",
  EMAIL_WITHOUT_TAG: `This person has this address in the CRM${APART_FROM}.`,
};
const SHARED = " Several people may read it, so it decides no deal by itself.";

function matchBuyer(address: string, { rule, persons }: Holders, { startsAt }: MeetingFact, facts: CopyFacts): Match {
  const [first] = persons;
  if (!first) return nobody("BUYER", "No person in the CRM has this address.");
  const shared = isRoleAddress(address) ? SHARED : "";
  if (persons.length === 1) return somebody(first, rule, REASONS[rule] + shared);
  const ids = new Set(persons.map(({ crmId }) => crmId));
  const onOpenDeal = new Set(
    facts.deals.filter((deal) => standingAt(deal, startsAt) === "OPEN").flatMap(({ personIds }) => personIds),
  );
  const [only, ...others] = persons.filter(({ crmId }) => onOpenDeal.has(crmId));
  const have = `${persons.length} persons in the CRM have this address${rule === "EMAIL_EXACT" ? "" : APART_FROM}`;
  if (only && others.length === 0) {
    const reason = `${have}; only this one is on a deal that was open when the meeting began.`;
    return somebody(only, "ONLY_ONE_ON_OPEN_DEAL", reason + shared);
  }
  const open = only ? `${others.length + 1} of them are` : "none of them is";
  return {
    ...nobody(
      "BUYER",
      `${have}, and ${open} on a deal that was open when the meeting began: nothing tells which one it is.`,
    ),
    status: "AMBIGUOUS",
    candidateIds: [...ids].sort((a, b) => a - b),
  };
}

const somebody = ({ crmId }: PersonFact, rule: PersonRule, reason: string): Match => ({
  ...{ side: "BUYER", status: "MATCHED", rule, reason, personId: crmId, candidateIds: [] },
});

function nobody(side: AttendeeSide, reason: string): Match {
  return { side, status: "NONE", rule: null, reason, personId: null, candidateIds: [] };
}
