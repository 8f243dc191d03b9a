import type { ContactKind, DealFacts } from "./facts";

/** The latest contact of a deal; `meetingId` where it was a recorded meeting, which counts at its end. */
export interface LastInteraction {
  kind: ContactKind | "MEETING";
  at: number;
  /** The person of a mail, the done activity, or the note; null for a meeting. */
  crmId: number | null;
  meetingId: string | null;
}

/** null where nothing is known of any contact. */
export function lastInteraction({ contacts, meetings }: DealFacts, now: Date): LastInteraction | null {
  const held = meetings.filter(({ withBuyer, endsAt }) => withBuyer && endsAt <= now.getTime());
  const every: LastInteraction[] = [
    ...held.map(({ meetingId, endsAt }) => ({ kind: "MEETING" as const, at: endsAt, crmId: null, meetingId })),
    ...contacts.map((contact) => ({ ...contact, meetingId: null })),
  ];
  return every.sort((a, b) => b.at - a.at)[0] ?? null;
}
