import type { MeetingAttendeeRow, MeetingMatchRow } from "../entities/meeting";
import { NOT_CONNECTED } from "./matching/match";

const CONNECTION_CHANGED = "The CRM connection has changed since; the meeting is matched again after the next sync.";

/** A match holds for the copy that it was made on. @returns why it does not hold now; null where it does */
export function whyOutdated(copyId: number | null, match: MeetingMatchRow | undefined): string | null {
  if (match?.copyId === copyId) return null;
  return copyId === null ? NOT_CONNECTED : CONNECTION_CHANGED;
}

/** A choice among more is none; an info@ address may stand at thousands of persons. */
export const MOST_CANDIDATES = 50;

const DEAL_GONE = "The deal that the meeting was matched to is gone from the CRM, or no longer visible there.";

/** A meeting of long ago is not matched again when a sync removes its deal, and it is matched to none all the same. */
export async function withoutGoneDeal(
  match: MeetingMatchRow,
  isThere: (dealId: number) => Promise<boolean>,
): Promise<MeetingMatchRow> {
  if (match.dealId === null || (await isThere(match.dealId))) return match;
  const left = await Promise.all(match.candidates.slice(0, MOST_CANDIDATES).map(({ dealId }) => isThere(dealId)));
  const status = left.includes(true) ? "NEEDS_CHOICE" : "NONE";
  return { ...match, status, rule: null, dealId: null, reason: DEAL_GONE };
}

const PENDING = "PENDING" as const;

/** @param outdated why nothing of the match holds: it belongs to a copy that is no longer the tenant's; null: it holds */
export const attendeeShown = (row: MeetingAttendeeRow, outdated: string | null) => ({
  email: row.email,
  name: row.name,
  side: row.side,
  match: {
    status: outdated ? PENDING : row.matchStatus,
    rule: outdated ? null : row.matchRule,
    reason: outdated ?? row.matchReason,
    organizationStatus: outdated ? PENDING : row.organizationStatus,
    organizationRule: outdated ? null : row.organizationRule,
    organizationReason: outdated ? null : row.organizationReason,
    personId: outdated ? null : row.personId,
    organizationId: outdated ? null : row.organizationId,
    candidateIds: outdated ? [] : row.candidateIds,
  },
});

/** @param outdated as in {@link attendeeShown} */
export const matchShown = (row: MeetingMatchRow, outdated: string | null) => ({
  status: outdated ? PENDING : row.status,
  rule: outdated ? null : row.rule,
  reason: outdated ?? row.reason,
  matchedAt: row.matchedAt,
  meetingId: row.meetingId,
  dealId: outdated ? null : row.dealId,
  candidates: outdated ? [] : matchedFirst(row),
});

/** The matched one first, so that a bounded list never leaves it out. */
function matchedFirst({ candidates, dealId: matched }: MeetingMatchRow): MeetingMatchRow["candidates"] {
  const rest = candidates.filter(({ dealId }) => dealId !== matched);
  const first = candidates.filter(({ dealId }) => dealId === matched);
  return [...first, ...rest];
}
