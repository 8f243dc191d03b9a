import { setTimeout as sleep } from "node:timers/promises";
import { holdLiveCopy, tryToHoldCopyToJudge } from "../../connections/copies";
import type { CopyScope, Database } from "../../database/database";
import { jsonRows } from "../../database/upsert";
import type { Clock } from "../../platform/clock";
import type { Logger } from "../../platform/logger";
import { forEachLogged } from "../../platform/work";
import { readFreshness } from "./read-quiet";
import { staleFrom } from "./rules";
import { HELD } from "./silence-rows";
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
      `SELECT s.holds_from AS at FROM deal_silence s WHERE NOT s.is_told AND ${IS_HELD} ORDER BY s.holds_from LIMIT 1`,
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
       FROM (SELECT s.tenant_id, s.copy_id, s.deal_id, s.phase FROM deal_silence s WHERE NOT s.is_told AND s.holds_from <= $1
             AND s.copy_id <> ALL ($2) AND ${IS_HELD} ORDER BY s.holds_from LIMIT ${BATCH}) due
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
      if ((await scope.rows(IS_WALKED, [tenantId, copyId])).length > 0) return 0;
      const claimed = await scope.rows<Claimed>(CLAIM, [tenantId, copyId, now, jsonRows(phases)], CLAIMED);
      // Nobody reads a retired copy, which is being purged.
      if (!live || claimed.length === 0) return claimed.length;
      const copy = { ...scope, copyId };
      await tellClaimed(copy, claimed, now);
      // Where somebody judges the copy at this moment, lists look these deals up until the next boundary, or run.
      if (await tryToHoldCopyToJudge(scope, copyId)) await markHolding(copy, now);
      return claimed.length;
    });
  }
}

type Claimed = Omit<Flip, "at"> & { at: Date; isHeld: boolean };
const CLAIMED = { dealId: "number", from: "text", to: "text", at: "instant", isHeld: "flag" } as const;

/**
 * SQL: a row where other settings may take their place at this moment: by those, what is claimed here would be told once
 * more. Whoever does that tells of it. Until the transaction ends nobody else begins to.
 */
const IS_WALKED = `SELECT 1 AS walked FROM judged_copy j WHERE j.tenant_id = $1 AND j.copy_id = $2 AND NOT EXISTS (
  SELECT 1 FROM judged_copy f WHERE f.tenant_id = $1 AND f.copy_id = $2 FOR SHARE SKIP LOCKED)`;

/** SQL of phases `s` of whatever tenants: those by which answers count. Compared with each, so that the index gives their order. */
const IS_HELD = `s.generation = coalesce((SELECT j.generation FROM judged_copy j
  WHERE j.tenant_id = s.tenant_id AND j.copy_id = s.copy_id), 0)`;

/**
 * Each looked up by its key: joined, a copy that no statistics know was read whole for each of them.
 * @param phases SQL: phases `s`, which are locked
 */
const claimOf = (phases: string) => `
  WITH begun AS (
    SELECT s.*, (SELECT b.verdict FROM deal_silence b WHERE b.tenant_id = $1 AND b.copy_id = $2 AND b.deal_id = s.deal_id
      AND b.generation = s.generation AND b.phase = s.phase - 1) AS verdict FROM (${phases}) s)
  UPDATE deal_silence s SET is_told = true FROM begun
  WHERE s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id = ANY (ARRAY (SELECT one.deal_id FROM begun one))
    AND s.deal_id = begun.deal_id AND s.generation = begun.generation AND s.phase = begun.phase
  RETURNING s.deal_id AS "dealId", begun.verdict AS "from", s.verdict AS "to", s.holds_from AS at, s.generation = ${HELD} AS "isHeld"`;

/** What a transaction has locked is its own: it judges those deals anew, and tells of what has begun until then. */
const CLAIM = claimOf(`
    SELECT s.deal_id, s.generation, s.phase FROM jsonb_to_recordset($4::jsonb) AS r ("dealId" bigint, phase integer)
    JOIN deal_silence s ON s.tenant_id = $1 AND s.copy_id = $2 AND s.deal_id = r."dealId" AND s.phase = r.phase
    WHERE NOT s.is_told AND s.holds_from <= $3 AND s.generation = ${HELD} FOR UPDATE OF s SKIP LOCKED`);

const CLAIM_NEXT = claimOf(`
    SELECT s.deal_id, s.generation, s.phase FROM deal_silence s
    WHERE s.tenant_id = $1 AND s.copy_id = $2 AND NOT s.is_told AND s.holds_from <= $3 ORDER BY s.holds_from LIMIT ${BATCH} FOR UPDATE`);

async function tellClaimed(copy: CopyScope, claimed: readonly Claimed[], now: Date): Promise<void> {
  const flips = claimed.flatMap((flip) => (flip.isHeld ? [{ ...flip, at: flip.at.getTime() }] : []));
  if (flips.length > 0) await tellFlips(copy, flips, staleFrom(await readFreshness(copy)), now);
}

/**
 * Of a copy that the caller holds to judge: what has begun is told, and of other generations counts as told.
 * @returns whether there may be more
 */
export async function tellBegun(copy: CopyScope, now: Date): Promise<boolean> {
  const { tenantId, copyId, rows } = copy;
  const claimed = await rows<Claimed>(CLAIM_NEXT, [tenantId, copyId, now], CLAIMED);
  await tellClaimed(copy, claimed, now);
  return claimed.length === BATCH;
}

/** Exactly until the next boundary, where it is near. */
const waitMs = (next: Date | null, now: Date): number => {
  const ahead = next === null ? 0 : next.getTime() - now.getTime();
  return ahead > 0 ? Math.min(ahead, LOOK_AGAIN_MS) : LOOK_AGAIN_MS;
};
