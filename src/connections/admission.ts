import type { CrmCurrentUser } from "../crm/parsing/records";
import type { ConnectionState } from "../entities/connection";

/** What is known of the tenant's connection when a new authorization arrives. */
export interface Present {
  state: ConnectionState;
  /** Whose view the copy holds; null where there is no copy. */
  bound: { companyId: number; userId: number } | null;
}

export type Admission = "NEW_COPY" | "SAME_COPY" | "ANOTHER_CRM_CONNECTED" | "DIFFERENT_CRM_COMPANY";

/**
 * What a validated authorization does (specification 3; decision 0012): a connected CRM is never replaced, another
 * company's must be disconnected first, and another user of the company sees other records, so it needs a new copy.
 */
export function admit(present: Present, user: Pick<CrmCurrentUser, "id" | "companyId">): Admission {
  if (present.state === "CONNECTED") return "ANOTHER_CRM_CONNECTED";
  if (present.state === "NOT_CONNECTED" || !present.bound) return "NEW_COPY";
  if (present.bound.companyId !== user.companyId) return "DIFFERENT_CRM_COMPANY";
  return present.bound.userId === user.id ? "SAME_COPY" : "NEW_COPY";
}
