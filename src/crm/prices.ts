import type { CrmAnswer } from "./http";
import type { CrmEntity } from "./parsing/fields";

/** A documented address, and what one request to it costs of the company's tokens for the day. */
export interface Address {
  path: string;
  price: number;
}

const RECORDS: Record<CrmEntity, string> = {
  DEAL: "/api/v2/deals",
  PERSON: "/api/v2/persons",
  ORGANIZATION: "/api/v2/organizations",
};
const FIELDS: Record<CrmEntity, string> = {
  DEAL: "/api/v2/dealFields",
  PERSON: "/api/v2/personFields",
  ORGANIZATION: "/api/v2/organizationFields",
};

/** Every call that this service makes with a token. The prices are those of the CRM's reference (`x-token-cost`). */
export const ADDRESSES = {
  currentUser: { path: "/api/v1/users/me", price: 2 },
  users: { path: "/api/v1/users", price: 20 },
  pipelines: { path: "/api/v2/pipelines", price: 5 },
  stages: { path: "/api/v2/stages", price: 5 },
  organizations: { path: RECORDS.ORGANIZATION, price: 10 },
  persons: { path: RECORDS.PERSON, price: 10 },
  deals: { path: RECORDS.DEAL, price: 10 },
  activities: { path: "/api/v2/activities", price: 10 },
  notes: { path: "/api/v1/notes", price: 20 },
  participants: (dealId: number) => ({ path: `/api/v1/deals/${dealId}/participants`, price: 10 }),
  fields: (entity: CrmEntity) => ({ path: FIELDS[entity], price: 10 }),
  record: (entity: CrmEntity, id: number) => ({ path: `${RECORDS[entity]}/${id}`, price: 1 }),
  createNote: { path: "/api/v1/notes", price: 10 },
  setCustomFields: (entity: CrmEntity, id: number) => ({ path: `${RECORDS[entity]}/${id}`, price: 5 }),
} satisfies Record<string, Address | ((...of: never[]) => Address)>;

/** Tokens that are set aside to pay for calls. */
export interface Reservation {
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
export const NO_RESERVATION: Reservation = { spend: async () => PAID_BY_NOBODY };
