import { DAY_MS } from "../../platform/clock";
import type { CopyFacts, DealFacts, QuietSignal, QuietVerdict } from "./facts";
import { messageOf } from "./messages";
import { type Firing, firingsAt, isCooling, isNear, isStale, staleFrom, turningPoints } from "./rules";
import { type Situation, situationAt } from "./situation";

const SHOWS_SINCE: ReadonlySet<QuietVerdict> = new Set(["COOLING", "QUIET", "GHOSTED"]);

/**
 * Whether a deal has gone quiet, at an instant. Pure: the same facts at the same instant give the same answer, in
 * whatever order they come. The rules are in decision 0023, and again as SQL in `silence-sql.ts`.
 */
export function judge(facts: DealFacts, copy: CopyFacts, at: Date): QuietSignal {
  const now = at.getTime();
  const { verdict, situation, firings } = judgedAt(facts, copy, now);
  const since = SHOWS_SINCE.has(verdict) ? (situation.lastTouch?.at ?? null) : null;
  const asOf = copy.asOf ?? now;
  return {
    verdict,
    reasons: firings.map((firing) => ({ ...firing, since: dateOf(firing.since), message: messageOf(firing, now) })),
    quietSince: dateOf(since),
    quietDays: since === null ? null : Math.max(0, Math.floor((asOf - since) / DAY_MS)),
    nextChangeAt: dateOf(nextChange(facts, copy, now, verdict)),
    asOf: new Date(asOf),
  };
}

/** Of a deal that left the copy while it was asked for. */
export function nothingKnown(now: Date): QuietSignal {
  return { verdict: "UNKNOWN", reasons: [], quietSince: null, quietDays: null, nextChangeAt: null, asOf: now };
}

const dateOf = (at: number | null) => (at === null ? null : new Date(at));

interface Judged {
  verdict: QuietVerdict;
  situation: Situation;
  firings: Firing[];
}

function judgedAt(facts: DealFacts, copy: CopyFacts, now: number): Judged {
  const situation = situationAt(facts, now);
  if (!facts.isOpen) return { verdict: "ACTIVE", situation, firings: [] };
  const firings = firingsAt(situation, facts, copy, now);
  return { verdict: verdictOf(situation, firings, facts, copy, now), situation, firings };
}

/** The first that fits. */
function verdictOf(
  situation: Situation,
  firings: readonly Firing[],
  facts: DealFacts,
  copy: CopyFacts,
  now: number,
): QuietVerdict {
  const has = (code: Firing["code"]) => firings.some((firing) => firing.code === code);
  const { nextStep } = situation;
  if (isStale(copy, now)) return "UNKNOWN";
  if ((has("GHOSTED") || has("NEVER_REPLIED")) && !nextStep) return "GHOSTED";
  if (has("NO_RECENT_ACTIVITY") && !(nextStep && isNear(nextStep, now))) return "QUIET";
  const cools = isCooling(situation, facts, now) || has("NO_NEXT_STEP") || has("STALLED_IN_STAGE");
  return cools ? "COOLING" : "ACTIVE";
}

function nextChange(facts: DealFacts, copy: CopyFacts, now: number, verdict: QuietVerdict): number | null {
  if (!facts.isOpen || copy.readAt === null) return null;
  // From when the data is stale nothing changes by time alone any more.
  const last = staleFrom(copy.readAt);
  const ahead = turningPoints(facts, copy)
    .filter((at) => at > now && at <= last)
    .sort((a, b) => a - b);
  return ahead.find((at) => judgedAt(facts, copy, at).verdict !== verdict) ?? null;
}
