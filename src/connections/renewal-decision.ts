import type { TokenFailure } from "../crm/token-outcome";
import type { ReauthorizationReason } from "../entities/connection";
import type { Trouble } from "./trouble";

/** What a renewal that brought no token does to the connection. */
export type RenewalDecision =
  /** The state moves, and nothing asks the CRM again by itself. */
  | { next: "NEEDS_REAUTHORIZATION"; reason: ReauthorizationReason }
  /** The state stays CONNECTED with trouble, and the next need asks again. */
  | { next: "CONNECTED"; trouble: Trouble; settled: boolean };

const OUTAGE: Trouble = {
  code: "CRM_UNAVAILABLE",
  message: "The CRM did not renew the access for now. It is asked again at the next need; nothing has to be done.",
};
const MISCONFIGURED: Trouble = {
  code: "SERVICE_MISCONFIGURED",
  message: "The CRM does not accept this service's app registration. The service's operator has to mend it.",
};

/**
 * Decision 0004: only `invalid_grant` is revocation, and after a renewal whose answer was lost it may as well be the lost
 * rotation. `settled`: whether this request certainly used nothing up, so that no trace of it has to stay.
 */
export function decideRenewal(failure: TokenFailure, wasUnconfirmed: boolean): RenewalDecision {
  switch (failure) {
    case "INVALID_GRANT":
      return { next: "NEEDS_REAUTHORIZATION", reason: wasUnconfirmed ? "RENEWAL_UNCONFIRMED" : "GRANT_REVOKED" };
    case "MISCONFIGURED":
      return { next: "CONNECTED", trouble: MISCONFIGURED, settled: !wasUnconfirmed };
    case "OUTAGE":
      return { next: "CONNECTED", trouble: OUTAGE, settled: !wasUnconfirmed };
    case "UNKNOWN":
      return { next: "CONNECTED", trouble: OUTAGE, settled: false };
  }
}
