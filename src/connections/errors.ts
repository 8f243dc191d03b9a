import { ServiceError } from "../platform/errors";

/** The connection is gone, or belongs to another copy now: whatever asked for a token stops quietly. */
export class ConnectionGoneError extends ServiceError {
  readonly code = "NOT_CONNECTED";
}

/** The CRM no longer accepts the grant; someone must authorize again. */
export class NeedsReauthorizationError extends ServiceError {
  readonly code = "NEEDS_REAUTHORIZATION";
}
