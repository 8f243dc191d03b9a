import type { Actor } from "../auth/actor";
import { recordAudit } from "../auth/policies";
import { liveCopyId, NOT_CONNECTED } from "../connections/connection";
import { holdCopyToJudge } from "../connections/copies";
import type { CopyScope, Database } from "../database/database";
import type { DealRow } from "../entities/deal";
import { type Clock, DAY_MS } from "../platform/clock";
import { accepted, type Outcome, refused } from "../platform/errors";
import type { Logger } from "../platform/logger";
import { readKeptFacts } from "./quiet/read-quiet";
import { snoozedDeals } from "./quiet/silence-rows";
import { judgeDeals, keepSnoozeEnds } from "./quiet/stored-silence";
import { readMatched } from "./records";

/** A deal that sleeps longer than a year is forgotten. */
const MOST_DAYS = 366;

/** A person's wish to hear nothing of a deal's silence until a date. */
export interface SnoozeInput {
  until: Date;
  reason: string;
}

/** A deal by the copy and the id that were given; null where the id is none of a deal of this tenant. */
export type DealRef = { copyId: number; crmId: number } | null;

type Missing = "NOT_CONNECTED" | "DEAL_NOT_FOUND";
export type SnoozeRefusal = Missing | "INVALID_INPUT";

const NO_DEAL = refused(
  "DEAL_NOT_FOUND",
  "There is no such deal among those that are matched to a meeting. Take one from deals.",
  "dealId",
);
const NOT_OPEN = refused(
  "INVALID_INPUT",
  "The deal is won or lost, and so it is not quiet. Only an open deal can be snoozed.",
  "dealId",
);
const PAST = refused("INVALID_INPUT", "until must be in the future; to end a snooze use wakeDeal.", "until");
const TOO_FAR = refused("INVALID_INPUT", `until must be within ${MOST_DAYS} days from now.`, "until");

/**
 * A person says why a deal is quiet, and until when nobody needs to be reminded. Any actor of the tenant may, as any may
 * record a meeting or choose its deal. The CRM is told nothing of it.
 */
export class Snoozing {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Said again alike, while it holds, nothing changes; said otherwise, it is the newest that counts. */
  snooze(actor: Actor, deal: DealRef, { until, reason }: SnoozeInput): Promise<Outcome<DealRow, SnoozeRefusal>> {
    return this.#ofDeal(actor, deal, async (copy, row, now) => {
      if (until <= now) return PAST;
      if (until.getTime() - now.getTime() > MOST_DAYS * DAY_MS) return TOO_FAR;
      if (row.status !== "open") return NOT_OPEN;
      const isSame = row.snoozedUntil?.getTime() === until.getTime() && row.snoozeReason === reason;
      if (isSame && holdsAt(row, now)) return accepted(row);
      await store(copy, row.crmId, { reason, by: actor.userId, at: now, until });
      // Who judges says when it ends: the buyer may be met before its date.
      await judgeDeals(copy, [row.crmId], now);
      await this.#audit(copy, actor, row, now);
      return this.#present(copy, row);
    });
  }

  /** Ends a snooze; without one nothing changes. */
  wake(actor: Actor, deal: DealRef): Promise<Outcome<DealRow, Missing>> {
    return this.#ofDeal(actor, deal, async (copy, row, now) => {
      if (!holdsAt(row, now)) return accepted(row);
      await store(copy, row.crmId, { reason: null, by: null, at: null, until: null });
      await this.#audit(copy, actor, row, now, "TAKEN_BACK");
      return this.#present(copy, row);
    });
  }

  /** Holds the copy for judging, so that of a snooze and the contact that ends it each sees the other. */
  #ofDeal<Code extends string>(
    { tenantId }: Actor,
    deal: DealRef,
    work: (copy: CopyScope, row: DealRow, now: Date) => Promise<Outcome<DealRow, Code>>,
  ): Promise<Outcome<DealRow, Code | Missing>> {
    return this.database.tenant(tenantId).transaction(async (scope) => {
      const copyId = await liveCopyId(scope);
      if (copyId === null || !(await holdCopyToJudge(scope, copyId))) return NOT_CONNECTED;
      const copy = { ...scope, copyId };
      const [row] = deal?.copyId === copyId ? await readMatched(copy, "DEAL", [deal.crmId]) : [];
      return row ? work(copy, row, this.clock()) : NO_DEAL;
    });
  }

  async #present(copy: CopyScope, { crmId }: DealRow) {
    const [row] = await readMatched(copy, "DEAL", [crmId]);
    if (!row) throw new Error("a deal that is held has gone");
    return accepted(row);
  }

  #audit(copy: CopyScope, actor: Actor, { copyId, crmId }: DealRow, at: Date, code?: string): Promise<void> {
    return recordAudit(copy, this.logger, { action: "DEAL_SNOOZED", actor, at, code, subject: `${copyId}:${crmId}` });
  }
}

/** Whether a deal is snoozed at an instant. */
export const holdsAt = ({ snoozeEndsAt }: Pick<DealRow, "snoozeEndsAt">, at: Date): boolean =>
  snoozeEndsAt !== null && snoozeEndsAt > at;

type StoredSnooze =
  | { reason: string; by: string; at: Date; until: Date }
  | Record<"reason" | "by" | "at" | "until", null>;

async function store(
  { tenantId, copyId, rows }: CopyScope,
  dealId: number,
  { reason, by, at, until }: StoredSnooze,
): Promise<void> {
  await rows(
    `UPDATE deal SET snooze_reason = $4, snoozed_by = $5, snoozed_at = $6, snoozed_until = $7, snooze_ends_at = $7
     WHERE tenant_id = $1 AND copy_id = $2 AND crm_id = $3`,
    [tenantId, copyId, dealId, reason, by, at, until],
  );
}

/** Deals judged by one statement. */
const BATCH = 250;

/** By other standards a contact since may be the buyer's, or of a later hour. Snoozed deals are few, and their verdicts stand. */
export async function endSnoozes(copy: CopyScope, now: Date): Promise<void> {
  const { tenantId, copyId, rows } = copy;
  const snoozed = await rows<{ id: number }>(SNOOZED, [tenantId, copyId, now], { id: "number" });
  for (let begin = 0; begin < snoozed.length; begin += BATCH) {
    const ids = snoozed.slice(begin, begin + BATCH).map(({ id }) => id);
    const found = await readKeptFacts(copy, ids, now);
    if (found) await keepSnoozeEnds(copy, found, now);
  }
}
const SNOOZED = `SELECT z.id FROM (${snoozedDeals("$3")}) z (id)`;
