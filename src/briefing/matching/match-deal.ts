import type { MeetingMatchStatus } from "../../entities/meeting-match";
import { DAY_MS } from "../../platform/clock";
import type { DealFact } from "./facts";

export type DealRule = "ONLY_CANDIDATE";

export interface DealMatch {
  status: MeetingMatchStatus;
  rule: DealRule | null;
  reason: string;
  dealId: number | null;
  candidates: { dealId: number; reason: string }[];
}

/** A deal opened after the meeting, or closed before it, may still be what the meeting was about for this long. */
const WINDOW_MS = 14 * DAY_MS;

/**
 * Which deal a meeting is about: the one that fits, or every one that could and why nothing decided. Whether a deal
 * was open is judged at the meeting by its own time stamps, never by its status today; no tie is broken by value,
 * age or id.
 */
export function matchDeal(
  startsAt: Date,
  matchedPersonIds: ReadonlySet<number>,
  deals: readonly DealFact[],
): DealMatch {
  if (matchedPersonIds.size === 0) return none("No attendee is a known person of the CRM.");
  const candidates = deals
    .filter((deal) => deal.personIds.some((id) => matchedPersonIds.has(id)) && isInWindow(deal, startsAt))
    .sort((a, b) => a.crmId - b.crmId);
  const [only] = candidates;
  if (!only) return none("No deal of the attendees was open around the meeting.");
  if (candidates.length === 1) {
    return {
      status: "MATCHED",
      rule: "ONLY_CANDIDATE",
      reason: "It is the only deal of the attendees that was open around the meeting.",
      dealId: only.crmId,
      candidates: [],
    };
  }
  return {
    status: "NEEDS_CHOICE",
    rule: null,
    reason: `The attendees have ${candidates.length} deals that were open around the meeting, and nothing tells which one it was about.`,
    dealId: null,
    candidates: candidates.map((deal) => ({ dealId: deal.crmId, reason: reasonFor(deal, matchedPersonIds) })),
  };
}

function isInWindow({ addTime, wonTime, lostTime }: DealFact, startsAt: Date): boolean {
  const closed = Math.max(wonTime?.getTime() ?? 0, lostTime?.getTime() ?? 0);
  const openedInTime = addTime === null || addTime.getTime() <= startsAt.getTime() + WINDOW_MS;
  return openedInTime && (closed === 0 || closed >= startsAt.getTime() - WINDOW_MS);
}

function reasonFor({ personIds }: DealFact, matched: ReadonlySet<number>): string {
  const count = new Set(personIds.filter((id) => matched.has(id))).size;
  return `${count} of the attendees ${count === 1 ? "takes" : "take"} part in it.`;
}

function none(reason: string): DealMatch {
  return { status: "NONE", rule: null, reason, dealId: null, candidates: [] };
}
