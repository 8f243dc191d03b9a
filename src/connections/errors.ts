import { OAuthError } from "../crm/oauth";
import { ServiceError } from "../platform/errors";

/** The connection is gone, or belongs to another copy now: whatever asked for a token stops quietly. */
export class ConnectionGoneError extends ServiceError {
  readonly code = "NOT_CONNECTED";
}

/** The CRM no longer accepts the grant; someone must authorize again. */
export class NeedsReauthorizationError extends ServiceError {
  readonly code = "NEEDS_REAUTHORIZATION";
}

/** Another process renews, or this one was frozen and has lost the right to: nothing was sent and nothing is noted. */
export class RenewalHeldUpError extends OAuthError {
  constructor(options?: ErrorOptions) {
    super("OUTAGE", "The access is being renewed by another process, which takes too long. Try again.", options);
  }
}
