import { daysBetween } from "../../platform/clock";
import type { CopyFacts, DealFacts, QuietSignal } from "./facts";
import { messageOf } from "./messages";
import { Firing, firingsAt, isStale, staleFrom } from "./rules";
import { scheduleOf, standingAt, verdictAt } from "./verdict";

/**
 * Whether a deal has gone quiet, at an instant. Pure: the same facts at the same instant give the same answer, in
 * whatever order they come. The rules are in decision 0078.
 */
export function judge(facts: DealFacts, copy: CopyFacts, at: Date): QuietSignal {
  const now = at.getTime();
  const frame = { judgedAt: at, staleAt: dateOf(staleFrom(copy)), asOf: new Date(copy.asOf ?? now) };
  if (!facts.isOpen) return { ...NOTHING_QUIET, ...frame, verdict: "ACTIVE" };
  const standing = standingAt(facts, copy.rules, now);
  const reasons = shown(firingsAt({ ...standing, facts, copy, now }), copy, now);
  if (isStale(copy, now)) return { ...NOTHING_QUIET, ...frame, verdict: "UNKNOWN", reasons };
  const { verdict, since } = verdictAt(standing, now);
  const next = scheduleOf(facts, copy.rules, now).find((phase) => phase.verdict !== verdict);
  return {
    ...frame,
    verdict,
    reasons,
    quietSince: dateOf(since),
    quietDays: since === null ? null : daysBetween(copy.rules.calendar, since, now),
    nextChangeAt: dateOf(next?.from ?? null),
  };
}

/** Of a deal that left the copy while it was asked for. */
export function nothingKnown(now: Date): QuietSignal {
  return { ...NOTHING_QUIET, verdict: "UNKNOWN", judgedAt: now, staleAt: null, asOf: now };
}

const NOTHING_QUIET = { reasons: [], quietSince: null, quietDays: null, nextChangeAt: null } as const;

const dateOf = (at: number | null) => (at === null ? null : new Date(at));

const shown = (firings: readonly Firing[], { rules }: CopyFacts, now: number): QuietSignal["reasons"] =>
  firings.map((firing) => {
    const { code, since, thresholdDays, evidence } = firing;
    return { code, since: dateOf(since), thresholdDays, evidence, message: messageOf(firing, rules.calendar, now) };
  });
