import { DAY_MS } from "../../platform/clock";
import type { DealFacts, Evidence, MeetingFact, PlannedFact } from "./facts";

/** A contact, with the record that shows it. */
export interface Touch {
  at: number;
  evidence: Evidence;
}

/** How things stand with a deal at one instant. */
export interface Situation {
  inbound: Touch | null;
  outbound: Touch | null;
  firstOutbound: Touch | null;
  /** The later of inbound and outbound; else when the deal was added. */
  lastTouch: Touch | null;
  nextStep: Touch | null;
  /** The earliest undone activity, where it is past due. */
  overdue: Touch | null;
}

export function situationAt(facts: DealFacts, now: number): Situation {
  const held = facts.meetings.filter((meeting) => meeting.withBuyer && meeting.endsAt <= now).map(heldMeeting);
  const mails = facts.contacts.filter(({ kind }) => kind === "INCOMING_MAIL").map(contactTouch);
  const ours = facts.contacts.filter(({ kind }) => kind !== "INCOMING_MAIL").map(contactTouch);
  const inbound = latest([...mails, ...held]);
  const outbound = latest(ours);
  const added = facts.addedAt === null ? null : { at: facts.addedAt, evidence: dealEvidence(facts) };
  const earliestPlanned = earliest(facts.planned.map(pastDue));
  return {
    inbound,
    outbound,
    firstOutbound: earliest(ours),
    lastTouch: latest([inbound, outbound].filter((touch) => touch !== null)) ?? added,
    nextStep: earliest([
      ...facts.planned.filter((planned) => isAhead(planned, now)).map(plannedStep),
      ...facts.meetings.filter(({ endsAt }) => endsAt > now).map(meetingStep),
    ]),
    overdue: earliestPlanned && earliestPlanned.at <= now ? earliestPlanned : null,
  };
}

/** From when on an undone activity is past due; one with a time is still a step at that very instant. */
export const dueEnd = ({ dueAt, wholeDay }: PlannedFact): number => (wholeDay ? dueAt + DAY_MS : dueAt);

function isAhead(planned: PlannedFact, now: number): boolean {
  return planned.wholeDay ? now < dueEnd(planned) : now <= planned.dueAt;
}

export const dealEvidence = ({ dealId }: DealFacts): Evidence => ({ type: "Deal", crmId: dealId });

const EVIDENCE_TYPE = { INCOMING_MAIL: "Person", OUTGOING_MAIL: "Person", ACTIVITY: "Activity", NOTE: "Note" } as const;

function contactTouch({ kind, at, crmId }: DealFacts["contacts"][number]): Touch {
  return { at, evidence: { type: EVIDENCE_TYPE[kind], crmId } };
}

const meetingEvidence = ({ meetingId }: MeetingFact): Evidence => ({ type: "Meeting", meetingId });
const heldMeeting = (meeting: MeetingFact): Touch => ({ at: meeting.endsAt, evidence: meetingEvidence(meeting) });
const meetingStep = (meeting: MeetingFact): Touch => ({ at: meeting.startsAt, evidence: meetingEvidence(meeting) });
const plannedEvidence = ({ crmId }: PlannedFact): Evidence => ({ type: "Activity", crmId });
const plannedStep = (planned: PlannedFact): Touch => ({ at: planned.dueAt, evidence: plannedEvidence(planned) });
const pastDue = (planned: PlannedFact): Touch => ({ at: dueEnd(planned), evidence: plannedEvidence(planned) });

const latest = (touches: readonly Touch[]) => first(touches, (a, b) => b.at - a.at);
const earliest = (touches: readonly Touch[]) => first(touches, (a, b) => a.at - b.at);

/** Of touches at one instant always the same one, in whatever order they come. */
function first(touches: readonly Touch[], byTime: (a: Touch, b: Touch) => number): Touch | null {
  const key = ({ evidence }: Touch) => `${evidence.type}:${"crmId" in evidence ? evidence.crmId : evidence.meetingId}`;
  const [found] = [...touches].sort((a, b) => byTime(a, b) || (key(a) < key(b) ? -1 : 1));
  return found ?? null;
}
