import { type DealChange, NOT_SEEN, noteWaiting, writeChanges } from "../../connections/journal";
import { notifyOf, SILENCE_CHANGED } from "../../database/between-processes";
import type { CopyScope } from "../../database/database";
import { plusDays } from "../../platform/clock";
import { ANSWER_DAYS, COOLING_PART, type DealFacts, daysOf, type QuietRules, type QuietVerdict } from "./facts";
import { latestAt, type Situation, sideOf, situationsOf, type Touch, turnsOf } from "./situation";

/** From when on each condition of a verdict holds, while the situation stays as it is. */
interface Deadlines {
  quiet: number;
  cooling: number;
  ghosted: number;
  neverReplied: number;
  noNextStep: number;
  stalled: number;
}
/** Behind the year 9999, in which people have things due that shall never be: no text of an instant has room for five digits. */
const NEVER = Date.UTC(10_000, 0);

/** "Longer ago than": instants are whole milliseconds. */
const NEXT_MS = 1;

export interface Outlook {
  situation: Situation;
  deadlines: Deadlines;
}

/** How things stand with a deal, and what is ahead, at any instant. */
export function outlooksOf(facts: DealFacts, rules: QuietRules): (now: number) => Outlook {
  const situationAt = situationsOf(facts, rules);
  return (now) => {
    const situation = situationAt(now);
    return { situation, deadlines: deadlinesOf(situation, facts, rules) };
  };
}

function deadlinesOf(situation: Situation, facts: DealFacts, { calendar }: QuietRules): Deadlines {
  const { inbound, outbound, firstOutbound, lastTouch, nextStep } = situation;
  const after = (at: number | undefined | null, days: number) => (at == null ? NEVER : plusDays(calendar, at, days));
  const silence = daysOf("NO_RECENT_ACTIVITY", facts);
  const isUnanswered = facts.hasMail && inbound !== null && outbound !== null && outbound.at > inbound.at;
  const hasNoReply = facts.hasMail && inbound === null;
  return {
    quiet: after(lastTouch?.at, silence),
    cooling: after(lastTouch?.at, silence * COOLING_PART),
    ghosted: isUnanswered
      ? Math.max(after(inbound.at, daysOf("GHOSTED", facts)), after(outbound.at, ANSWER_DAYS))
      : NEVER,
    neverReplied: hasNoReply ? after(firstOutbound?.at, daysOf("NEVER_REPLIED", facts)) : NEVER,
    noNextStep: nextStep ? NEVER : after(lastTouch?.at, daysOf("NO_NEXT_STEP", facts)) + NEXT_MS,
    stalled: after(facts.inStageSince, daysOf("STALLED_IN_STAGE", facts)),
  };
}

/** Of an open deal whose copy is fresh. */
type LiveVerdict = Exclude<QuietVerdict, "UNKNOWN">;
interface Judged {
  verdict: LiveVerdict;
  /** From what on its silence is counted. */
  since: Touch | null;
}

/** The first that fits. */
export function verdictAt({ situation, deadlines }: Outlook, now: number): Judged {
  const { inbound, firstOutbound, lastTouch, nextStep, isNear } = situation;
  const { quiet, cooling, ghosted, neverReplied, noNextStep, stalled } = deadlines;
  // The buyer's silence, and not that since our own last word.
  if (!nextStep && now >= Math.min(ghosted, neverReplied))
    return { verdict: "GHOSTED", since: inbound ?? firstOutbound };
  if (now >= quiet && !isNear) return { verdict: "QUIET", since: lastTouch };
  if (now >= Math.min(quiet, cooling, noNextStep, stalled)) return { verdict: "COOLING", since: lastTouch };
  return { verdict: "ACTIVE", since: null };
}

/**
 * When a snooze that holds at an instant ends: at its date, or with the buyer's next contact after it was begun. A meeting is
 * one at its end, another when it is known of; on a day without a time it may have been at any hour until it was ticked off.
 */
export function snoozeEnd({ snooze, contacts, meetings }: DealFacts, rules: QuietRules, now: number): number | null {
  if (!snooze) return null;
  const heard = contacts
    .filter((contact) => sideOf(contact, rules) === "BUYERS")
    .map((contact) => latestAt(contact, rules));
  const met = meetings.filter(({ withBuyer }) => withBuyer).map(({ endsAt }) => endsAt);
  if ([...heard, ...met.filter((at) => at <= now)].some((at) => at > snooze.at)) return now;
  return Math.min(snooze.until, ...met.filter((at) => at > now));
}

/** A verdict that holds from an instant on, until the next phase begins. */
export interface Phase {
  from: number;
  verdict: LiveVerdict;
  /** From when its silence is counted. */
  since: number | null;
}

/**
 * The schedule of a deal's silence: what is judged at each instant from one on, if nothing happens and the syncs go on.
 * A situation lasts from one turn to the next; within it each condition is "from its deadline on".
 */
export function scheduleOf(
  facts: DealFacts,
  rules: QuietRules,
  from: number,
  outlookAt = outlooksOf(facts, rules),
): Phase[] {
  if (!facts.isOpen) return [{ from, verdict: "ACTIVE", since: null }];
  const turns = ordered([from, ...turnsOf(facts, rules).filter((at) => at > from && at < NEVER)]);
  const phases: Phase[] = [];
  for (const [index, turn] of turns.entries()) {
    const standing = outlookAt(turn);
    const end = turns[index + 1] ?? NEVER;
    const ahead = Object.values(standing.deadlines).filter((at) => at > turn && at < end);
    for (const at of ordered([turn, ...ahead])) {
      const judged = verdictAt(standing, at);
      const [last, since] = [phases.at(-1), judged.since?.at ?? null];
      if (last?.verdict !== judged.verdict || last.since !== since) phases.push({ ...judged, from: at, since });
    }
  }
  return phases;
}

const ordered = (instants: readonly number[]) => [...new Set(instants)].sort((a, b) => a - b);

/** A deal's stored verdict became another one. */
export interface Flip {
  dealId: number;
  from: Phase["verdict"];
  to: Phase["verdict"];
  at: number;
}

/** A phase of a deal that has begun, as it was stored; the first one has no beginning. */
export interface BegunPhase {
  verdict: Phase["verdict"];
  from: number | null;
  isTold: boolean;
}

/** @property isListed lists had the deal by this phase */
export type TakenPhase = BegunPhase & { isListed: boolean };

/**
 * The flips of a deal that nobody was told of: those that have come with time, and the one to what is judged now. Each
 * begins with the verdict that the one before ended with. None of a deal that is judged for the first time.
 * @param begun in their order
 * @param judged null: what is judged now is told otherwise
 */
export function flipsOf(
  dealId: number,
  begun: readonly BegunPhase[],
  judged: Phase["verdict"] | null,
  now: number,
): Flip[] {
  const steps = judged === null ? begun : [...begun, { verdict: judged, from: now, isTold: false }];
  return steps.flatMap(({ verdict, from, isTold }, index) => {
    const before = steps[index - 1];
    if (!before || isTold || before.verdict === verdict) return [];
    return [{ dealId, from: before.verdict, to: verdict, at: from ?? now }];
  });
}

/**
 * Notes flips in the journal and tells of them, with the commit of the transaction that stores them or marks them as told: each one exactly once. Two
 * flips of one deal differ by their instants, for PostgreSQL leaves out a word that is said twice in a transaction.
 * @param staleFrom from when on each answer is UNKNOWN, and what is told waits to be noted; null: it always was, and what is
 * known first is no change
 */
export async function tellFlips(
  copy: CopyScope,
  flips: readonly Flip[],
  staleFrom: number | null,
  now: Date,
): Promise<void> {
  const inOrder = [...flips].sort((a, b) => a.at - b.at);
  const isSeen = ({ at }: Flip) => staleFrom !== null && at < staleFrom;
  const seen = inOrder.find(isSeen);
  if (seen) await noteWaiting(copy, new Date(seen.at));
  const changes = inOrder.map((flip): DealChange => {
    const { dealId, from, to, at } = flip;
    return { kind: "VERDICT", dealId, was: from, became: to, seenAt: isSeen(flip) ? new Date(at) : NOT_SEEN };
  });
  if (staleFrom !== null) await writeChanges(copy, changes, now);
  await notifyOf(
    copy,
    SILENCE_CHANGED,
    inOrder.map(({ dealId, at }) => `${dealId}:${at}`),
  );
}

/** The deal of what {@link tellFlips} tells. */
export const flippedDeal = (told: string): number => Number.parseInt(told, 10);
