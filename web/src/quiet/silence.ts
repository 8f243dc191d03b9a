import type { QuietDealFragment, QuietReasonCode } from "../api/operations.generated";
import { allOf, counted, dayUnit, money, number } from "../ui/words";

export type QuietDeal = QuietDealFragment;
type Reason = QuietDeal["quiet"]["reasons"][number];

/** What makes the verdict says most; all others follow as the service orders them. */
const DECIDING: Partial<Record<QuietDeal["quiet"]["verdict"], readonly QuietReasonCode[]>> = {
  GHOSTED: ["GHOSTED", "NEVER_REPLIED"],
  QUIET: ["NO_RECENT_ACTIVITY"],
  UNKNOWN: ["DATA_STALE", "DATA_INCOMPLETE"],
};

/** The one reason to show first, and the others. */
export function byStrength({ verdict, reasons }: QuietDeal["quiet"]): { strongest: Reason | null; others: Reason[] } {
  const deciding = DECIDING[verdict] ?? [];
  const strongest = reasons.find(({ code }) => deciding.includes(code)) ?? reasons[0] ?? null;
  return { strongest, others: reasons.filter((reason) => reason !== strongest) };
}

/** One setting of the company: the deals of a board are all counted alike. */
export const unitOf = (deals: readonly QuietDeal[]): string => dayUnit(deals.some(({ quiet }) => quiet.businessDays));

/** Of a ghosted deal the service counts the buyer's silence, of others that of everybody. */
export function silenceOf({ verdict, quietDays, businessDays }: QuietDeal["quiet"]): { days: string; of: string } {
  if (quietDays === null) return { days: "not known", of: "" };
  return { days: counted(quietDays, dayUnit(businessDays)), of: verdict === "GHOSTED" ? "buyer silent" : "no contact" };
}

interface Counts {
  totalCount: number | null;
  totals: readonly { amount: string; currency: string }[] | null;
}

/** The service counts and sums up to this many; beyond it the board does not guess. */
const MOST_COUNTED = 10_000;

/** "21 deals, worth €1,200, £30 and $4": of all that fit, not of those that are loaded. */
export function headline({ totalCount, totals }: Counts): string {
  if (totalCount === null) return `More than ${number(MOST_COUNTED)} deals`;
  const sums = allOf((totals ?? []).map(money));
  return `${counted(totalCount, "deal")}${sums && `, worth ${sums}`}`;
}
