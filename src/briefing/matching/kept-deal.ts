import type { ChoiceFact } from "./facts";
import type { DealMatch } from "./match-deal";

const CHOSEN_REASON = "A user chose this deal.";
const NOT_READ = "has not been read from the connected CRM yet; the meeting is matched again then.";
const notRead = ({ written }: ChoiceFact) =>
  `The deal ${written ? "for which something was written" : "that a user chose"} ${NOT_READ}`;
const GONE =
  "The deal that a user chose is not in the connected CRM, or no longer visible there, and no other takes its place.";
const STAYS = " The match stays as it was when something was written to the CRM for this meeting.";

/**
 * What the rules say, where a user's choice and what was written stand above them: no other deal ever takes the place of
 * one that was chosen, and what was written to is still what the meeting is about when the rules come to something else.
 * @param isReading lists are being read for the first time
 */
export function withChoice(match: DealMatch, choice: ChoiceFact | null, isReading: boolean): DealMatch {
  if (!choice) return match;
  const { dealId, isThere, written } = choice;
  if (written && (isThere ? match.dealId === dealId : !isReading)) return match;
  if (!isThere) {
    const isOpen = match.candidates.length > 0;
    const reason = isReading ? notRead(choice) : `${GONE} ${isOpen ? "Choose another." : "No other could be meant."}`;
    return {
      ...match,
      status: isOpen ? "NEEDS_CHOICE" : isReading ? "PENDING" : "NONE",
      rule: null,
      dealId: null,
      reason,
    };
  }
  const words = written ? `${written.reason.replace(STAYS, "")}${STAYS}` : CHOSEN_REASON;
  const isCandidate = match.candidates.some((candidate) => candidate.dealId === dealId);
  const why = written ? "Something was written to the CRM while the meeting was about it." : "A user chose it.";
  const candidates = isCandidate ? match.candidates : [...match.candidates, { dealId, reason: why }];
  return { status: "MATCHED", rule: written ? written.rule : "CHOSEN", reason: words, dealId, candidates };
}

/** Where the meeting was recorded anew and the deal that it was about fits its attendees no more. */
export const withoutChoice = (match: DealMatch, { written }: ChoiceFact): DealMatch => ({
  ...match,
  reason: `The deal ${written ? "for which something was written" : "that a user chose"} before is none of the attendees' as they are recorded now. ${match.reason}`,
});
