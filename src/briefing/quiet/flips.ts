import type { CopyScope } from "../../database/database";
import { notifyOf, SILENCE_CHANGED } from "../../database/notifications";
import type { Phase } from "./verdict";

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
 * Tells of flips, with the commit of the transaction that stores them or marks them as told: each one exactly once. Two
 * flips of one deal differ by their instants, for PostgreSQL leaves out a word that is said twice in a transaction.
 */
export async function tellFlips(copy: CopyScope, flips: readonly Flip[]): Promise<void> {
  const inOrder = [...flips].sort((a, b) => a.at - b.at);
  await notifyOf(
    copy,
    SILENCE_CHANGED,
    inOrder.map(({ dealId, at }) => `${dealId}:${at}`),
  );
}

/** The deal of what {@link tellFlips} tells. */
export const flippedDeal = (told: string): number => Number.parseInt(told, 10);
