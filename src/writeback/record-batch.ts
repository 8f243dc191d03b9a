import type { CrmApi } from "../crm/api";
import type { CrmCustomFields, CrmRecordRef, CustomFieldKey } from "../crm/parsing/fields";
import type { StoredWriteErrorCode } from "../entities/writeback";
import { isApplied } from "./field-values";
import { certainFailureOf, type WriteFailure, type WriteOutcome } from "./write-failure";

export interface BatchField {
  key: CustomFieldKey;
  type: string;
  /** As it goes on the wire; null clears the field. */
  value: unknown;
}
export type Batch = readonly [BatchField, ...BatchField[]];

export const FIELD_GONE: WriteOutcome = {
  state: "FAILED",
  failure: { code: "FIELD_NOT_FOUND", message: "The CRM no longer has this field. Nominate another." },
};

export interface RecordReport {
  /** In the order of the batch. */
  outcomes: WriteOutcome[];
  /** The record's custom fields as the CRM last showed them; null where it showed none. */
  seen: CrmCustomFields | null;
  /** Why nothing more is to be sent to this CRM for now; null where it may. */
  stop: WriteFailure | null;
}

/** These hold for whatever is sent next: no second try, and nothing for other records either. */
const STOPPING: ReadonlySet<StoredWriteErrorCode> = new Set(["RATE_LIMITED", "NEEDS_REAUTHORIZATION"]);

const UNKNOWN: WriteOutcome = { state: "UNKNOWN" };
const OTHER_VALUE: WriteFailure = {
  code: "NOT_APPLIED",
  message: "The CRM took the request and holds another value. Look at the field in the CRM.",
};

/** `failure` is null where the answer is lost. */
type Attempt = { seen: CrmCustomFields } | { failure: WriteFailure | null };

/**
 * Writes the fields of one record as one batch; where that fails, each of them once alone (specification 4.3.1). A
 * field is sent at most twice, which does no harm: it is the same value. What may have been written by a lost answer
 * stays UNKNOWN unless a later answer shows it.
 */
export async function writeRecord(
  api: Pick<CrmApi, "setCustomFields">,
  record: CrmRecordRef,
  batch: Batch,
): Promise<RecordReport> {
  const together = await attempt(api, record, batch);
  if ("seen" in together) {
    return { outcomes: batch.map((field) => seenAs(field, together.seen)), seen: together.seen, stop: null };
  }
  const outcomes: WriteOutcome[] = [];
  let seen: CrmCustomFields | null = null;
  let stop = stopOf(together);
  for (const field of batch) {
    const alone: Attempt = stop ? { failure: stop } : await attempt(api, record, [field]);
    if ("seen" in alone) seen = alone.seen;
    else stop ??= stopOf(alone);
    const outcome = "seen" in alone ? seenAs(field, alone.seen) : failed(alone);
    // The lost batch may still take effect: only a value that is seen to be there is certain after it.
    outcomes.push(together.failure || outcome.state === "WRITTEN" ? outcome : UNKNOWN);
  }
  return { outcomes, seen, stop };
}

/** What was not sent at all, because the CRM had said before that it takes nothing now. */
export function notSent(batch: Batch, stop: WriteFailure): RecordReport {
  return { outcomes: batch.map(() => ({ state: "FAILED", failure: stop })), seen: null, stop };
}

async function attempt(
  api: Pick<CrmApi, "setCustomFields">,
  { entity, id }: CrmRecordRef,
  batch: Batch,
): Promise<Attempt> {
  try {
    return { seen: await api.setCustomFields(entity, id, batch) };
  } catch (error) {
    return { failure: certainFailureOf(error) };
  }
}

const stopOf = ({ failure }: { failure: WriteFailure | null }) =>
  failure && STOPPING.has(failure.code) ? failure : null;

function seenAs({ key, type, value }: BatchField, { customFields }: CrmCustomFields): WriteOutcome {
  return isApplied(type, value, customFields[key]) ? { state: "WRITTEN" } : { state: "FAILED", failure: OTHER_VALUE };
}

const failed = ({ failure }: { failure: WriteFailure | null }): WriteOutcome =>
  failure ? { state: "FAILED", failure } : UNKNOWN;
