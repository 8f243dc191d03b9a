import type { Settings } from "../model/options";

const WINDOW_MS = 2_000;
const DAY_MS = 86_400_000;
// Shown where no limit is set: the highest plan's burst, and the daily budget of a large company on it.
const SHOWN_BURST = 480;
const SHOWN_BUDGET = 2_100_000;

export interface LimitState {
  isOver: boolean;
  headers: Record<string, string>;
}

/** The burst limit per token in a rolling window, and the company's daily budget. */
export class Limits {
  private readonly requests = new Map<string, number[]>();
  private day = 0;
  private spent = 0;

  constructor(private readonly settings: Pick<Settings, "burstLimit" | "dailyTokenBudget" | "now">) {}

  /** Takes one request into account and says what its answer's headers show. */
  count(token: string, cost: number): LimitState {
    const now = this.settings.now().getTime();
    this.startDay(now);
    const burst = this.countBurst(token, now);
    const budget = this.settings.dailyTokenBudget;
    const isSpent = budget !== null && !burst.isOver && this.spent + cost > budget;
    // The wire shows the balance before this request is paid for.
    const left = (budget ?? SHOWN_BUDGET) - (budget === null ? this.spent % (SHOWN_BUDGET / 2) : this.spent);
    if (isSpent) this.spent = budget;
    else if (!burst.isOver) this.spent += cost;
    return {
      isOver: burst.isOver || isSpent,
      headers: {
        "x-ratelimit-limit": String(this.settings.burstLimit ?? SHOWN_BURST),
        "x-ratelimit-remaining": String(burst.left),
        "x-ratelimit-reset": String(burst.resetSeconds),
        "x-daily-ratelimit-token-limit": String(budget ?? SHOWN_BUDGET),
        "x-daily-ratelimit-token-remaining": String(Math.max(0, left)),
      },
    };
  }

  /** Once spent, the budget refuses every call until the next day, cheap ones too. */
  private startDay(now: number): void {
    const day = Math.floor(now / DAY_MS);
    if (day !== this.day) this.spent = 0;
    this.day = day;
  }

  private countBurst(token: string, now: number): { isOver: boolean; left: number; resetSeconds: number } {
    const limit = this.settings.burstLimit;
    if (limit === null) return { isOver: false, left: SHOWN_BURST - 1, resetSeconds: WINDOW_MS / 1_000 };
    const recent = (this.requests.get(token) ?? []).filter((at) => at > now - WINDOW_MS);
    const isOver = recent.length >= limit;
    if (!isOver) recent.push(now);
    this.requests.set(token, recent);
    const oldest = recent[0] ?? now;
    return {
      isOver,
      left: limit - recent.length,
      resetSeconds: Math.max(1, Math.ceil((oldest + WINDOW_MS - now) / 1_000)),
    };
  }
}
