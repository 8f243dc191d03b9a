import { setTimeout as sleep } from "node:timers/promises";
import { holdLiveCopy, tryToHoldCopyToJudge } from "../../connections/copies";
import type { Database } from "../../database/database";
import { jsonRows } from "../../database/upsert";
import type { Clock } from "../../platform/clock";
import type { Logger } from "../../platform/logger";
import { forEachLogged } from "../../platform/work";
import { readFreshness } from "./read-quiet";
import { staleFrom } from "./rules";
import { markHolding } from "./stored-silence";
import { type Flip, tellFlips } from "./verdict";

/**
 * So long at most after the last look: a boundary that is stored meanwhile may be the next one, a clock may jump, and no
 * timer takes more than 25 days. Half of the second within which a flip is to be told.
 */
const LOOK_AGAIN_MS = 500;
/** So that a database that is down is not hammered, nor the log filled. */
const AFTER_FAILURE_MS = 5_000;
/** Boundaries that are looked for at once. */
const BATCH = 500;

/** Phases of a copy's deals that have begun. */
interface BegunInCopy {
  tenantId: number;
  copyId: number;
  phases: { dealId: number; phase: number }[];
}

/**
 * Time alone changes verdicts, as the stored schedules say. Any number of workers pass the boundaries: each is claimed by
 * one of them, or by who judges the deal anew, in the transaction that tells of it.
 */
export class Boundaries {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Wakes at each boundary. @returns ends that, when the round in hand has ended */
  start(): () => Promise<void> {
    const stopping = new AbortController();
    const { signal } = stopping;
    const rounds = this.#rounds(signal);
    return async () => {
      stopping.abort();
      await rounds;
    };
  }

  async #rounds(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wait = await this.pass(signal).then(
        (next) => waitMs(next, this.clock()),
        (error: unknown) => {
          this.logger.warn({ err: error }, "boundaries of silence were not passed, and are looked at again");
          return AFTER_FAILURE_MS;
        },
      );
      await sleep(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Tells of what has begun since the last time. @returns the next boundary; null: none is stored */
  async pass(signal?: AbortSignal): Promise<Date | null> {
    // Of these nothing can be claimed just now: those behind them do not wait for it.
    const held = new Set<number>();
    for (;;) {
      const next = await this.#next();
      const isDue = next !== null && next <= this.clock() && !signal?.aborted;
      if (!isDue || !(await this.#passDue(held))) return next;
    }
  }

  /** One look at the end of an index. */
  async #next(): Promise<Date | null> {
    const [found] = await this.database.acrossTenants<{ at: Date | null }>(
      "SELECT min(holds_from) AS at FROM deal_silence WHERE NOT is_told",
      [],
      { at: "instant" },
    );
    return found?.at ?? null;
  }

  /**
   * @param held copies of which nothing could be claimed: another worker, or who judges the deals at this moment, was first
   * @returns whether any was due of the others
   */
  async #passDue(held: Set<number>): Promise<boolean> {
    const now = this.clock();
    const due = await this.database.acrossTenants<BegunInCopy>(
      `SELECT tenant_id AS "tenantId", copy_id AS "copyId", jsonb_agg(jsonb_build_object('dealId', deal_id, 'phase', phase)) AS phases
       FROM (SELECT tenant_id, copy_id, deal_id, phase FROM deal_silence
             WHERE NOT is_told AND holds_from <= $1 AND copy_id <> ALL ($2) ORDER BY holds_from LIMIT ${BATCH}) due
       GROUP BY tenant_id, copy_id`,
      [now, [...held]],
      { tenantId: "number", copyId: "number", phases: "json" },
    );
    const pass = async (begun: BegunInCopy) => {
      held.add(begun.copyId);
      if ((await this.#claim(begun, now)) > 0) held.delete(begun.copyId);
    };
    await forEachLogged(due, pass, this.logger);
    return due.length > 0;
  }

  #claim({ tenantId, copyId, phases }: BegunInCopy, now: Date): Promise<number> {
    return this.database.tenant(tenantId).transaction(async (scope) => {
      // Before any of its deals is locked, so that nobody who holds the copy waits for this.
      const live = await holdLiveCopy(scope, copyId);
      const claimed = await scope.rows<Claimed>(CLAIM, [tenantId, copyId, jsonRows(phases), now], {
        dealId: "number",
        from: "text",
        to: "text",
        at: "instant",
      });
      const flips = claimed.map((flip) => ({ ...flip, at: flip.at.getTime() }));
      // Nobody reads a retired copy, which is being purged.
      if (!live) return flips.length;
      const copy = { ...scope, copyId };
      if (flips.length === 0) return 0;
      await tellFlips(copy, flips, staleFrom(await readFreshness(copy)), now);
      // Where somebody judges the copy at this moment, lists look these deals up until the next boundary, or run.
      if (await tryToHoldCopyToJudge(scope, copyId)) await markHolding(copy, now);
      return flips.length;
    });
  }
}

type Claimed = Omit<Flip, "at"> & { at: Date };

/** What a transaction has locked is its own: it judges those deals anew, and tells of what has begun until then. */
const CLAIM = `
  WITH begun AS (
    SELECT s.deal_id, s.phase, b.verdict
    FROM jsonb_to_recordset($3::jsonb) AS r ("dealId" bigint, phase integer)
    JOIN deal_silence s ON s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id = r."dealId" AND s.phase = r.phase
    JOIN deal_silence b ON b.tenant_id = $1 AND b.copy_id = $2 AND b.deal_id = r."dealId" AND b.phase = r.phase - 1
    WHERE NOT s.is_told AND s.holds_from <= $4 FOR UPDATE OF s SKIP LOCKED)
  UPDATE deal_silence s SET is_told = true FROM begun
  WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id = begun.deal_id AND s.phase = begun.phase
  RETURNING s.deal_id AS "dealId", begun.verdict AS "from", s.verdict AS "to", s.holds_from AS at`;

/** Exactly until the next boundary, where it is near. */
const waitMs = (next: Date | null, now: Date): number => {
  const ahead = next === null ? 0 : next.getTime() - now.getTime();
  return ahead > 0 ? Math.min(ahead, LOOK_AGAIN_MS) : LOOK_AGAIN_MS;
};
