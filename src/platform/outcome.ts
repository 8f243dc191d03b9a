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
