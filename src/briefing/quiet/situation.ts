import { type Calendar, DAY_MS, plusDays, startOfDay } from "../../platform/clock";
import {
  type Contact,
  type ContactKind,
  type DealFacts,
  type DealMeeting,
  type Evidence,
  INWARD_TYPES,
  NEAR_STEP_DAYS,
  type PlannedFact,
  type QuietRules,
} from "./facts";

type Found = [at: number, id: number];
/** Of activities: with their day, if they have no time. */
type FoundDone = [day: number | null, ...Found];
/** The latest and the earliest of those that count alike. */
type FoundContacts = [
  ContactKind,
  type: string | null,
  withPerson: boolean,
  latest: Found | FoundDone | null,
  earliest: Found | FoundDone | null,
][];

export const contactsOf = (found: FoundContacts): Contact[] =>
  found.flatMap(([kind, activityType, withPerson, last, first]) => {
    return [last, first]
      .filter((end) => end !== null)
      .map((end) => {
        const [day, at, id] = end.length === 3 ? end : [null, ...end];
        return { kind, at, day, crmId: Math.abs(id), activityType, withPerson };
      })
      .filter(({ at, day }, index, [latest]) => index === 0 || at !== latest?.at || day !== latest.day);
  });

/** Meetings ahead, and ends of half months of steps, that are looked at. */
export const MOST_AHEAD = 100;

type FoundSteps = [wholeDay: boolean, first: Found, last: Found | null][];

export const plannedOf = (found: FoundSteps): PlannedFact[] =>
  found.flatMap(([wholeDay, first, last]) => {
    const step = ([dueAt, id]: Found) => ({ crmId: Math.abs(id), dueAt, wholeDay });
    return last && last[0] !== first[0] ? [step(first), step(last)] : [step(first)];
  });

/** What of other records a deal is judged by. It is kept with the schedule: whatever changes it judges the deal anew. */
export interface OfOthers {
  contacts: FoundContacts;
  meetings: DealMeeting[];
  planned: FoundSteps;
  hasMail: boolean;
  hasFirstMail: boolean;
  firstMailLeft: boolean;
}
/** Something that happened, or will, with the record that shows it. */
export interface Touch {
  at: number;
  /** Midnight in UTC of the day that begins then in the zone, where no more is known of when it was. */
  day: number | null;
  kind: ContactKind | "MEETING" | "ADDED" | "STEP";
  /** Of an activity: the CRM's word for its kind. */
  activityType: string | null;
  evidence: Evidence;
}

/** How things stand with a deal at one instant. */
export interface Situation {
  /** Of contacts since the deal was added: with the buyer taking part, and our own words. */
  inbound: Touch | null;
  outbound: Touch | null;
  firstOutbound: Touch | null;
  /** The latest of all contacts, also those within our house, and of the deal's adding. */
  lastTouch: Touch | null;
  nextStep: Touch | null;
  /** The next step is no more than 30 days ahead. */
  isNear: boolean;
  /** The earliest undone activity, where it is past due. */
  overdue: Touch | null;
}

/** What each instant has in common is gone through once, for all instants at which a deal is judged. */
export function situationsOf(facts: DealFacts, rules: QuietRules): (now: number) => Situation {
  const { calendar } = rules;
  const { addedAt, contacts, meetings, planned } = facts;
  const isOfDeal = ({ at }: Touch) => addedAt === null || at >= addedAt;
  const of: Record<Side, Touch[]> = { BUYERS: [], OURS: [], INWARD: [] };
  for (const contact of contacts) of[sideOf(contact, rules)].push(contactTouch(contact, rules));
  const [heard, ours] = [latest(of.BUYERS.filter(isOfDeal)), of.OURS.filter(isOfDeal)];
  const [outbound, firstOutbound] = [latest(ours), earliest(ours)];
  const added = addedAt === null ? null : touch("ADDED", addedAt, dealEvidence(facts));
  const last = latest([...of.BUYERS, ...of.OURS, ...of.INWARD], added);
  const met = meetings.filter(({ withBuyer }) => withBuyer).map((meeting) => meetingTouch(meeting, meeting.endsAt));
  const steps = [
    ...planned.map((step) => ({ ends: endOf(step, calendar), touch: plannedTouch(step, beginOf(step, calendar)) })),
    ...meetings.map((meeting) => ({ ends: meeting.endsAt, touch: meetingTouch(meeting, meeting.startsAt) })),
  ];
  const oldest = earliest(planned.map((step) => plannedTouch(step, dueUntil(step, calendar))));
  return (now) => {
    const held = met.filter(({ at }) => at <= now);
    const nextStep = earliest(steps.filter(({ ends }) => now < ends).map(({ touch }) => touch));
    return {
      inbound: latest(held.filter(isOfDeal), heard),
      outbound,
      firstOutbound,
      lastTouch: latest(held, last),
      nextStep,
      isNear: nextStep !== null && now >= nearFrom(nextStep.at, rules),
      overdue: oldest && oldest.at <= now ? oldest : null,
    };
  };
}

/** The CRM moves the time of our latest mail with each one: the first that was seen is kept. null: as it stands. */
export function firstMailOf(facts: DealFacts): { at: number | null; personId: number | null } | null {
  const { addedAt, hasFirstMail, firstMailLeft, contacts } = facts;
  if (hasFirstMail) return null;
  const mails = contacts.filter(({ kind, at }) => kind === "OUTGOING_MAIL" && (addedAt === null || at >= addedAt));
  const [first] = mails.sort((a, b) => a.at - b.at || a.crmId - b.crmId);
  if (!first && !firstMailLeft) return null;
  return { at: first?.at ?? null, personId: first?.crmId ?? null };
}

type Side = "BUYERS" | "OURS" | "INWARD";

/** Whose word a contact was. A note, a task, and what no person of the deal took part in speak to nobody outside. */
export function sideOf({ kind, activityType, withPerson }: Contact, { twoWayTypes }: QuietRules): Side {
  if (kind === "INCOMING_MAIL") return "BUYERS";
  if (kind === "OUTGOING_MAIL") return "OURS";
  if (kind === "NOTE" || !withPerson || activityType === null || INWARD_TYPES.includes(activityType)) return "INWARD";
  return twoWayTypes.includes(activityType) ? "BUYERS" : "OURS";
}

/** Every instant from which on time alone makes another situation, until the next of them. */
export function turnsOf({ meetings, planned }: DealFacts, rules: QuietRules): number[] {
  const { calendar } = rules;
  return [
    ...meetings.flatMap(({ startsAt, endsAt }) => [endsAt, nearFrom(startsAt, rules)]),
    ...planned.flatMap((step) => [endOf(step, calendar), nearFrom(beginOf(step, calendar), rules)]),
  ];
}

const nearFrom = (stepAt: number, { calendar: { zone } }: QuietRules) =>
  plusDays({ zone, businessDays: false }, stepAt, -NEAR_STEP_DAYS);

type Due = Pick<PlannedFact, "dueAt" | "wholeDay">;

export const beginOf = ({ dueAt, wholeDay }: Due, calendar: Calendar): number =>
  wholeDay ? startOfDay(calendar, dueAt) : dueAt;

/** From when on an undone activity is past due. */
const dueUntil = ({ dueAt, wholeDay }: Due, calendar: Calendar): number =>
  wholeDay ? startOfDay(calendar, dueAt + DAY_MS) : dueAt;

/** From when on it is no step ahead: one with a time still is at that very instant. */
const endOf = (step: Due, calendar: Calendar): number => dueUntil(step, calendar) + (step.wholeDay ? 0 : 1);

export const isAhead = (step: Due, calendar: Calendar, now: number): boolean => now < endOf(step, calendar);

export const dealEvidence = ({ dealId }: DealFacts): Evidence => ({ type: "Deal", crmId: dealId });

const EVIDENCE_TYPE = { INCOMING_MAIL: "Person", OUTGOING_MAIL: "Person", ACTIVITY: "Activity", NOTE: "Note" } as const;

/** A day is the zone's; what was ticked off before it had begun took place then, and on no day without a time. */
export function momentOf({ at, day = null }: Pick<Contact, "at" | "day">, calendar: Calendar) {
  const begins = day === null ? at : startOfDay(calendar, day);
  return at < begins ? { at, day: null } : { at: begins, day };
}

/** The latest instant at which it may have been. */
export const latestAt = ({ at, day }: Contact, { calendar }: QuietRules): number =>
  day == null ? at : Math.min(at, startOfDay(calendar, day + DAY_MS));

const touch = (kind: Touch["kind"], at: number, evidence: Evidence): Touch => {
  return { at, day: null, kind, activityType: null, evidence };
};
const contactTouch = (contact: Contact, { calendar }: QuietRules): Touch => {
  const { kind, crmId, activityType } = contact;
  const { at, day } = momentOf(contact, calendar);
  return { at, day, kind, activityType, evidence: { type: EVIDENCE_TYPE[kind], crmId } };
};
const meetingTouch = ({ meetingId }: DealMeeting, at: number) => touch("MEETING", at, { type: "Meeting", meetingId });
const plannedTouch = ({ crmId }: PlannedFact, at: number): Touch => touch("STEP", at, { type: "Activity", crmId });

const latest = (touches: readonly Touch[], found: Touch | null = null) => first(-1, touches, found);
const earliest = (touches: readonly Touch[]) => first(1, touches, null);

/** Of touches at one instant always the same one, in whatever order they come. */
function first(direction: 1 | -1, touches: readonly Touch[], found: Touch | null): Touch | null {
  const key = ({ kind, evidence }: Touch) =>
    `${evidence.type}:${"crmId" in evidence ? evidence.crmId : evidence.meetingId}:${kind}`;
  const isFirst = (a: Touch, b: Touch) => (a.at === b.at ? key(a) < key(b) : direction * (a.at - b.at) < 0);
  return touches.reduce((one, next) => (one === null || isFirst(next, one) ? next : one), found);
}

/** A write of ours to a deal: the CRM's update time before it, and between which instants it may have moved that. */
export type OurWrite = [before: number | null, opens: number, closes: number];

/**
 * When a deal was last changed by anybody but this service. Each of our writes moves the CRM's update time and its receipt
 * holds the one from before, so the answer is the latest of all known update times that no write of ours made: one is ours
 * where it is later than the one before the write, and lies within the time of the write (decision 0078).
 */
export function updatedByOthers(updatedAt: number | null, writes: readonly OurWrite[]): number | null {
  const isOurs = (at: number) =>
    writes.some(([before, opens, closes]) => (before === null || at > before) && at >= opens && at <= closes);
  const known = [updatedAt, ...writes.map(([before]) => before)].filter((at) => at !== null);
  const others = known.filter((at) => !isOurs(at));
  return others.length > 0 ? Math.max(...others) : null;
}
