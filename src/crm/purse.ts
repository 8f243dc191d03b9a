import type { CrmAnswer } from "./http";

/** What calls are paid from. */
export interface Purse {
  /**
   * Sets a request's price aside, before it is sent: each page has its own, and so has a repeat.
   * @throws BudgetLowError
   */
  spend(price: number): Promise<Payment>;
}

/** One request that is paid for. It hears once what came of it, or never where its answer was lost. */
export interface Payment {
  answered(answer: Pick<CrmAnswer, "status" | "limit" | "day">): void;
  /** Certainly nothing was sent: the price is not spent. */
  unsent(): void;
}

export const PAID_BY_NOBODY: Payment = { answered: () => undefined, unsent: () => undefined };
/** For calls whose company is not known yet. */
export const PURSE_OF_NOBODY: Purse = { spend: async () => PAID_BY_NOBODY };
