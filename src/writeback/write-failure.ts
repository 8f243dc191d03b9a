import { ConnectionGoneError, NeedsReauthorizationError } from "../connections/connection";
import { CrmError, type CrmFailure, stopBehind } from "../crm/errors";
import { OAuthError } from "../crm/oauth";
import type { StoredWriteErrorCode } from "../entities/write-outcome";
import { ServiceError } from "../platform/errors";

/** It is more than a minute since the receipt: an answer would come after the write counts as abandoned. Nothing was sent. */
export class NotSentInTimeError extends ServiceError {
  readonly code = "NOT_SENT_IN_TIME";
}

export interface WriteFailure {
  code: StoredWriteErrorCode;
  /** What happened and what to do, for people; it ends a sentence "Not written: ...". */
  message: string;
}

/** As a receipt says it. */
export const sentenceOf = ({ message }: WriteFailure): string => `Not written: ${message}`;

/** The CRM took the request and said no. 408, 409 and whatever a proxy or a 5xx says leave open what was done. */
const REFUSALS: Partial<Record<CrmFailure, WriteFailure>> = {
  UNAUTHORIZED: {
    code: "NEEDS_REAUTHORIZATION",
    message: "the CRM refuses a token that was just renewed. If it lasts, disconnect and connect again.",
  },
  ACCOUNT_CLOSED: {
    code: "CRM_ACCOUNT_CLOSED",
    message: "the CRM company's account is not open: its trial is over or it is unpaid. Settle that with the CRM.",
  },
  NOT_FOUND: {
    code: "RECORD_NOT_FOUND",
    message:
      "the record is gone from the CRM, or the authorizing user no longer sees it. Choose another record, or show this one to that user.",
  },
  RATE_LIMITED: {
    code: "RATE_LIMITED",
    message: "the CRM's request limit is used up; other apps share it. Try again later with a new idempotency key.",
  },
};

const FORBIDDEN: WriteFailure = {
  code: "FORBIDDEN",
  message: "the authorizing user or the app lacks a permission in the CRM. Ask the CRM's admin.",
};
const IN_THE_BIN: WriteFailure = {
  code: "RECORD_NOT_FOUND",
  message: "the record is deleted in the CRM. Restore it there, or choose another record.",
};
const REJECTED: WriteFailure = {
  code: "VALUE_REJECTED",
  message: "the CRM does not accept it. Change it, and write it with a new idempotency key.",
};

const unavailable = (why: string): WriteFailure => ({
  code: "CRM_UNAVAILABLE",
  message: `${why} Try again later with a new idempotency key.`,
});

const isClientError = (status = 0) => status >= 400 && status < 500 && status !== 409;

/**
 * Why a write certainly did not take place; null where it may have: no answer, an answer that cannot be read, or one
 * that says nothing of what was done.
 */
export function certainFailureOf(error: unknown): WriteFailure | null {
  if (error instanceof ConnectionGoneError) {
    return {
      code: "NEEDS_REAUTHORIZATION",
      message: "the CRM was disconnected before it was sent. Ask an owner or admin to connect it.",
    };
  }
  if (error instanceof NeedsReauthorizationError) {
    return {
      code: "NEEDS_REAUTHORIZATION",
      message: "the CRM no longer accepts the authorization. Ask an owner or admin to authorize again.",
    };
  }
  const stop = stopBehind(error);
  if (stop) return unavailable(`all calls to the CRM are stopped by the operator of this service (${stop.reason}).`);
  if (error instanceof OAuthError) return unavailable("the access token could not be renewed for now.");
  if (error instanceof NotSentInTimeError)
    return unavailable("the CRM was too slow for it to be sent within a minute.");
  return error instanceof CrmError ? refusalOf(error) : null;
}

function refusalOf({ code, detail: { neverSent, status, crmCode } }: CrmError): WriteFailure | null {
  if (neverSent) return unavailable("the CRM could not be reached.");
  if (!isClientError(status)) return null;
  if (crmCode?.endsWith("_DELETED")) return IN_THE_BIN;
  if (code === "REFUSED") return status === 403 ? FORBIDDEN : REJECTED;
  return REFUSALS[code] ?? null;
}
