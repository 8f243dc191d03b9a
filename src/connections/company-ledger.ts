import type { Database } from "../database/database";
import type { Shape } from "../database/reads";
import type { Clock } from "../platform/clock";
import { MINUTE_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import {
  type BudgetState,
  FLOOR,
  isShort,
  newBudget,
  presentDay,
  SMALLEST_LIMIT,
  type Told,
  told,
} from "./budget-rules";

/** Each time it is lost, another process has changed the row; one of them always gets on. */
const MOST_ATTEMPTS = 1_000;
/** What an answer says of the balance is stored with the next tokens that are set aside, and after this in any case. */
const TOLD_WITHIN_MS = MINUTE_MS;

const TOLD_TODAY = "b.day_began_at > now() - interval '1 day' AND b.told_at >= b.day_began_at";

/** Rows `b` of companies of which `isShort` is true, as far as the row knows of its day. */
export const SHORT_TODAY = `b.day_began_at > now() - interval '1 day' AND (b.limited_at IS NOT NULL
  OR (b.told_at >= b.day_began_at AND b.remaining < coalesce(b.daily_limit, ${SMALLEST_LIMIT}) * ${FLOOR}))`;

/** What companies have together that the CRM has told of today, and how many are short. */
export interface BudgetTotals {
  short: number;
  limit: number;
  remaining: number;
}

export async function readBudgetTotals(database: Database): Promise<BudgetTotals> {
  const [totals] = await database.acrossTenants<BudgetTotals>(
    `SELECT count(*) FILTER (WHERE ${SHORT_TODAY})::int AS short,
       coalesce(sum(b.daily_limit) FILTER (WHERE ${TOLD_TODAY}), 0)::float8 AS "limit",
       coalesce(sum(b.remaining) FILTER (WHERE ${TOLD_TODAY}), 0)::float8 AS remaining FROM crm_budget b`,
    [],
    { short: "number", limit: "number", remaining: "number" },
  );
  return totals ?? { short: 0, limit: 0, remaining: 0 };
}

type Versioned = BudgetState & { revision: number };

const COLUMNS = `day_began_at AS "dayBeganAt", reset_seen AS "resetSeen", daily_limit AS "dailyLimit", remaining,
  told_at AS "toldAt", spent_on_syncs AS "spentOnSyncs", spent_on_meetings AS "spentOnMeetings",
  spent_on_writes AS "spentOnWrites", looked_at AS "lookedAt", limited_at AS "limitedAt", revision`;
const SHAPE: Shape<Versioned> = {
  dayBeganAt: "instant",
  resetSeen: "flag",
  dailyLimit: "number",
  remaining: "number",
  toldAt: "instant",
  spentOnSyncs: "number",
  spentOnMeetings: "number",
  spentOnWrites: "number",
  lookedAt: "instant",
  limitedAt: "instant",
  revision: "number",
};
const READ = `SELECT ${COLUMNS} FROM crm_budget WHERE crm_company_id = $1`;
const MAKE = `INSERT INTO crm_budget (crm_company_id, day_began_at) VALUES ($1, $2) ON CONFLICT (crm_company_id) DO NOTHING`;
const CHANGE = `UPDATE crm_budget SET day_began_at = $3, reset_seen = $4, daily_limit = $5, remaining = $6, told_at = $7,
    spent_on_syncs = $8, spent_on_meetings = $9, spent_on_writes = $10, looked_at = $11, limited_at = $12,
    revision = revision + 1
  WHERE crm_company_id = $1 AND revision = $2 RETURNING revision`;

/** A state to be stored, and what it means to the caller; no state: the caller gets what it asked for, and nothing changes. */
export interface Change<T> {
  state: BudgetState | null;
  result: T;
}

/** What is known of a company; null where nothing was ever asked of it. */
export async function readBudget(database: Database, companyId: number, now: Date): Promise<BudgetState | null> {
  const [row] = await database.acrossTenants(READ, [companyId], SHAPE);
  return row ? presentDay(row, now) : null;
}

/**
 * A company's row as this process knows it. The row is decided about here and stored if it is still what was decided about,
 * so that processes and tenants may spend at once and none of it is lost.
 */
export class CompanyLedger {
  #row: Versioned | null = null;
  /** Others have changed it: until it is read again it says what is known all the same. */
  #isStale = false;
  /** Answers that are not stored yet. */
  #told: Told[] = [];
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly companyId: number,
    private readonly parts: { database: Database; clock: Clock; logger: Logger },
  ) {}

  /** Known without asking the database; another process may know more. */
  known(): BudgetState {
    return this.#as(this.#row ?? newBudget(this.parts.clock()));
  }

  /** One change at a time, in this process. @param decide may be asked again, with what another process has made of the row */
  change<T>(decide: (state: BudgetState, now: Date) => Change<T>): Promise<T> {
    const changed = this.#turn.then(() => this.#change(decide));
    this.#turn = changed.catch(() => undefined);
    return changed;
  }

  /** Counts at once in this process. Others are told with the next change, or now where they must not go on. */
  tell(answered: Told): void {
    const { status, day } = answered.answer;
    const before = this.known();
    const saysNothing = day.limit === null && day.remaining === null && status !== 429 && before.limitedAt === null;
    if (saysNothing) return;
    this.#told.push(answered);
    const after = this.known();
    const isNews =
      isShort(before) !== isShort(after) ||
      before.dayBeganAt.getTime() !== after.dayBeganAt.getTime() ||
      before.dailyLimit !== after.dailyLimit;
    const storedAt = this.#row?.toldAt?.getTime() ?? 0;
    if (isNews || answered.at.getTime() - storedAt > TOLD_WITHIN_MS) void this.stored();
  }

  /** Stores what was told. What cannot be stored now is with the next change. */
  async stored(): Promise<void> {
    if (this.#told.length > 0) {
      await this.change((state) => ({ state, result: null })).catch((error: unknown) =>
        this.parts.logger.warn({ err: error }, "what the CRM said of a company's tokens could not be stored"),
      );
    }
    await this.#turn;
  }

  #as(row: BudgetState): BudgetState {
    return this.#told.reduce(told, presentDay(row, this.parts.clock()));
  }

  async #change<T>(decide: (state: BudgetState, now: Date) => Change<T>): Promise<T> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      const remembered = this.#isStale ? null : this.#row;
      const row = remembered ?? (await this.#read());
      this.#row = row;
      this.#isStale = false;
      const heard = this.#told.length;
      const { state, result } = decide(this.#as(row), this.parts.clock());
      if (state === null && !remembered) return result;
      if (state !== null && (await this.#stored(row, state))) {
        this.#told.splice(0, heard);
        return result;
      }
      // Others have changed it; or it refuses, and whether it still does is asked of the row itself.
      this.#isStale = true;
    }
    throw new Error("the row of a company's budget was changed by others each time");
  }

  async #stored({ revision }: Versioned, state: BudgetState): Promise<boolean> {
    const { dayBeganAt, resetSeen, dailyLimit, remaining, toldAt, lookedAt, limitedAt } = state;
    const { spentOnSyncs, spentOnMeetings, spentOnWrites } = state;
    const [stored] = await this.parts.database.acrossTenants<{ revision: number }>(
      CHANGE,
      [
        this.companyId,
        revision,
        dayBeganAt,
        resetSeen,
        dailyLimit,
        remaining,
        toldAt,
        spentOnSyncs,
        spentOnMeetings,
        spentOnWrites,
        lookedAt,
        limitedAt,
      ],
      { revision: "number" },
    );
    if (stored) this.#row = { ...state, revision: stored.revision };
    return stored !== undefined;
  }

  async #read(): Promise<Versioned> {
    const { database, clock } = this.parts;
    const read = () => database.acrossTenants(READ, [this.companyId], SHAPE);
    const [row] = await read();
    if (row) return row;
    await database.acrossTenants(MAKE, [this.companyId, clock()]);
    const [made] = await read();
    if (!made) throw new Error("the row of a company's budget that was just made is missing");
    return made;
  }
}
