import type { Settings } from "../model/options";

const DAY_MS = 86_400_000;
/** Shown where no budget is set: that of a large company on the highest plan. */
const SHOWN_BUDGET = 2_100_000;

/** What one operation was asked, and what it took. */
export interface Spending {
  requests: number;
  tokens: number;
}

/** What was asked and paid since the start, or since an earlier look. */
export interface Ledger {
  /** Tokens that requests to the simulator took. */
  ours: number;
  /** Tokens that the company's other apps took. */
  others: number;
  /** Requests that the spent budget refused. */
  refused: number;
  /** By method and address, as "GET /api/v2/deals/:id"; requests count from their arrival, whatever becomes of them. */
  operations: Record<string, Spending>;
}

export interface Balance {
  isOver: boolean;
  /** Before the request is paid for, as the wire shows it. */
  left: number;
  headers: Record<string, string>;
}

/**
 * The company's daily budget: shared by all its users and apps, a fixed price for each operation whatever it answers.
 * Known are the prices, and that the balance told is the one before the request. Three guesses: a refusal with a known
 * token (400, 403, 404) and a failure (5xx) cost what the answer would have cost, also where a fault gives them; an unknown
 * token, a request over a limit and what a fault gives else in the CRM's place cost nothing; the first call that cannot be
 * paid ends the day for cheaper ones too.
 */
export class Budget {
  private day: number;
  private dayBegan: Ledger;
  private dayBefore: Ledger;
  private spent = 0;
  private bought = 0;
  private showsHeaders = true;
  private totals = { ours: 0, others: 0, refused: 0 };
  private readonly operations = new Map<string, Spending>();

  constructor(private readonly settings: Pick<Settings, "dailyTokens" | "dayEndsAt" | "now">) {
    this.day = this.present();
    this.dayBegan = this.dayBefore = this.ledger();
  }

  /** A request has arrived. */
  asked(operation: string): void {
    this.startDay();
    this.spendingOn(operation).requests++;
  }

  /** What the balance is before the request. */
  balance(price: number): Balance {
    this.startDay();
    const limit = this.settings.dailyTokens === null ? null : this.settings.dailyTokens + this.bought;
    // Without a budget it must never look like running out.
    const left = limit === null ? SHOWN_BUDGET - (this.spent % (SHOWN_BUDGET / 2)) : limit - this.spent;
    const headers: Record<string, string> = {
      "x-daily-ratelimit-token-limit": String(limit ?? SHOWN_BUDGET),
      "x-daily-ratelimit-token-remaining": String(left),
    };
    return { isOver: price > left, left, headers: this.showsHeaders ? headers : {} };
  }

  pay(operation: string, price: number): void {
    this.spent += price;
    this.totals.ours += price;
    this.spendingOn(operation).tokens += price;
  }

  /** A request could not be paid. */
  refuse(): void {
    if (this.settings.dailyTokens !== null) this.spent = this.settings.dailyTokens + this.bought;
    this.totals.refused++;
  }

  /** Other apps of the company take so many tokens, or as many as are left; says how many. */
  takeForOthers(tokens: number): number {
    const { left } = this.balance(0);
    const taken = this.settings.dailyTokens === null ? tokens : Math.min(tokens, left);
    this.spent += taken;
    this.totals.others += taken;
    return taken;
  }

  /** The company buys more for every day, at once. */
  buy(tokens: number): void {
    this.bought += tokens;
  }

  endDay(): void {
    this.spent = 0;
  }

  showHeaders(isShown: boolean): void {
    this.showsHeaders = isShown;
  }

  ledger(since?: Ledger): Ledger {
    const operations: Record<string, Spending> = {};
    for (const [name, { requests, tokens }] of this.operations) {
      const before = since?.operations[name] ?? { requests: 0, tokens: 0 };
      if (requests === before.requests && tokens === before.tokens) continue;
      operations[name] = { requests: requests - before.requests, tokens: tokens - before.tokens };
    }
    const { ours, others, refused } = this.totals;
    if (!since) return { ours, others, refused, operations };
    return { ours: ours - since.ours, others: others - since.others, refused: refused - since.refused, operations };
  }

  ledgerOfDayBefore(): Ledger {
    this.startDay();
    return this.dayBefore;
  }

  private spendingOn(operation: string): Spending {
    const spending = this.operations.get(operation) ?? { requests: 0, tokens: 0 };
    this.operations.set(operation, spending);
    return spending;
  }

  private present(): number {
    const { dayEndsAt, now } = this.settings;
    return dayEndsAt === null ? 0 : Math.floor((now().getTime() - dayEndsAt * 1_000) / DAY_MS);
  }

  private startDay(): void {
    const day = this.present();
    if (day === this.day) return;
    this.endDay();
    this.dayBefore = this.ledger(day === this.day + 1 ? this.dayBegan : this.ledger());
    this.dayBegan = this.ledger();
    this.day = day;
  }
}
