import type { DealRule } from "../../entities/meeting";
import { DAY_MS } from "../../platform/clock";

/** What the rules of matching look at: a meeting, and what the synced copy holds that could belong to it. */

export interface AttendeeFact {
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
  address: string;
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
  /** The deal's person and its participants. */
  personIds: readonly number[];
}

/** An activity of the CRM that has a time of day and hangs on a deal. */
export interface ActivityFact {
  dealId: number;
  at: Date;
  personIds: readonly number[];
}

/** The deal that no rule may change: a user chose it, or a note or field was written by the match. */
export interface ChoiceFact {
  dealId: number;
  /** Whether the deal is in the copy that is connected now. */
  isThere: boolean;
  /** What the match said when something was written by it; null: a user chose. */
  written: { rule: DealRule | null; reason: string } | null;
}

/** What tells people, companies and deals: until one of these was read whole, an absence in it is none. */
export const MATCHED_LISTS = ["USERS", "PERSONS", "ORGANIZATIONS", "DEALS"] as const;
export type MatchedList = (typeof MATCHED_LISTS)[number];

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
