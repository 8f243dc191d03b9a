import type { AttendeeSide, MatchStatus, OrganizationRule, PersonRule } from "../../entities/meeting";
import * as mail from "../../platform/email-address";
import { type CopyFacts, type DealFact, decides, type MeetingFact, type PersonFact, standingAt } from "./facts";

/**
 * Addresses that makers of notetakers tell their users to invite. Whole domains are not listed: their makers are
 * companies with people who buy. fireflies.ai: https://help.fireflies.ai ("invite fred@fireflies.ai").
 */
const NOTETAKERS: ReadonlySet<string> = new Set(["fred@fireflies.ai"]);
const NOTETAKER = /^(.*[-._])?(notetaker|note-taker|notetakerbot|meeting-?bot|meeting-?recorder)([-._].*)?$/;

/**
 * Google's calendars of rooms, groups and imports: https://developers.google.com/workspace/calendar/api/concepts/sharing.
 * Microsoft's rooms have ordinary addresses and are known by their names only.
 */
const CALENDAR_DOMAIN = /(^|\.)calendar\.google\.com$/;
const ROOM = /^(meeting|conference|conf|board)[-._]?rooms?([-._0-9].*)?$|^(resource|equipment)[-._]/;

const NO_REPLY = /(^|[-._])(no|do[-._]?not|dont)[-._]?reply([-._].*)?$|^(mailer-?daemon|postmaster|bounces?)$/;

/** Where mailing lists live: at a provider of them, or below a company's domain and not at the company list.co.uk. */
const LIST_PROVIDER = /^(googlegroups\.com|(.+\.)?groups\.io)$/;
/** The addresses by which list programs are steered (RFC 2142, chapter 6); some are people's as well: a product's owner. */
const LIST = /-(bounces|subscribe|unsubscribe)$|^(listserv|majordomo)$/;
const LIST_OR_PERSON = /-(request|owner)$/;

/** Why an address is nobody who could attend; null where it may be somebody. @param isKept a person of the CRM has exactly this one */
function ignoredBecause(address: string, isKept: boolean): string | null {
  const local = mail.localPartOf(address).replace(/\+.*$/, "");
  const domain = mail.domainOf(address);
  if (CALENDAR_DOMAIN.test(domain) || (ROOM.test(local) && !isKept))
    return "This is a room or another shared calendar.";
  if (NOTETAKERS.has(address) || NOTETAKER.test(local)) return "This is a bot that takes notes.";
  if (NO_REPLY.test(local)) return "This address sends mail only; nobody reads it.";
  const isBelow = /^(lists?|listserv)\./.test(domain) && domain !== (mail.mailDomainOf(address) ?? domain);
  const isOfLists = LIST_PROVIDER.test(domain) || isBelow;
  if (isOfLists || LIST.test(local) || (LIST_OR_PERSON.test(local) && !isKept)) return "This is a mailing list.";
  return null;
}

/** For which organization of the CRM an attendee comes. */
interface CompanyMatch {
  organizationStatus: MatchStatus;
  organizationId: number | null;
  organizationRule: OrganizationRule | null;
  /** null for those who are not asked: one's own side, and who is ignored. */
  organizationReason: string | null;
}

const NO_COMPANY: CompanyMatch = {
  organizationStatus: "NONE",
  organizationId: null,
  organizationRule: null,
  organizationReason: null,
};

export const FREE_MAIL = "Free mail stands for no company.";

/** One person may have changed company and kept the old record; two with one domain have it from their company. */
const ENOUGH_PERSONS = 2;

/** Through the person, else by the domain of the address: that tells of a company to look at, and of no deal. */
function companyOf(address: string, person: PersonFact | null, domains: CopyFacts["domains"]): CompanyMatch {
  if (person?.organizationId != null) {
    return found(person.organizationId, "ORGANIZATION_OF_PERSON", "The person belongs to it in the CRM.");
  }
  const domain = mail.companyDomainOf(address);
  if (domain === null) return none(FREE_MAIL);
  const users = domains.filter((fact) => fact.domain === domain);
  const [only, ...others] = users;
  if (!only) return none(`No organization in the CRM uses ${domain}.`);
  if (others.length > 0) {
    const reason = `${users.length} organizations in the CRM use ${domain}, and nothing tells which one it is.`;
    return { ...none(reason), organizationStatus: "AMBIGUOUS" };
  }
  if (only.isWebsite) return found(only.organizationId, "DOMAIN_OF_WEBSITE", `${domain} is its website.`);
  if (only.persons >= ENOUGH_PERSONS) {
    return found(
      only.organizationId,
      "DOMAIN_OF_PERSONS",
      `${only.persons} of its persons have an address at ${domain}.`,
    );
  }
  return none(`Only one person in the CRM has an address at ${domain}; that is too little to tell a company by.`);
}

const found = (
  organizationId: number,
  organizationRule: OrganizationRule,
  organizationReason: string,
): CompanyMatch => ({ organizationStatus: "MATCHED", organizationId, organizationRule, organizationReason });

const none = (organizationReason: string): CompanyMatch => ({ ...NO_COMPANY, organizationReason });

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
    if (address === null) return { position, ...NOT_AN_ADDRESS, ...NO_COMPANY };
    const held = holders(address);
    const ignored = ignoredBecause(address, held.rule === "EMAIL_EXACT");
    const known = isOurs(address, ignored !== null) ?? (ignored === null ? null : nobody("IGNORED", ignored));
    if (known) return { position, ...known, ...NO_COMPANY };
    const match = matchBuyer(address, held, meeting, facts);
    const person = facts.persons.find(({ crmId }) => crmId === match.personId) ?? null;
    return { position, ...match, ...companyOf(address, person, facts.domains) };
  });
}

const NOT_AN_ADDRESS = nobody("IGNORED", "This is not an e-mail address.");

/** Decision 0020: CRM users, the meeting's owner, and whoever shares the owner's company domain. */
function oursTeller({ ownerAddress }: MeetingFact, { users }: CopyFacts) {
  const mailboxes = new Set(users.map(({ mailbox }) => mailbox));
  const owner = ownerAddress && mail.mailboxOf(ownerAddress);
  const ownDomain = ownerAddress && mail.companyDomainOf(ownerAddress);
  return (address: string, isIgnored: boolean): Match | null => {
    const mailbox = mail.mailboxOf(address);
    if (mailbox === owner) return nobody("SELLER", "The meeting's owner.");
    if (mailboxes.has(mailbox)) return nobody("SELLER", "A user of the CRM: one of your own.");
    if (ownDomain === null || mail.companyDomainOf(address) !== ownDomain || isIgnored) return null;
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
  const untagged = indexed(persons, mail.mailboxOf);
  return (address) => {
    const same = exact.get(address);
    if (same) return { rule: "EMAIL_EXACT", persons: same };
    return { rule: "EMAIL_WITHOUT_TAG", persons: untagged.get(mail.mailboxOf(address)) ?? [] };
  };
}

function indexed(persons: readonly PersonFact[], key: (address: string) => string): Map<string, PersonFact[]> {
  const found = new Map<string, PersonFact[]>();
  for (const person of persons)
    for (const value of new Set(person.addresses.map(key)))
      if (!found.get(value)?.push(person)) found.set(value, [person]);
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
  const shared = mail.isRoleAddress(address) ? SHARED : "";
  if (persons.length === 1) return somebody(first, rule, REASONS[rule] + shared);
  const onOpenDeal = new Set(
    facts.deals.filter((deal) => standingAt(deal, startsAt) === "OPEN").flatMap(({ personIds }) => personIds),
  );
  const [only, ...others] = persons.filter(({ crmId }) => onOpenDeal.has(crmId));
  const have = `${persons.length} persons in the CRM have this address${rule === "EMAIL_EXACT" ? "" : APART_FROM}`;
  if (only && others.length === 0 && !facts.unread.some(decides)) {
    const reason = `${have}; only this one is on a deal that was open when the meeting began.`;
    return somebody(only, "ONLY_ONE_ON_OPEN_DEAL", reason + shared);
  }
  const open = `${only ? others.length + 1 : "none"} of them ${others.length > 0 ? "are" : "is"}`;
  return {
    ...nobody(
      "BUYER",
      `${have}, and ${open} on a deal that was open when the meeting began: nothing tells which one it is.`,
    ),
    status: "AMBIGUOUS",
    candidateIds: persons.map(({ crmId }) => crmId).sort((a, b) => a - b),
  };
}

const somebody = ({ crmId }: PersonFact, rule: PersonRule, reason: string): Match => ({
  side: "BUYER",
  status: "MATCHED",
  rule,
  reason,
  personId: crmId,
  candidateIds: [],
});

function nobody(side: AttendeeSide, reason: string): Match {
  return { side, status: "NONE", rule: null, reason, personId: null, candidateIds: [] };
}

export type Attending = AttendeeMatch & { mailbox: string };
export const attendingOf = ({ attendees }: MeetingFact, matches: readonly AttendeeMatch[]): Attending[] =>
  matches.flatMap((match, index) => {
    const address = attendees[index]?.address;
    return address ? [{ ...match, mailbox: mail.mailboxOf(address) }] : [];
  });

/** Whether the deal is of an attendee, or of the attendee's company: whenever it was open, whatever else could be meant. */
export const leadsTo = ({ personId, candidateIds, organizationId }: AttendeeMatch, deal?: DealFact): boolean =>
  [personId, ...candidateIds].some((id) => id !== null && deal?.personIds.includes(id)) ||
  (organizationId !== null && deal?.organizationId === organizationId);
