/** Of everybody who uses this browser. */
const MOST_DRAFTS = 20;

type Viewer = { tenantId: string; userId: string };

/** Whose text, of which meeting and for what. Another user of the browser has another slot, and never reads this one. */
export const draftSlot = (viewer: Viewer, meetingId: string, of: string): string =>
  `draft:${JSON.stringify([viewer.tenantId, viewer.userId, meetingId, of])}`;

/** Where a note that was sent is kept until it is settled. */
export const sentSlot = (viewer: Viewer, meetingId: string): string =>
  `sent:${JSON.stringify([viewer.tenantId, viewer.userId, meetingId])}`;

/** Drafts, or notes that were sent. */
export const kindOf = (slot: string): string => slot.slice(0, slot.indexOf(":") + 1);

/** Before the slot of a note that was written: a kind of its own, so that many of them push out none that is not settled. */
export const WRITTEN = "written:";
/** Of all that the page keeps of a person's text. */
export const KINDS = ["draft:", "sent:", WRITTEN];
/** Milliseconds: 90 days. */
export const LONGEST_KEPT = 7_776e6;

/** Which drafts go so that one more has room: the oldest ones. */
export function tooMany(drafts: readonly { slot: string; at: number }[]): string[] {
  const newestFirst = [...drafts].sort((a, b) => b.at - a.at);
  return newestFirst.slice(MOST_DRAFTS - 1).map(({ slot }) => slot);
}
