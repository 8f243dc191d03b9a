import type { FreshnessFragment, MeetingLineFragment } from "../api/operations.generated";
import { isFirstRead } from "../ui/first-read";
import { type Tone, VERDICT } from "../ui/tones";
import { counted } from "../ui/words";

type Of = Pick<MeetingLineFragment, "match" | "cancelledAt">;

/** What a meeting is about, in a word or two, and why. */
export interface About {
  deal: string | null;
  badge: { text: string; tone: Tone } | null;
  /** Where there is no deal: what is true instead. */
  instead: string | null;
}

/** "No deal" is only said by who has looked: not while no CRM is connected, and not before it was read and matched. */
export function aboutOf({ match, cancelledAt }: Of, { state, sync }: FreshnessFragment): About {
  const { deal, status, candidates } = match;
  if (cancelledAt) return { deal: null, badge: { text: "Cancelled", tone: "plain" }, instead: null };
  if (deal) return { deal: deal.title, badge: VERDICT[deal.quiet.verdict], instead: null };
  if (state === "NOT_CONNECTED") return { deal: null, badge: null, instead: "No CRM is connected" };
  if (status === "NEEDS_CHOICE") {
    const text = `${counted(candidates.length, "deal")} to choose from`;
    return { deal: null, badge: { text, tone: "warn" }, instead: null };
  }
  // Its deal is there, and could not be read.
  if (status === "MATCHED") return { deal: null, badge: null, instead: "Not known" };
  const isOpen = status === "PENDING" || isFirstRead(sync);
  return { deal: null, badge: null, instead: isOpen ? "Not matched yet" : "No deal" };
}
