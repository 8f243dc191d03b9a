import type { MatchedList } from "./facts";
import type { AttendeeMatch } from "./match-attendees";
import { FREE_MAIL } from "./match-company";
import type { DealMatch } from "./match-deal";

/**
 * While no CRM is connected, or its lists are read for the first time, nobody can say that something is not there: what
 * would be NONE is PENDING, and what is found may not be all of it.
 */

export const NOT_CONNECTED = "No CRM is connected. The meeting is matched when one is.";

const ALL_OF = new Intl.ListFormat("en-GB");
const being = (lists: readonly MatchedList[]) =>
  `The CRM's ${ALL_OF.format(lists).toLowerCase()} are being read for the first time`;

export function pendingAttendee(attendee: AttendeeMatch, unread: readonly MatchedList[]): AttendeeMatch {
  const again = `${being(unread)}; it is looked up again then.`;
  return unread.length === 0 ? attendee : pendingFor(attendee, again);
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

export function pendingDeal(deal: DealMatch, unread: readonly MatchedList[]): DealMatch {
  if (unread.length === 0) return deal;
  return deal.status === "NONE"
    ? { ...deal, status: "PENDING", reason: `${being(unread)}; the meeting is matched again then.` }
    : { ...deal, reason: `${deal.reason} ${being(unread)}, so this may change.` };
}

/** Who is ours and who is ignored can be told without a CRM; of anybody else nothing is known, not even an absence. */
export const unconnectedAttendee = (attendee: AttendeeMatch): AttendeeMatch => pendingFor(attendee, NOT_CONNECTED);

export const UNCONNECTED_DEAL: DealMatch = {
  ...{ status: "PENDING", rule: null, reason: NOT_CONNECTED, dealId: null, candidates: [] },
};
