import type { Settings } from "../model/options";
import type { Budget } from "./budget";

const WINDOW_MS = 2_000;
/** Shown where no limit is set: the highest plan's. */
const SHOWN_BURST = 480;

interface LimitState {
  isOver: boolean;
  /** What the request takes from the company's budget, and the balance before it. */
  tokens: number;
  balance: number;
  headers: Record<string, string>;
}

/** The burst limit per token in a rolling window, then the company's daily budget. */
export class Limits {
  private readonly requests = new Map<string, number[]>();

  constructor(
    private readonly settings: Pick<Settings, "burstLimit" | "now">,
    private readonly budget: Budget,
  ) {}

  /**
   * Takes one request into account and says what its answer's headers show. A request over the burst limit is free.
   * @param operation null where none answers
   */
  count(token: string, operation: string | null, cost: number): LimitState {
    const burst = this.countBurst(token, this.settings.now().getTime());
    const { isOver: isSpent, left: balance, headers } = this.budget.balance(cost);
    const isOver = burst.isOver || isSpent;
    if (!isOver && operation !== null) this.budget.pay(operation, cost);
    if (isSpent && !burst.isOver) this.budget.refuse();
    return {
      isOver,
      tokens: isOver ? 0 : cost,
      balance,
      headers: {
        "x-ratelimit-limit": String(this.settings.burstLimit ?? SHOWN_BURST),
        "x-ratelimit-remaining": String(burst.left),
        "x-ratelimit-reset": String(burst.resetSeconds),
        ...headers,
      },
    };
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
