import { LRUCache } from "lru-cache";
import { PAID_BY_NOBODY, type Payment, type Reservation } from "../crm/calls";
import { BudgetLowError } from "../crm/errors";
import type { Database } from "../database/database";
import type { Shape } from "../database/rows";
import { type Clock, MINUTE_MS } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import * as rules from "./budget-rules";
import { ConnectionGoneError, NOT_CONNECTED } from "./connection";
import { boundOf } from "./visibility";

/** Companies whose rows a process keeps in mind; one that is forgotten is read again. */
const MOST_COMPANIES = 10_000;

export interface BudgetParts {
  database: Database;
  clock: Clock;
  logger: Logger;
  /** The part of a company's tokens of a day that syncs may spend: 0 to 1. */
  share: number;
  metrics?: Metrics;
}

/** A reservation of tokens that are set aside a batch at a time. */
export interface HeldReservation extends Reservation {
  /** At the end of the work: what is left of the batch goes back. */
  release(): Promise<void>;
}

/** So many at most are set aside for announced calls: what others say of the company is heard when these are spent. */
const MOST_TOGETHER = 250;

/** As the API shows it. */
export interface BudgetView {
  limit: number | null;
  remaining: number | null;
  spentToday: number;
  allowance: number;
  resetsAt: Date | null;
}

/** What each company of the CRM may spend, over all processes and all tenants that have connected it (decision 0072). */
export class Budget {
  readonly #companies = new LRUCache<string, number>({ max: MOST_COMPANIES });
  readonly #ledgers = new LRUCache<number, CompanyLedger>({ max: MOST_COMPANIES });

  constructor(private readonly parts: BudgetParts) {}

  /** @throws ConnectionGoneError from `spend`, where the copy is deleted */
  reservation(tenantId: number, copyId: number, purpose: rules.Purpose): HeldReservation {
    return new CompanyReservation(() => this.#ledgerOf(tenantId, copyId), purpose, this.parts);
  }

  /** Tokens that may be spent on a purpose now; infinite for writes, and 0 where only a look may be taken. */
  async left(tenantId: number, copyId: number, purpose: rules.Purpose, now: Date): Promise<number> {
    const state = await this.#read(tenantId, copyId, now);
    return rules.leftFor(state ?? rules.newBudget(now), purpose, this.parts.share, now);
  }

  /** Whether there are tokens to read lists of fields more often than hourly; not where the copy is deleted, as who reads them will hear. */
  async mayReadFields(tenantId: number, copyId: number, now: Date): Promise<boolean> {
    try {
      const state = await this.#read(tenantId, copyId, now);
      return rules.mayReadFields(state ?? rules.newBudget(now));
    } catch (error) {
      if (error instanceof ConnectionGoneError) return false;
      throw error;
    }
  }

  /** From when on so many tokens may be spent on a purpose, or a look be taken for them; null: now. */
  async shortUntil(
    tenantId: number,
    copyId: number,
    purpose: rules.Purpose,
    price: number,
    now: Date,
  ): Promise<Date | null> {
    const state = await this.#read(tenantId, copyId, now);
    const spending = rules.spend(state ?? rules.newBudget(now), purpose, price, this.parts.share, now);
    return "granted" in spending ? null : spending.retryAt;
  }

  /** null while nothing was asked of the company. */
  async view(tenantId: number, copyId: number, now: Date): Promise<BudgetView | null> {
    const state = await this.#read(tenantId, copyId, now);
    return (
      state && {
        limit: state.dailyLimit,
        remaining: rules.balanceOf(state),
        spentToday: rules.spentOf(state),
        allowance: rules.allowanceOf(state, this.parts.share),
        resetsAt: state.resetSeen ? rules.dayEndsAt(state) : null,
      }
    );
  }

  async close(): Promise<void> {
    for (const ledger of this.#ledgers.values()) await ledger.stored();
  }

  async #read(tenantId: number, copyId: number, now: Date): Promise<rules.BudgetState | null> {
    return readBudget(this.parts.database, await this.#companyOf(tenantId, copyId), now);
  }

  async #ledgerOf(tenantId: number, copyId: number): Promise<CompanyLedger> {
    const companyId = await this.#companyOf(tenantId, copyId);
    const ledger = this.#ledgers.get(companyId) ?? new CompanyLedger(companyId, this.parts);
    this.#ledgers.set(companyId, ledger);
    return ledger;
  }

  /** A copy is of one company for ever. */
  async #companyOf(tenantId: number, copyId: number): Promise<number> {
    const name = `${tenantId}/${copyId}`;
    const known = this.#companies.get(name);
    if (known !== undefined) return known;
    const bound = await boundOf(this.parts.database.tenant(tenantId), copyId);
    if (!bound) throw new ConnectionGoneError(NOT_CONNECTED.message);
    this.#companies.set(name, bound.companyId);
    return bound.companyId;
  }
}

class CompanyReservation implements HeldReservation {
  #inHand = 0;
  /** What calls that were announced will still cost: they are paid for together, rather than one batch after another. */
  #expected = 0;
  /** In which the tokens in hand were set aside; those of a day that is over are gone. */
  #day = new Date(0);
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly ledgerOf: () => Promise<CompanyLedger>,
    private readonly purpose: rules.Purpose,
    private readonly parts: BudgetParts,
  ) {}

  /** One after another, so that requests that begin together set one batch aside. */
  spend(price: number): Promise<Payment> {
    const paid = this.#turn.then(() => this.#spend(price));
    this.#turn = paid.catch(() => undefined);
    return this.purpose === "WRITES" ? paid.catch((error: unknown) => this.#unnoted(error)) : paid;
  }

  expect(price: number): void {
    this.#expected += price;
  }

  async release(): Promise<void> {
    this.#expected = 0;
    const ledger = await this.ledgerOf();
    const [tokens, day] = [this.#inHand, this.#day];
    this.#inHand = 0;
    if (tokens === 0) return ledger.stored();
    await ledger.change((state) => ({ state: rules.givenBack(state, this.purpose, tokens, day), result: null }));
  }

  async #spend(price: number): Promise<Payment> {
    const ledger = await this.ledgerOf();
    if (!this.#takeFromHand(ledger.known(), price)) await this.#setAside(ledger, price);
    this.#expected = Math.max(0, this.#expected - price);
    const { purpose } = this;
    const { dayBeganAt: day, remaining: before } = ledger.known();
    const sentAt = this.parts.clock();
    return {
      answered: ({ status, limit, day: told }) => {
        this.parts.metrics?.crmTokens.inc({ purpose }, price);
        // These alone: what is told waits to be stored, and the answer's records are not to wait with it.
        const answer = { status, limit, day: told };
        ledger.tell({ answer, purpose, price, sentAt, day, before, at: this.parts.clock() });
        // Nobody ends a single call: what it was told would wait for the next one.
        if (purpose === "WRITES") void ledger.stored();
      },
      unsent: () => {
        if (!isSame(day, this.#day)) return;
        this.#inHand += price;
        if (purpose === "WRITES") this.release().catch((error: unknown) => this.#unnoted(error));
      },
    };
  }

  #takeFromHand(known: rules.BudgetState, price: number): boolean {
    if (!isSame(known.dayBeganAt, this.#day)) this.#inHand = 0;
    if (this.#inHand < price || !rules.mayGoOn(known, this.purpose)) return false;
    this.#inHand -= price;
    return true;
  }

  async #setAside(ledger: CompanyLedger, price: number): Promise<void> {
    const { share } = this.parts;
    const spending = await ledger.change((state, now) => {
      const result = rules.spend(state, this.purpose, price, share, now, Math.min(this.#expected, MOST_TOGETHER));
      return { state: "granted" in result ? result.state : null, result };
    });
    if (!("granted" in spending)) throw new BudgetLowError(spending.retryAt);
    const day = spending.state.dayBeganAt;
    if (!isSame(day, this.#day)) this.#inHand = 0;
    this.#day = day;
    this.#inHand += spending.granted - price;
  }

  /** A user's write is worth more than the count of its tokens. */
  #unnoted(error: unknown): Payment {
    this.parts.logger.warn({ err: error }, "a write's tokens were not counted");
    return PAID_BY_NOBODY;
  }
}

const isSame = (one: Date, other: Date) => one.getTime() === other.getTime();

/** Each time it is lost, another process has changed the row; one of them always gets on. */
const MOST_ATTEMPTS = 1_000;
/** What an answer says of the balance is stored with the next tokens that are set aside, and after this in any case. */
const TOLD_WITHIN_MS = MINUTE_MS;

const TOLD_TODAY = "b.day_began_at > now() - interval '1 day' AND b.told_at >= b.day_began_at";

/** Rows `b` of companies of which `isShort` is true, as far as the row knows of its day. */
export const SHORT_TODAY = `b.day_began_at > now() - interval '1 day' AND (b.limited_at IS NOT NULL
  OR (b.told_at >= b.day_began_at AND b.remaining < coalesce(b.daily_limit, ${rules.SMALLEST_LIMIT}) * ${rules.FLOOR}))`;

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

type Versioned = rules.BudgetState & { revision: number };

const STATE: Shape<rules.BudgetState> = {
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
};
const isOfState = (name: string): name is keyof rules.BudgetState => name in STATE;
const STORED = Object.keys(STATE).filter(isOfState);
const columnOf = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const READ = `SELECT ${STORED.map((name) => `${columnOf(name)} AS "${name}"`)}, revision
  FROM crm_budget WHERE crm_company_id = $1`;
const SHAPE: Shape<Versioned> = { ...STATE, revision: "number" };
const MAKE = `INSERT INTO crm_budget (crm_company_id, day_began_at) VALUES ($1, $2) ON CONFLICT (crm_company_id) DO NOTHING`;
const CHANGE = `UPDATE crm_budget SET ${STORED.map((name, at) => `${columnOf(name)} = $${at + 3}`)}, revision = revision + 1
  WHERE crm_company_id = $1 AND revision = $2 RETURNING revision`;

/** A state to be stored, and what it means to the caller; no state: the caller gets what it asked for, and nothing changes. */
interface Change<T> {
  state: rules.BudgetState | null;
  result: T;
}

/** What is known of a company; null where nothing was ever asked of it. */
async function readBudget(database: Database, companyId: number, now: Date): Promise<rules.BudgetState | null> {
  const [row] = await database.acrossTenants(READ, [companyId], SHAPE);
  return row ? rules.presentDay(row, now) : null;
}

/**
 * A company's row as this process knows it. The row is decided about here and stored if it is still what was decided about,
 * so that processes and tenants may spend at once and none of it is lost.
 */
class CompanyLedger {
  #row: Versioned | null = null;
  /** Others have changed it: until it is read again it says what is known all the same. */
  #isStale = false;
  /** Answers that are not stored yet. */
  #told: rules.Told[] = [];
  /** What a row became by the first of them: each is counted once, however often it is asked what is known. */
  #counted: { row: rules.BudgetState; answers: number; state: rules.BudgetState } | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly companyId: number,
    private readonly parts: { database: Database; clock: Clock; logger: Logger },
  ) {}

  /** Known without asking the database; another process may know more. */
  known(): rules.BudgetState {
    return this.#as(this.#row ?? rules.newBudget(this.parts.clock()));
  }

  /** One change at a time, in this process. @param decide may be asked again, with what another process has made of the row */
  change<T>(decide: (state: rules.BudgetState, now: Date) => Change<T>): Promise<T> {
    const changed = this.#turn.then(() => this.#change(decide));
    this.#turn = changed.catch(() => undefined);
    return changed;
  }

  /** Counts at once in this process. Others are told with the next change, or now where they must not go on. */
  tell(answered: rules.Told): void {
    const { status, day } = answered.answer;
    const before = this.known();
    const saysNothing = day.limit === null && day.remaining === null && status !== 429 && before.limitedAt === null;
    if (saysNothing) return;
    this.#told.push(answered);
    const after = this.known();
    const isNews =
      rules.isShort(before) !== rules.isShort(after) ||
      !isSame(before.dayBeganAt, after.dayBeganAt) ||
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

  #as(row: rules.BudgetState): rules.BudgetState {
    const present = rules.presentDay(row, this.parts.clock());
    const before = this.#counted?.row === present ? this.#counted : { answers: 0, state: present };
    const state = this.#told.slice(before.answers).reduce(rules.told, before.state);
    this.#counted = { row: present, answers: this.#told.length, state };
    return state;
  }

  async #change<T>(decide: (state: rules.BudgetState, now: Date) => Change<T>): Promise<T> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      const remembered = this.#isStale ? null : this.#row;
      const row = remembered ?? (await this.#read());
      this.#row = row;
      this.#isStale = false;
      const heard = this.#told.length;
      const { state, result } = decide(this.#as(row), this.parts.clock());
      if (state === null && !remembered) return result;
      if (state !== null && (await this.#stored(row, state))) {
        if (!isSame(row.dayBeganAt, state.dayBeganAt)) this.#tellOver(row);
        this.#told.splice(0, heard);
        this.#counted = null;
        return result;
      }
      // Others have changed it; or it refuses, and whether it still does is asked of the row itself.
      this.#isStale = true;
    }
    throw new Error("the row of a company's budget was changed by others each time");
  }

  /** The row is the next day's from now on. Whoever has changed it to that comes here, and no other process. */
  #tellOver({ revision: _, ...day }: Versioned): void {
    this.parts.logger.info({ companyId: this.companyId, ...day }, "a company's day of tokens is over");
  }

  async #stored({ revision }: Versioned, state: rules.BudgetState): Promise<boolean> {
    const [stored] = await this.parts.database.acrossTenants<{ revision: number }>(
      CHANGE,
      [this.companyId, revision, ...STORED.map((name) => state[name])],
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
