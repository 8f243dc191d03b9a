import { type Calendar, dayOf, daysBetween } from "../../platform/clock";
import type { ConnectionFacts, ContactKind, DealFacts, Judged, QuietReasonCode, QuietSignal } from "./facts";
import { type HeldReason, isStale, reasonsAt, staleFrom } from "./rules";
import { momentOf, type Touch } from "./situation";
import { outlooksOf, scheduleOf, verdictAt } from "./verdict";

/**
 * Whether a deal has gone quiet, at an instant. Pure: the same facts at the same instant give the same answer, in
 * whatever order they come. The rules are in decision 0078.
 */
export function judge(facts: DealFacts, copy: ConnectionFacts, at: Date): QuietSignal {
  const now = at.getTime();
  const { calendar } = copy.rules;
  const asOf = new Date(copy.asOf ?? now);
  const frame = { businessDays: calendar.businessDays, judgedAt: at, staleAt: dateOf(staleFrom(copy)), asOf };
  if (!facts.isOpen) return { ...NOTHING_QUIET, ...frame, verdict: "ACTIVE" };
  const outlookAt = outlooksOf(facts, copy.rules);
  const standing = outlookAt(now);
  const reasons = shown(reasonsAt({ ...standing, facts, copy, now }), copy, now);
  if (isStale(copy, now)) return { ...NOTHING_QUIET, ...frame, verdict: "UNKNOWN", reasons };
  const { verdict, since } = verdictAt(standing, now);
  const next = scheduleOf(facts, copy.rules, now, outlookAt).find((phase) => phase.verdict !== verdict);
  return {
    ...frame,
    verdict,
    reasons,
    quietSince: dateOf(since?.at),
    quietSinceDay: dateOf(since?.day),
    quietDays: since && daysBetween(calendar, since.at, now),
    nextChangeAt: dateOf(next?.from),
  };
}

/** Of a deal that left the copy while it was asked for. */
export function nothingKnown(now: Date): QuietSignal {
  return { ...NOTHING_QUIET, verdict: "UNKNOWN", businessDays: false, judgedAt: now, staleAt: null, asOf: now };
}

const NOTHING_QUIET = {
  reasons: [],
  quietSince: null,
  quietSinceDay: null,
  quietDays: null,
  nextChangeAt: null,
} as const;

const dateOf = (at: number | null | undefined) => (at == null ? null : new Date(at));

const shown = (reasons: readonly HeldReason[], { rules }: ConnectionFacts, now: number): QuietSignal["reasons"] =>
  reasons.map((reason) => {
    const { code, since, thresholdDays, touches, evidence } = reason;
    const [from, message] = [dateOf(since), messageOf(reason, rules.calendar, now)];
    return { code, since: from, sinceDay: dateOf(touches[0]?.day), thresholdDays, evidence, message };
  });

interface Words {
  /** Whole days since the reason's `since`, and those after which it holds. */
  passed: string;
  threshold: string;
  /** The contact that counted; null: there was none since the deal was added. */
  contact: string | null;
  /** Our word behind it, and how long ago it was. */
  ours: string;
  /** How often the close date was moved later, since which day, and since which one that would have been seen. */
  moved: { times: string; since: string; watchedSince: string };
}

/** They say what was compared and no more: what no CRM and no meeting shows may have happened all the same. */
const MESSAGES: Record<QuietReasonCode, (words: Words) => string> = {
  NO_RECENT_ACTIVITY: ({ passed, threshold, contact }) =>
    `${contact ? `The last known contact, ${contact}, was ${passed} ago` : `No contact is known since the deal was added ${passed} ago`}; from ${threshold} on a deal counts as quiet.`,
  GHOSTED: ({ passed, contact, ours }) =>
    `The buyer's last known word, ${contact}, was ${passed} ago, and no answer is known to ${ours}.`,
  NEVER_REPLIED: ({ passed, contact }) =>
    `No answer of the buyer is known since our first known word, ${contact}, ${passed} ago.`,
  NO_NEXT_STEP: ({ passed, contact }) =>
    `No next step is planned, and ${contact ? `the last known contact, ${contact}, was ${passed} ago` : `no contact is known since the deal was added ${passed} ago`}.`,
  NEXT_STEP_OVERDUE: ({ passed }) => `The planned next step is ${passed} overdue, and nothing is planned ahead.`,
  STALLED_IN_STAGE: ({ passed }) => `The deal has been in its stage for ${passed}.`,
  CRM_ROTTEN: ({ passed, threshold }) =>
    `Apart from this service's own writes the CRM shows no change of the deal for ${passed}; in this stage it rots after ${threshold}.`,
  CLOSE_DATE_PASSED: () => "The expected close date has passed, and the deal is still open.",
  CLOSE_DATE_PUSHED: ({ moved: { times, since, watchedSince } }) =>
    `The expected close date was moved later ${times} since ${since}, as seen by the syncs since ${watchedSince}.`,
  OWNER_INACTIVE: () => "The owner of the deal is no longer active in the CRM.",
  DATA_STALE: () => "The data from the CRM is more than a day old, so nothing can be said about this deal.",
  DATA_INCOMPLETE: () =>
    "Participants or activities of this deal could not be read, or were not read yet, so contacts may be missing.",
};

/** Before activities and persons were read there is no data that could be old. */
const NEVER_READ = "The data from the CRM has not been read completely yet, so nothing can be said about this deal.";

const KNOWN_TYPES = new Map([
  ["call", "a call"],
  ["meeting", "a meeting in the CRM"],
  ["lunch", "a lunch"],
  ["email", "an e-mail that was logged"],
  ["task", "a task"],
  ["deadline", "a deadline"],
]);

function nameOf({ kind, activityType }: Touch): string | null {
  switch (kind) {
    case "INCOMING_MAIL":
      return "a mail from the buyer";
    case "OUTGOING_MAIL":
      return "a mail to the buyer";
    case "NOTE":
      return "a note";
    case "MEETING":
      return "a recorded meeting";
    case "ACTIVITY":
      return KNOWN_TYPES.get(activityType ?? "") ?? "an activity";
    default:
      return null;
  }
}

const counted = (count: number, unit: string) => (count === 1 ? `1 ${unit}` : `${count} ${unit}s`);

const NOT_MOVED = { times: "", since: "", watchedSince: "" };

function messageOf(
  { code, since, thresholdDays, touches, moves }: HeldReason,
  { zone, ...rest }: Calendar,
  now: number,
): string {
  if (code === "DATA_STALE" && since === null) return NEVER_READ;
  // The CRM's own days are no business days.
  const calendar = { zone, businessDays: rest.businessDays && code !== "CRM_ROTTEN" };
  const days = (count: number) => counted(count, calendar.businessDays ? "business day" : "day");
  const ago = (at: number | null) => days(at === null ? 0 : daysBetween(calendar, at, now));
  const day = (at: number | null | undefined) => dayOf(calendar, at ?? now);
  const [contact, ours] = touches;
  return MESSAGES[code]({
    passed: ago(since),
    threshold: days(thresholdDays ?? 0),
    contact: contact ? nameOf(contact) : null,
    ours: ours ? `our last, ${nameOf(ours)} ${ago(ours.at)} ago` : "",
    moved: moves
      ? { times: counted(moves.times, "time"), since: day(since), watchedSince: day(moves.watchedSince) }
      : NOT_MOVED,
  });
}

/** The latest contact of a deal; `meetingId` where it was a recorded meeting, which counts at its end. */
export interface LastInteraction {
  kind: ContactKind | "MEETING";
  at: number;
  /** Of an activity: midnight in UTC of its day, where that begins then and has no time. */
  day: number | null;
  /** The person of a mail, the done activity, or the note; null for a meeting. */
  crmId: number | null;
  meetingId: string | null;
}

/** null where nothing is known of any contact. */
export function lastInteraction({ facts, copy, now }: Judged): LastInteraction | null {
  const { contacts, meetings } = facts;
  const held = meetings.filter(({ withBuyer, endsAt }) => withBuyer && endsAt <= now.getTime());
  const every: LastInteraction[] = [
    ...held.map(({ meetingId, endsAt: at }) => ({ kind: "MEETING" as const, at, day: null, crmId: null, meetingId })),
    ...contacts.map((contact) => ({ ...contact, ...momentOf(contact, copy.rules.calendar), meetingId: null })),
  ];
  return every.sort((a, b) => b.at - a.at)[0] ?? null;
}
