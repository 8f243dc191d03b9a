import type { MatchedList } from "./facts";
import type { AttendeeMatch } from "./match-attendees";
import { FREE_MAIL } from "./match-company";
import type { DealMatch } from "./match-deal";

/** While lists are read for the first time nobody can say that something is not there, or that there is no more of it. */

const ALL_OF = new Intl.ListFormat("en-GB");
const being = (lists: readonly MatchedList[]) =>
  `The CRM's ${ALL_OF.format(lists).toLowerCase()} are still being read for the first time`;

/** Of those lists that a statement rests on, the ones that are not read yet. */
const among = (unread: readonly MatchedList[], ...lists: MatchedList[]) =>
  lists.filter((list) => unread.includes(list));

export function attendeeSoFar(attendee: AttendeeMatch, unread: readonly MatchedList[]): AttendeeMatch {
  if (attendee.side !== "BUYER") return attendee;
  const unreadPeople = attendee.status === "NONE" ? among(unread, "PERSONS") : [];
  const mayCome = attendee.organizationStatus === "NONE" && attendee.organizationReason !== FREE_MAIL;
  const unreadCompanies = mayCome ? among(unread, "PERSONS", "ORGANIZATIONS") : [];
  return {
    ...attendee,
    reason: unreadPeople.length > 0 ? `${being(unreadPeople)}: who this is, is looked up again then.` : attendee.reason,
    organizationReason:
      unreadCompanies.length > 0
        ? `${being(unreadCompanies)}: it is looked up again then.`
        : attendee.organizationReason,
  };
}

export function dealSoFar(deal: DealMatch, unread: readonly MatchedList[]): DealMatch {
  const lists = among(unread, "PERSONS", "ORGANIZATIONS", "DEALS");
  if (lists.length === 0) return deal;
  const reason =
    deal.status === "NONE"
      ? `${being(lists)}: the meeting is matched again then.`
      : `${deal.reason} ${being(lists)}, so this may change.`;
  return { ...deal, reason };
}
