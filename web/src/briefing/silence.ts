import type { ContactFragment, QuietReasonCode, QuietVerdict, ShownReasonFragment } from "../api/operations.generated";
import { keyed } from "../ui/keys";
import { CONTACT } from "./wording";

/** What decides each verdict. Others may hold beside it, and did not make it. */
const DECIDES: Record<QuietVerdict, readonly QuietReasonCode[]> = {
  GHOSTED: ["GHOSTED", "NEVER_REPLIED"],
  QUIET: ["NO_RECENT_ACTIVITY"],
  COOLING: ["NO_RECENT_ACTIVITY", "NO_NEXT_STEP", "STALLED_IN_STAGE"],
  ACTIVE: [],
  UNKNOWN: ["DATA_STALE"],
};

/** They tell of contact alone, which the verdict has weighed already: beside it they would say the opposite. */
const OF_CONTACT: readonly QuietReasonCode[] = ["GHOSTED", "NEVER_REPLIED", "NO_RECENT_ACTIVITY", "NO_NEXT_STEP"];

interface Sorted {
  /** Why the verdict is what it is, the strongest first. */
  fired: ShownReasonFragment[];
  /** What is worth knowing of the deal all the same. */
  besides: ShownReasonFragment[];
}

export function sortReasons(verdict: QuietVerdict, reasons: readonly ShownReasonFragment[]): Sorted {
  const order = DECIDES[verdict];
  return {
    fired: order.flatMap((code) => reasons.filter((reason) => reason.code === code)),
    besides: reasons.filter(({ code }) => !order.includes(code) && !OF_CONTACT.includes(code)),
  };
}

/** A contact of the timeline, or one that is older than it. */
export interface MarkedContact extends ContactFragment {
  /** Silence is counted from it. */
  counts: boolean;
  buyer: boolean;
}

/** Two colleagues may have recorded one meeting: then two contacts have all in common. */
export const keyedContacts = (contacts: readonly MarkedContact[]) =>
  keyed(contacts, ({ kind, at, person, activity }) => `${kind} ${at} ${person?.id} ${activity?.id}`);

/** The timeline with the contact from which silence is counted, also where that is older than what the timeline shows. */
export function markCounted(
  timeline: readonly ContactFragment[],
  verdict: QuietVerdict,
  reasons: readonly ShownReasonFragment[],
): MarkedContact[] {
  const [reason] = sortReasons(verdict, reasons).fired;
  const counted = reason && contactOf(reason);
  const isCounted = ({ kind, at, person, activity }: ContactFragment) =>
    counted?.at === at &&
    counted.kind === kind &&
    // Whose mail it was tells two of one moment apart; who was in a meeting or an activity is not said of the evidence.
    (counted.person === null || counted.person.id === person?.id) &&
    counted.activity?.id === activity?.id;
  const isOfBuyer = (contact: ContactFragment) =>
    CONTACT[contact.kind].buyer || (reason?.code === "GHOSTED" && isCounted(contact));
  const all = !counted || timeline.some(isCounted) ? timeline : [...timeline, counted];
  return [...all]
    .sort((a, b) => b.at.localeCompare(a.at))
    .map((contact) => ({ ...contact, counts: isCounted(contact), buyer: isOfBuyer(contact) }));
}

/** The contact that a reason is counted from; null where that is the deal's adding, its stage or the data. */
function contactOf({ code, since, sinceDay, evidence }: ShownReasonFragment): ContactFragment | null {
  const [shown] = evidence;
  if (!since || !shown || !OF_CONTACT.includes(code)) return null;
  const moment = { at: since, day: sinceDay };
  if (shown.__typename === "Meeting") return { kind: "MEETING", ...moment, person: null, activity: null };
  if (shown.__typename === "Note") return { kind: "NOTE", ...moment, person: null, activity: null };
  if (shown.__typename === "Activity") {
    const { id, subject, type } = shown;
    return { kind: "ACTIVITY", ...moment, person: null, activity: { id, subject, type } };
  }
  if (shown.__typename !== "Person") return null;
  const isTheirs = code === "GHOSTED" || (code !== "NEVER_REPLIED" && shown.lastIncomingMailAt === since);
  const person = { id: shown.id, name: shown.name };
  return { kind: isTheirs ? "INCOMING_MAIL" : "OUTGOING_MAIL", ...moment, person, activity: null };
}

const DAY_MS = 86_400_000;
/** Further ahead than people plan, a change says nothing. */
const NEAR_DAYS = 14;

/** When time alone will change the verdict, where that is near enough to matter. That the data would be too old by then is no change of it. */
export function nearChange(nextChangeAt: string | null, now: number): string | null {
  if (nextChangeAt === null) return null;
  const ahead = new Date(nextChangeAt).getTime() - now;
  return ahead > 0 && ahead <= NEAR_DAYS * DAY_MS ? nextChangeAt : null;
}
