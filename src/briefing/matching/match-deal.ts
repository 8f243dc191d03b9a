import type { MeetingMatchStatus, StoredDealCandidate } from "../../entities/meeting-match";
import type { Candidate, Candidates } from "./deal-candidates";
import type { ChoiceFact } from "./facts";

export type DealRule =
  | "CHOSEN"
  | "SAME_CRM_ACTIVITY"
  | "ONLY_CANDIDATE"
  | "MOST_ATTENDEES"
  | "OWNER_ATTENDS"
  | "OPEN_BEFORE_CLOSED";

export interface DealMatch {
  status: MeetingMatchStatus;
  rule: DealRule | null;
  reason: string;
  dealId: number | null;
  /** Every deal that could be meant, also where a rule decided: a user may know better. */
  candidates: StoredDealCandidate[];
}

interface Rung {
  rule: DealRule;
  /** Those of which the rung speaks. */
  keeps(left: readonly Candidate[]): readonly Candidate[];
  /** @param byActivity only the deals that have an activity at the time are left */
  reason(one: Candidate, of: Candidates["of"], byActivity: boolean): string;
}

const plural = (count: number, one: string, many: string) => `${count} ${count === 1 ? one : many}`;
const whose = (of: Candidates["of"]) => (of === "PERSONS" ? "the attendees" : "the attendees' companies");

const WITH_ACTIVITY = "for which the CRM has an activity at that time";

/**
 * In this order, each on what the one before has left; the first that leaves exactly one decides. A rung that speaks
 * of none leaves all. None looks at value, age or id.
 */
const LADDER: readonly Rung[] = [
  {
    rule: "SAME_CRM_ACTIVITY",
    keeps: (left) => left.filter(({ hasActivity }) => hasActivity),
    reason: () => "The CRM has an activity with an attendee at the time of the meeting, and it belongs to this deal.",
  },
  {
    rule: "ONLY_CANDIDATE",
    keeps: (left) => left,
    reason: (_one, of) => `It is the only deal of ${whose(of)} that was open around the meeting.`,
  },
  {
    rule: "MOST_ATTENDEES",
    keeps: (left) => {
      const most = Math.max(...left.map(({ attendees }) => attendees));
      return left.filter(({ attendees }) => attendees === most);
    },
    reason: ({ attendees }, of, byActivity) =>
      `${inWords(attendees, of)}, and fewer in any other deal ${byActivity ? WITH_ACTIVITY : "that could be meant"}.`,
  },
  {
    rule: "OWNER_ATTENDS",
    keeps: (left) => left.filter(({ ownerAttends }) => ownerAttends),
    reason: (_one, _of, byActivity) =>
      `Of the deals with ${byActivity ? "an activity at that time and " : ""}most attendees it is the only one whose owner was in the meeting.`,
  },
  {
    rule: "OPEN_BEFORE_CLOSED",
    keeps: (left) => left.filter((candidate) => !candidate.wasClosed),
    reason: () => "Of the deals that fit equally well it is the only one that was still open.",
  },
];

/**
 * Which deal a meeting is about: the one that fits, or every one that could and why nothing decided. Attendees must
 * speak for a deal: a shared address or an e-mail domain alone leads to candidates and decides nothing.
 */
export function matchDeal({ of, found }: Candidates): DealMatch {
  if (found.length === 0) return none(`No deal of ${whose("PERSONS")} or their companies was open around the meeting.`);
  const candidates = found.map((candidate) => ({
    dealId: candidate.deal.crmId,
    reason: `${whatSpeaksFor(candidate, of)}.`,
  }));
  const withActivity = found.filter(({ hasActivity }) => hasActivity).length;
  const byActivity = withActivity > 0 && withActivity < found.length;
  let left: readonly Candidate[] = found;
  for (const { rule, keeps, reason } of LADDER) {
    const needsAttendees = rule !== "SAME_CRM_ACTIVITY";
    if (needsAttendees && left.every(({ attendees }) => attendees === 0)) break;
    const kept = keeps(left);
    if (kept.length > 0) left = kept;
    const [one, ...others] = kept;
    if (one && others.length === 0) {
      return { status: "MATCHED", rule, reason: reason(one, of, byActivity), dealId: one.deal.crmId, candidates };
    }
  }
  return { status: "NEEDS_CHOICE", rule: null, reason: whyNothingDecided(left, found, of), dealId: null, candidates };
}

/** No attendee leads to a person or an organization. */
export const nobodyKnown = (isAmbiguous: boolean): DealMatch =>
  none(
    isAmbiguous
      ? "For no attendee is it certain which person of the CRM it is."
      : "No attendee is a known person of the CRM.",
  );

/** A user's choice stands above the rules, and no other deal ever takes the place of one that was chosen. */
export function withChoice(match: DealMatch, choice: ChoiceFact | null): DealMatch {
  if (!choice) return match;
  if (!choice.isThere) {
    const isOpen = match.candidates.length > 0;
    const reason = `The deal that a user chose is not in the connected CRM, or no longer visible there, and no other takes its place. ${isOpen ? "Choose another." : "No other could be meant."}`;
    return { ...match, status: isOpen ? "NEEDS_CHOICE" : "NONE", rule: null, dealId: null, reason };
  }
  const { dealId } = choice;
  const isCandidate = match.candidates.some((candidate) => candidate.dealId === dealId);
  const candidates = isCandidate ? match.candidates : [...match.candidates, { dealId, reason: "A user chose it." }];
  return { status: "MATCHED", rule: "CHOSEN", reason: CHOSEN_REASON, dealId, candidates };
}

const CHOSEN_REASON = "A user chose this deal.";

/** Where the meeting was recorded anew and what was chosen before fits its attendees no more. */
export const withoutChoice = (match: DealMatch): DealMatch => ({
  ...match,
  reason: `The deal that a user chose before is none of the attendees' as they are recorded now. ${match.reason}`,
});

function whatSpeaksFor({ attendees, hasActivity, ownerAttends, wasClosed }: Candidate, of: Candidates["of"]): string {
  const parts = [
    attendees > 0
      ? inWords(attendees, of)
      : of === "PERSONS"
        ? "Only a shared address leads to it"
        : "Only a shared address or the e-mail domain leads to it",
    hasActivity && "the CRM has an activity for it at that time",
    ownerAttends && "its owner was in the meeting",
    wasClosed && "it had been closed before the meeting",
  ];
  return parts.filter(Boolean).join("; ");
}

const inWords = (attendees: number, of: Candidates["of"]): string =>
  of === "PERSONS"
    ? `${plural(attendees, "attendee takes", "attendees take")} part in it`
    : `${plural(attendees, "attendee comes", "attendees come")} from its organization`;

function whyNothingDecided(left: readonly Candidate[], found: readonly Candidate[], of: Candidates["of"]): string {
  const count = plural(found.length, "deal", "deals");
  const [one] = left;
  if (!one || one.attendees === 0) {
    const what = of === "PERSONS" ? "a shared address" : "a shared address or an e-mail domain";
    const which = left.length === found.length ? count : `the ${plural(left.length, "deal", "deals")} ${WITH_ACTIVITY}`;
    return `Only ${what} leads to ${which}, and that decides nothing by itself.`;
  }
  const owners = one.ownerAttends ? "the owner of each was there" : "no owner of them was there";
  const state = one.wasClosed ? "each had been closed" : "each was open";
  const whom =
    of === "PERSONS" ? "as many attendees take part in each" : "as many attendees come from the organization of each";
  const rest = left.length === found.length ? "" : ` Between ${left.length} of them nothing decides:`;
  return `${count} of ${whose(of)} could be meant${rest ? `.${rest}` : ", and nothing decides:"} ${whom}, ${owners}, and ${state}.`;
}

function none(reason: string): DealMatch {
  return { status: "NONE", rule: null, reason, dealId: null, candidates: [] };
}
