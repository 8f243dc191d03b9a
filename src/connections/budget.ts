import { LRUCache } from "lru-cache";
import { BudgetLowError } from "../crm/errors";
import { PAID_BY_NOBODY, type Payment, type Reservation } from "../crm/prices";
import type { Database } from "../database/database";
import type { Clock } from "../platform/clock";
import type { Logger } from "../platform/logger";
import type { Metrics } from "../platform/metrics";
import * as rules from "./budget-rules";
import { CompanyLedger, readBudget } from "./company-ledger";
import { ConnectionGoneError, NOT_CONNECTED } from "./connection";
import { boundOf } from "./copies";

export type { Purpose } from "./budget-rules";

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

  /** When the company's next day begins, as far as that is known or, where no reset was seen, assumed. */
  async resetsAt(tenantId: number, copyId: number, now: Date): Promise<Date | null> {
    const state = await this.#read(tenantId, copyId, now);
    return state && rules.dayEndsAt(state);
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

  async release(): Promise<void> {
    const ledger = await this.ledgerOf();
    const [tokens, day] = [this.#inHand, this.#day];
    this.#inHand = 0;
    if (tokens === 0) return ledger.stored();
    await ledger.change((state) => ({ state: rules.givenBack(state, this.purpose, tokens, day), result: null }));
  }

  async #spend(price: number): Promise<Payment> {
    const ledger = await this.ledgerOf();
    if (!this.#takeFromHand(ledger.known(), price)) await this.#setAside(ledger, price);
    const { purpose } = this;
    const { dayBeganAt: day, remaining: before } = ledger.known();
    const sentAt = this.parts.clock();
    return {
      answered: (answer) => {
        this.parts.metrics?.crmTokens.inc({ purpose }, price);
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
      const result = rules.spend(state, this.purpose, price, share, now);
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
