import { Budget, type HeldReservation } from "../../src/connections/budget";
import type { Purpose } from "../../src/connections/budget-rules";
import { CrmApi } from "../../src/crm/api";
import { BudgetLowError } from "../../src/crm/errors";
import type { Clock } from "../../src/platform/clock";
import type { Config } from "../../src/platform/config";
import { startTokens } from "./tokens";

export interface Spender {
  budget: Budget;
  /** Calls of one reservation. */
  api(purpose: Purpose, mayBegin?: () => void): { api: CrmApi; reservation: HeldReservation };
  /** Asks whose the token is, as a run does before anything else. */
  look(): Promise<void>;
  stop(): Promise<void>;
}

/** A process's budget and its calls for one copy, with a pool of their own, composed as the service does it. */
export async function startSpender(
  config: Pick<Config, "databaseUrl" | "crm" | "encryptionKeys" | "logLevel" | "budgetShare">,
  { tenantId, copyId }: { tenantId: number; copyId: number },
  clock: Clock,
): Promise<Spender> {
  const { database, logger, tokens, http, close } = await startTokens(config, () => ({ clock }));
  const budget = new Budget({ database, clock, logger, share: config.budgetShare });
  return {
    budget,
    api(purpose, mayBegin) {
      const reservation = budget.reservation(tenantId, copyId, purpose);
      const source = tokens.of(tenantId, copyId);
      const api = new CrmApi({ http, baseUrl: config.crm.baseUrl, tokens: source, reservation, mayBegin });
      return { api, reservation };
    },
    look: () => tokens.of(tenantId, copyId).verify({ reservation: budget.reservation(tenantId, copyId, "LISTS") }),
    async stop() {
      await budget.close();
      await close();
    },
  };
}

/** @returns what the reservation refuses with; null where the call was made, or the CRM refused it */
export async function refusalOf(call: Promise<unknown>): Promise<BudgetLowError | null> {
  const error = await call.then(
    () => null,
    (failure: unknown) => failure,
  );
  return error instanceof BudgetLowError ? error : null;
}

/** Pages of persons by so many callers at once, until the reservation refuses all of them or `most` are read. */
export async function readUntilLow(api: CrmApi, callers: number, most = 10_000): Promise<number> {
  let pages = 0;
  const caller = async () => {
    while (pages < most && !(await refusalOf(api.persons({ cursor: null })))) pages += 1;
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return pages;
}
