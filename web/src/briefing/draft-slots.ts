/** Of everybody who uses this browser. */
const MOST_DRAFTS = 20;
export const PREFIX = "draft:";

/** Whose text, of which meeting and for what. Another user of the browser has another slot, and never reads this one. */
export const draftSlot = (viewer: { tenantId: string; userId: string }, meetingId: string, of: string): string =>
  `${PREFIX}${JSON.stringify([viewer.tenantId, viewer.userId, meetingId, of])}`;

/** Which drafts go so that one more has room: the oldest ones. */
export function tooMany(drafts: readonly { slot: string; at: number }[]): string[] {
  const newestFirst = [...drafts].sort((a, b) => b.at - a.at);
  return newestFirst.slice(MOST_DRAFTS - 1).map(({ slot }) => slot);
}
