import { DAY_MS, MINUTE_MS } from "../../platform/clock";
import { isRoleAddress } from "../../platform/email-address";
import type { AttendeeMatch } from "./match-attendees";

/** What the rules of matching look at: a meeting, and what the synced copy holds that could belong to it. */

interface AttendeeFact {
  position: number;
  /** In the one spelling in which addresses are compared; null where the text is no address. */
  address: string | null;
}

export interface MeetingFact {
  startsAt: Date;
  ownerAddress: string | null;
  attendees: readonly AttendeeFact[];
}

export interface UserFact {
  crmId: number;
  mailbox: string;
}

export interface PersonFact {
  crmId: number;
  organizationId: number | null;
  /** Every address of the person, not only the primary one. */
  addresses: readonly string[];
}

/** An organization that a company's domain may stand for. */
export interface DomainFact {
  domain: string;
  organizationId: number;
  /** How many of its persons have an address at the domain. */
  persons: number;
  /** Whether the domain is that of its website. */
  isWebsite: boolean;
}

export interface DealFact {
  crmId: number;
  /** Whether its status is open now. */
  isOpen: boolean;
  addTime: Date | null;
  wonTime: Date | null;
  lostTime: Date | null;
  /** When it was closed, where the CRM says neither of the two. */
  closeTime: Date | null;
  ownerId: number | null;
  organizationId: number | null;
  /** The deal's person and its participants, where it was asked for these. */
  personIds: readonly number[];
  isUnasked: boolean;
}

/** An activity of the CRM that has a time of day and hangs on a deal. */
export interface ActivityFact {
  dealId: number;
  at: Date;
  personIds: readonly number[];
}

/** What tells people, companies and deals: until one of these was read whole, an absence in it is none. */
export const MATCHED_LISTS = ["USERS", "PERSONS", "ORGANIZATIONS", "DEALS"] as const;
export type MatchedList = (typeof MATCHED_LISTS)[number];
/** Until these end, nothing is the only one. The others add to what is known, and a company may refuse them for ever. */
export const decides = (list: MatchedList): boolean => list === "PERSONS" || list === "DEALS";

/** Rows that belong to no attendee change nothing, so one reading may serve several meetings. */
export interface CopyFacts {
  users: readonly UserFact[];
  persons: readonly PersonFact[];
  domains: readonly DomainFact[];
  deals: readonly DealFact[];
  activities: readonly ActivityFact[];
  /** The lists that are being read for the first time. */
  unread: readonly MatchedList[];
}

/** A deal opened after the meeting, or closed before it, may still be what the meeting was about for this long. */
export const WINDOW_MS = 14 * DAY_MS;

type Times = Pick<DealFact, "isOpen" | "addTime" | "wonTime" | "lostTime" | "closeTime">;

/**
 * How a deal stood when the meeting began. Judged by its own time stamps and not by its status today: a meeting of last
 * month stays about its deal. CLOSED_SOMETIME: it is closed by now, and the CRM does not say since when.
 */
export type Standing = "OPEN" | "CLOSED" | "CLOSED_SOMETIME" | "OPENED_LATER";

/** null: it is open now, whatever it was before, or the CRM does not say. */
function closedAt({ isOpen, wonTime, lostTime, closeTime }: Times): Date | null {
  if (isOpen) return null;
  const times = [wonTime, lostTime].filter((time) => time !== null).sort((a, b) => a.getTime() - b.getTime());
  return times.at(-1) ?? closeTime;
}

/** null: it was opened too late, or had been closed for too long, for the meeting to be about it. */
export function standingAt(deal: Times, startsAt: Date): Standing | null {
  const start = startsAt.getTime();
  const opened = deal.addTime?.getTime() ?? start;
  const closed = closedAt(deal)?.getTime() ?? null;
  if (opened > start + WINDOW_MS || (closed !== null && closed < start - WINDOW_MS)) return null;
  if (opened > start) return "OPENED_LATER";
  if (closed === null) return deal.isOpen ? "OPEN" : "CLOSED_SOMETIME";
  return closed <= start ? "CLOSED" : "OPEN";
}

/** Calendar and CRM seldom agree to the minute; a meeting that is further off is another one. */
export const SAME_TIME_MS = 15 * MINUTE_MS;

/** A deal that a meeting could be about, with what speaks for it. */
export interface Candidate {
  deal: DealFact;
  /** Whose deal it is: the attendees' own, or for want of those their companies'. */
  of: "PERSONS" | "ORGANIZATIONS";
  standing: Standing;
  /** How many attendees take part in it, whoever they are, or come from its organization; not shared addresses and domains. */
  attendees: number;
  /** How many more take part in it if they are one certain person of those who have their address. */
  perhaps: number;
  /** How many are one certain person; of the others, who of its people they could be, and for each of them all whom he could be. */
  certain: number;
  could: readonly number[];
  several: readonly ReadonlySet<number>[];
  hasActivity: boolean;
  ownerAttends: boolean;
}

interface Deciding {
  /** The persons that they certainly are. */
  certain: ReadonlySet<number>;
  /** For each attendee who could be several persons: those. One set of persons counts once; who comes for certain comes anyway. */
  ambiguous: readonly ReadonlySet<number>[];
}

/** The attendees behind whom more than a shared address stands: only these may decide on a deal. */
function decidingOf({ attendees }: MeetingFact, matches: readonly AttendeeMatch[]): Deciding {
  const own = attendees.filter(({ address }) => address !== null && !isRoleAddress(address));
  const positions = new Set(own.map(({ position }) => position));
  const deciding = matches.filter(({ position }) => positions.has(position));
  const sets = new Map(deciding.map(({ candidateIds: ids }) => [ids.join(" "), new Set(ids)]));
  return {
    certain: new Set(deciding.map(({ personId }) => personId).filter((id) => id !== null)),
    ambiguous: [...sets].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, ids]) => ids),
  };
}

/** How many of those who could be several persons are among these whoever is meant; two who could be the same person are one. */
export function surelyAmong(several: readonly ReadonlySet<number>[], among: readonly number[]): number {
  const whole = several.filter((ids) => among.filter((id) => ids.has(id)).length === ids.size);
  const apart: ReadonlySet<number>[] = [];
  for (const ids of whole) if (!apart.some((one) => among.some((id) => one.has(id) && ids.has(id)))) apart.push(ids);
  return apart.length;
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
  const deciding = decidingOf(meeting, matches);
  const personIds = new Set(matches.flatMap(({ personId, candidateIds }) => [personId, ...candidateIds]));
  const organizationIds = new Set(matches.map(({ organizationId }) => organizationId));
  const withActivity = dealsWithActivity(facts, meeting.startsAt, deciding);
  const employed = matches.filter(({ organizationRule }) => organizationRule === "ORGANIZATION_OF_PERSON");
  const known = employed.filter(({ personId }) => personId !== null && deciding.certain.has(personId));
  const comingFrom = (id: number | null) =>
    new Set(known.filter(({ organizationId }) => organizationId === id).map(({ personId }) => personId)).size;
  const candidate = (deal: DealFact, of: Candidate["of"]): Candidate[] => {
    const standing = standingAt(deal, meeting.startsAt);
    if (standing === null) return [];
    // Of an address that an import gave to thousands there are as many deals: each looks at its own people alone.
    const people = [...new Set(deal.personIds)];
    const unsure = people.filter((id) => !deciding.certain.has(id));
    const certain = people.length - unsure.length;
    const could = unsure.filter((id) => deciding.ambiguous.some((ids) => ids.has(id)));
    const several = deciding.ambiguous.filter((ids) => could.some((id) => ids.has(id)));
    const surely = surelyAmong(several, could);
    return [
      {
        ...{ deal, of, standing, certain, could, several },
        hasActivity: withActivity.has(deal.crmId),
        attendees: of === "PERSONS" ? certain + surely : comingFrom(deal.organizationId),
        perhaps: Math.min(several.length, could.length) - surely,
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
  const persons = new Set([...certain, ...ambiguous.flatMap((ids) => [...ids])]);
  return new Set(
    activities
      .filter(({ at }) => Math.abs(at.getTime() - startsAt.getTime()) <= SAME_TIME_MS)
      .filter(({ personIds }) => personIds.some((id) => persons.has(id)))
      .map(({ dealId }) => dealId),
  );
}
