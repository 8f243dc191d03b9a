import { ConnectionGoneError, NeedsReauthorizationError } from "../connections/connection";
import type { FieldListRefusal } from "../connections/field-mappings";
import type { CrmApi } from "../crm/api";
import { CrmError, type CrmFailure, explain, proofRefusedBehind, stopBehind } from "../crm/errors";
import { OAuthError } from "../crm/oauth";
import type { CrmRecordRef } from "../crm/parsing/fields";
import type { TenantScope } from "../database/database";
import type { StoredWriteErrorCode } from "../entities/writeback";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../platform/clock";
import { type Refused, ServiceError } from "../platform/errors";
import { UnsealError } from "../platform/keyring";

/** It is more than a minute since the receipt: an answer would come after the write counts as abandoned. Nothing was sent. */
export class NotSentInTimeError extends ServiceError {
  readonly code = "NOT_SENT_IN_TIME";
}

export interface WriteFailure {
  code: StoredWriteErrorCode;
  /** What happened and what to do, for people. */
  message: string;
}

/** What became of a write. UNKNOWN: its answer is lost, and it may have taken place. */
export type WriteOutcome =
  | { state: "WRITTEN"; crmNoteId?: number }
  | { state: "FAILED"; failure: WriteFailure }
  | { state: "UNKNOWN" };

/** What is known of a write, and what was seen with it. */
export interface Found {
  outcome: WriteOutcome;
  /** Brings what was seen into the copy. */
  copy?(scope: TenantScope, now: Date): Promise<void>;
}

/** A field may hold a part of what was sent, in place of what it held. */
const IN_PART: ReadonlySet<StoredWriteErrorCode> = new Set(["NOT_APPLIED", "ANSWER_LOST"]);

/** As a receipt says it. */
export const sentenceOf = ({ code, message }: WriteFailure): string =>
  IN_PART.has(code) ? message : `Not written: ${message.charAt(0).toLowerCase()}${message.slice(1)}`;

const LATER = "Try again later with a new idempotency key.";

/** The CRM took the request and said no. 408, 409 and whatever a proxy or a 5xx says leave open what was done. */
const REFUSALS: Partial<Record<CrmFailure, WriteFailure>> = {
  UNAUTHORIZED: { code: "NEEDS_REAUTHORIZATION", message: explain("UNAUTHORIZED") },
  ACCOUNT_CLOSED: { code: "CRM_ACCOUNT_CLOSED", message: explain("ACCOUNT_CLOSED") },
  REFUSED: { code: "FORBIDDEN", message: explain("REFUSED") },
  NOT_FOUND: {
    code: "RECORD_NOT_FOUND",
    message: explain("NOT_FOUND", {
      what: "The record is gone from the CRM, or the authorizing user no longer sees it.",
      todo: "Choose another record, or show this one to that user.",
    }),
  },
  RATE_LIMITED: { code: "RATE_LIMITED", message: explain("RATE_LIMITED", { todo: LATER }) },
};

export const IN_THE_BIN: WriteFailure = {
  code: "RECORD_NOT_FOUND",
  message: "The record is deleted in the CRM. Restore it there, or choose another record.",
};
/** Said of a record that no list shows, where the CRM refuses what is written to it as it would refuse a wrong value. */
const OUT_OF_SIGHT: WriteFailure = {
  code: "RECORD_NOT_FOUND",
  message:
    "The record is archived or deleted in the CRM, or the authorizing user no longer sees it. Bring it back there, or choose another record.",
};
const REJECTED: WriteFailure = {
  code: "VALUE_REJECTED",
  message: "The CRM does not accept it. Change it, and write it with a new idempotency key.",
};

export const FIELD_GONE: WriteOutcome = {
  state: "FAILED",
  failure: { code: "FIELD_NOT_FOUND", message: "The CRM no longer has this field. Nominate another." },
};
export const NOT_APPLIED: WriteFailure = {
  code: "NOT_APPLIED",
  message:
    "The CRM took the request, and the field now holds another value than was sent, maybe a part of it. Look at it in the CRM.",
};
export const OTHER_VALUE: WriteOutcome = {
  state: "FAILED",
  failure: {
    code: "ANSWER_LOST",
    message: "The CRM's answer was lost, and the field holds another value. Write it again with a new idempotency key.",
  },
};

/** Of a value that may or may not fit, where the list that would tell could not be read. */
export const notLookedAt = ({ code, message }: Refused<FieldListRefusal>): WriteFailure => ({
  code: code === "NEEDS_REAUTHORIZATION" ? code : "CRM_UNAVAILABLE",
  message: `Its field could not be looked at in the CRM. ${message} Use a new idempotency key for that.`,
});

const unavailable = (message: string): WriteFailure => ({ code: "CRM_UNAVAILABLE", message });
const unauthorized = (message: string): WriteFailure => ({ code: "NEEDS_REAUTHORIZATION", message });

/**
 * Why a write certainly did not take place; null where it may have: no answer, an answer that cannot be read, or one
 * that says nothing of what was done.
 */
export function certainFailureOf(error: unknown): WriteFailure | null {
  if (error instanceof ConnectionGoneError) {
    return unauthorized("The CRM was disconnected before it was sent. Ask an owner or admin to connect it.");
  }
  if (error instanceof NeedsReauthorizationError) {
    return unauthorized("The CRM no longer accepts the authorization. Ask an owner or admin to authorize again.");
  }
  const stop = stopBehind(error);
  if (stop)
    return unavailable(`All calls to the CRM are stopped by the operator of this service (${stop.reason}). ${LATER}`);
  const unproven = proofRefusedBehind(error);
  const refusal = unproven && REFUSALS[unproven];
  if (refusal) return refusal;
  if (error instanceof OAuthError) return unavailable(explain("NO_TOKEN", { todo: LATER }));
  if (error instanceof UnsealError) {
    return unavailable(`The service has lost the key to its access, and its operator has to put it back. ${LATER}`);
  }
  if (error instanceof NotSentInTimeError) {
    return unavailable(`The CRM was too slow for it to be sent within a minute. ${LATER}`);
  }
  return error instanceof CrmError ? refusalOf(error) : null;
}

const UNREACHED = `The CRM could not be reached, or other calls to it were in front of this one for too long. ${LATER}`;

function refusalOf({ code, detail: { neverSent, status, crmCode } }: CrmError): WriteFailure | null {
  if (neverSent) return unavailable(UNREACHED);
  const refusal = code === "REFUSED" && status !== 403 ? REJECTED : (REFUSALS[code] ?? null);
  return refusal && crmCode?.endsWith("_DELETED") ? IN_THE_BIN : refusal;
}

/** What was rejected may be right, and its record out of sight: the list tells. A look that fails says nothing. */
export async function inSight(
  api: Pick<CrmApi, "isShown">,
  record: CrmRecordRef,
  failure: WriteFailure | null,
): Promise<WriteFailure | null> {
  const isDoubted = failure?.code === "VALUE_REJECTED" && !(await api.isShown(record).catch(() => true));
  return isDoubted ? OUT_OF_SIGHT : failure;
}

/** Whatever the CRM, its token endpoint or a connection that has just ended may answer: the next look-up asks again. */
export function isOfTheCrm(error: unknown): boolean {
  return [CrmError, OAuthError, NeedsReauthorizationError, ConnectionGoneError].some((kind) => error instanceof kind);
}

/** A record that the CRM does not show was looked at, and proves nothing. */
export function outOfSight(error: unknown): null {
  if (error instanceof CrmError && error.code === "NOT_FOUND") return null;
  throw error;
}

/** As a receipt says it that is not looked up any more. */
export const NO_MORE_LOOKS = {
  note_write:
    "The CRM's answer was lost, and looks by its last line have shown neither that the note is there nor that it is not. " +
    "It is still looked for among the notes that syncs read, and never sent again. Search the CRM for it.",
  field_write:
    "The CRM's answer was lost, and a week later the record is gone from the CRM, or out of the authorizing user's sight. " +
    "It is not read any more. Where it comes back, look at the field there, or write it again with a new idempotency key.",
};

/**
 * No request is begun later than this after its receipt; with the longest answer and some room to spare, one that has
 * not ended by then has gone with its process.
 */
export const BEGIN_WITHIN_MS = MINUTE_MS;
export const ABANDONED_AFTER_MS = 2 * MINUTE_MS;

/**
 * So long another call with the same key waits for a sending; then it is told UNKNOWN. The process that sends may be frozen:
 * nobody is to wait half a minute.
 */
export const AWAITED_MS = 25 * SECOND_MS;

/** What the CRM took in may show so much later; a complete look that begins after it and finds nothing is proof. */
export const SETTLED_AFTER_MS = 3 * MINUTE_MS;

/** Between one look-up and the next, counted from the end of the sending. They are waited for by the database's clock. */
const PAUSES_S = [5, 25, 60, 95, 300, 900, 3_600, 10_800];
const LONGEST_PAUSE_S = 21_600;

/** In milliseconds, after `lookUps` of them. */
export const pauseBefore = (lookUps: number): number => (PAUSES_S[lookUps] ?? LONGEST_PAUSE_S) * SECOND_MS;

export interface Look {
  begunAt: Date;
  /** Looks that came before it. */
  lookUps: number;
  /** Whether the CRM holds what was sent. */
  found: boolean;
  /** Whether all that was to be looked at was read and understood. */
  complete: boolean;
}

/** Before one look that can prove an absence so many have waited. */
export const LOOKS_BEFORE_PROOF = 3;
/** Machines whose clocks are wrong are off by minutes: so late it is late by any of them. */
const LATE_BY_ANY_CLOCK_MS = HOUR_MS;

/**
 * What a look-up shows of a write whose sending ended at `sentAt`, maybe by a clock that is behind that of who looks. ABSENT is no
 * proof by itself: the notes of a record that is no longer shown are elsewhere, with the one into which it was merged, or nowhere.
 */
export function verdictOf(sentAt: Date, look: Look): "WRITTEN" | "ABSENT" | "UNKNOWN" {
  if (look.found) return "WRITTEN";
  const laterBy = look.begunAt.getTime() - sentAt.getTime();
  const lateEnough = laterBy >= (look.lookUps >= LOOKS_BEFORE_PROOF ? SETTLED_AFTER_MS : LATE_BY_ANY_CLOCK_MS);
  return lateEnough && look.complete ? "ABSENT" : "UNKNOWN";
}
