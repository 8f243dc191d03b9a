/**
 * The base of every failure that this service names. `code` is stable and machine-readable, `message` is for people
 * and never carries a secret, `cause` is what happened below.
 */
export abstract class ServiceError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Something happened that a reader cannot be told any more. */
export class EventsMissedError extends ServiceError {
  readonly code = "EVENTS_MISSED";

  constructor() {
    super("Something happened that could not be told. Read anew what you show.");
  }
}

/** The code by which Node tells failures apart (EADDRINUSE, EPERM); undefined where what was thrown has none. */
export function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}

/** The message of anything thrown, for a log line or an operator; an AggregateError (Node's dialling) has its own. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  if (error instanceof Error) return error.message || error.name;
  return String(error);
}

/** A refusal that a client should handle: data, not an exception. The message says what to do. */
export interface Refused<Code extends string = string> {
  ok: false;
  code: Code;
  message: string;
  field?: string;
  /** From when on it may be tried again, where time changes that. */
  retryAt?: Date;
}

export type Outcome<T, Code extends string = string> = { ok: true; value: T } | Refused<Code>;

export const accepted = <T>(value: T): { ok: true; value: T } => ({ ok: true, value });

export const refused = <Code extends string>(code: Code, message: string, field?: string): Refused<Code> => ({
  ok: false,
  code,
  message,
  field,
});
