/** SENDING: the request may be on its way. The other three are what a caller is shown. */
export const WRITE_STATES = ["SENDING", "WRITTEN", "FAILED", "UNKNOWN"] as const;
export type StoredWriteState = (typeof WRITE_STATES)[number];

export const WRITE_ERROR_CODES = [
  "FIELD_NOT_FOUND",
  "VALUE_REJECTED",
  "NOT_APPLIED",
  "RECORD_NOT_FOUND",
  "FORBIDDEN",
  "RATE_LIMITED",
  "CRM_UNAVAILABLE",
  "NEEDS_REAUTHORIZATION",
  "CRM_ACCOUNT_CLOSED",
  "ANSWER_LOST",
] as const;
export type StoredWriteErrorCode = (typeof WRITE_ERROR_CODES)[number];
