import type { Actor } from "../auth/actor";
import { areLabelsOld } from "../connections/field-lists";
import { type FieldMappings, readFieldMappings } from "../connections/field-mappings";
import { CrmError } from "../crm/errors";
import type { CrmCustomFields, CrmField } from "../crm/parsing/fields";
import type { TenantScope } from "../database/database";
import { levelOf } from "../database/errors";
import type { MatchedEntity } from "../entities/meeting";
import type { FieldMappingRow, FieldWriteRow } from "../entities/writeback";
import { accepted, type Outcome } from "../platform/errors";
import {
  type AskedFields,
  batchesOf,
  type FieldsPlan,
  notSent,
  type PlanRefusal,
  planOfFields,
  type ReceiptedField,
  type RecordBatch,
  type RecordReport,
  writeRecord,
} from "./field-batch";
import { isApplied, notWritable } from "./field-values";
import { type LookedUp, LookUps } from "./look-ups";
import {
  FIELD_GONE,
  type Found,
  IN_THE_BIN,
  notLookedAt,
  OTHER_VALUE,
  verdictOf,
  type WriteFailure,
  type WriteOutcome,
} from "./outcomes";
import { FIELD, makeReceipts } from "./receipts";
import { copyFields, type TargetsRefusal } from "./targets";
import {
  type BegunWrite,
  bring,
  callsToWrite,
  hashOf,
  type Intent,
  settleFound,
  type WritebackParts,
  Writing,
  type WritingRefusal,
} from "./writing";

export type WriteFieldsRefusal = WritingRefusal | TargetsRefusal | PlanRefusal;

export interface FieldWriteParts extends WritebackParts {
  mappings: FieldMappings;
}

/** Writes nominated fields (decision 0028), and finds out about those whose answer was lost. */
export class FieldWrites {
  readonly lookUps: LookUps<FieldWriteRow>;
  readonly #writing: Writing<FieldWriteRow>;

  constructor(private readonly parts: FieldWriteParts) {
    this.#writing = new Writing(FIELD, parts);
    this.lookUps = new LookUps(FIELD, parts, (lookedUp) => this.#findOut(lookedUp));
  }

  write(actor: Actor, asked: AskedFields): Promise<Outcome<FieldWriteRow[], WriteFieldsRefusal>> {
    return this.#writing.write(
      actor,
      async () => accepted(intentOf(asked)),
      (intent) => this.#begin(actor, asked, intent),
    );
  }

  close(): Promise<void> {
    return this.#writing.close();
  }

  /** What does not fit a field as it was last seen may fit it now, and a label may be another option's: the CRM's list decides. */
  async #begin(
    actor: Actor,
    asked: AskedFields,
    intent: Intent,
  ): Promise<Outcome<BegunWrite<FieldWriteRow>, TargetsRefusal | PlanRefusal>> {
    const { database, mappings } = this.parts;
    const inDoubt = new Set<MatchedEntity>();
    const begun = await database.tenant(actor.tenantId).transaction(async (scope) => {
      const planned = await planOfFields(scope, asked, this.parts.clock());
      if (!planned.ok) return planned;
      for (const field of planned.value.fields) if (field.inDoubt) inDoubt.add(field.target.entity);
      return inDoubt.size > 0 ? null : accepted(await this.#makeReceipts(scope, actor, intent, planned.value));
    });
    if (begun) return begun;
    const unread = new Map<MatchedEntity, WriteFailure>();
    for (const entity of inDoubt) {
      const list = await mappings.fields(actor.tenantId, entity);
      if (!list.ok) unread.set(entity, notLookedAt(list));
    }
    return database.tenant(actor.tenantId).transaction(async (scope) => {
      const planned = await planOfFields(scope, asked, this.parts.clock(), unread);
      return planned.ok ? accepted(await this.#makeReceipts(scope, actor, intent, planned.value)) : planned;
    });
  }

  /** Makes the receipts in the transaction that has planned them, and so has proved that the targets are matched. */
  async #makeReceipts(
    scope: TenantScope,
    { userId }: Actor,
    intent: Intent,
    { held, fields }: FieldsPlan,
  ): Promise<BegunWrite<FieldWriteRow>> {
    const shared = { held, ...intent, requestedBy: userId, requestedAt: this.parts.clock() };
    const each = fields.map(({ target, failure, key, value }, position) => ({
      target,
      failure,
      own: [position, key, JSON.stringify(value)],
    }));
    const { receipts, areOurs } = await makeReceipts(scope, FIELD, shared, each);
    const toSend = receipts.flatMap((receipt, position) => {
      const field = fields[position];
      return areOurs && field && !field.failure ? [{ ...field, receipt }] : [];
    });
    return { receipts, send: toSend.length > 0 ? () => this.#send(receipts, toSend) : null };
  }

  /** The only place that sends values, and only who has just made the receipts comes here: one record after another. */
  async #send(receipts: FieldWriteRow[], toSend: readonly ReceiptedField[]): Promise<FieldWriteRow[]> {
    const settled = new Map(receipts.map((receipt) => [receipt.id, receipt]));
    const seen: [FieldWriteRow, CrmCustomFields][] = [];
    let stop: WriteFailure | null = null;
    for (const batch of batchesOf(toSend)) {
      const { receipt, target } = batch[0];
      const report: RecordReport = stop
        ? notSent(batch, stop)
        : await writeRecord(callsToWrite(this.parts, receipt), target, batch);
      stop = report.stop;
      const outcomes = stop ? report.outcomes : await this.#explained(batch, report.outcomes);
      for (const row of await this.#settle(batch, { ...report, outcomes })) settled.set(row.id, row);
      if (report.seen) seen.push([receipt, report.seen]);
    }
    // Behind all: what the copy waits for would keep the next record's value from being sent in time.
    const copy = async (scope: TenantScope) => {
      for (const [{ copyId, entity }, record] of seen) await copyFields(scope, copyId, entity, record);
    };
    if (seen[0]) await bring(this.parts, seen[0][0], copy);
    return [...settled.values()];
  }

  /** The CRM refuses a wrong value and an unknown field alike; its list tells which it was. */
  async #explained(batch: RecordBatch, outcomes: WriteOutcome[]): Promise<WriteOutcome[]> {
    const explained: WriteOutcome[] = [];
    for (const [position, outcome] of outcomes.entries()) {
      const receipt = isRejected(outcome) && batch[position]?.receipt;
      // A look that fails says nothing.
      const field = receipt ? await this.#fieldOf(receipt).catch(() => undefined) : undefined;
      if (field?.writable === false) explained.push(rejectedFor(notWritable(field)));
      else explained.push(field === null ? FIELD_GONE : outcome);
    }
    return explained;
  }

  async #settle(batch: RecordBatch, { outcomes, errors, seen }: RecordReport): Promise<FieldWriteRow[]> {
    const settled: FieldWriteRow[] = [];
    for (const [position, { receipt }] of batch.entries()) {
      const outcome = outcomes[position];
      if (!outcome) continue;
      const row = await settleFound(this.parts, FIELD, receipt, { outcome });
      settled.push(row);
      const { tenantId, id: writeId, state, errorCode: code } = row;
      const err = state === "WRITTEN" ? undefined : errors[position];
      const level = err ? levelOf(err) : "info";
      const what = err ? "a field was not seen written" : "a field was sent to the CRM";
      this.parts.logger[level]({ tenantId, writeId, state, code, correlationId: seen?.correlationId, err }, what);
    }
    return settled;
  }

  /** Reads the record: a value that it does not hold long after the sending was not written. */
  async #findOut({ receipt, copyId, api, begunAt, sentAt }: LookedUp<FieldWriteRow>): Promise<Found | null> {
    const { entity, targetId, fieldKey, value } = receipt;
    // First: of a record that cannot be read nothing is found out, and the list costs the company ten times as much.
    const seen = await api.customFieldsOf(entity, targetId);
    const field = await this.#fieldOf(receipt);
    const found = field !== null && isApplied(field.type, value, seen.customFields[fieldKey]);
    const verdict = verdictOf(sentAt, { begunAt, lookUps: receipt.lookUps, found, complete: true });
    if (verdict === "UNKNOWN") return null;
    const copy = (scope: TenantScope) => copyFields(scope, copyId, entity, seen);
    if (verdict === "WRITTEN") return { outcome: { state: "WRITTEN" }, copy };
    if (seen.deleted) return { outcome: { state: "FAILED", failure: IN_THE_BIN } };
    return { outcome: field === null ? FIELD_GONE : OTHER_VALUE, copy };
  }

  /** By a list that is at most a minute old; null: the CRM has no such field. */
  async #fieldOf({ tenantId, entity, fieldKey }: FieldWriteRow): Promise<SeenField | null> {
    const { database, mappings, clock } = this.parts;
    const kept = (await readFieldMappings(database.tenant(tenantId))).find((field) => field.entity === entity);
    if (kept?.fieldKey === fieldKey && !areLabelsOld(kept.checkedAt, clock()))
      return kept.health === "MISSING_IN_CRM" ? null : seenOf(kept);
    const list = await mappings.fields(tenantId, entity);
    if (!list.ok) throw new CrmError("UNAVAILABLE", list.message);
    return list.value.find(({ key }) => key === fieldKey) ?? null;
  }
}

type SeenField = Pick<CrmField, "name" | "type" | "writable">;
const seenOf = ({ fieldName, fieldType, health }: FieldMappingRow): SeenField => ({
  name: fieldName,
  type: fieldType,
  writable: health !== "NOT_WRITABLE",
});

const rejectedFor = (message: string): WriteOutcome => ({
  state: "FAILED",
  failure: { code: "VALUE_REJECTED", message },
});
const isRejected = (outcome: WriteOutcome) => outcome.state === "FAILED" && outcome.failure.code === "VALUE_REJECTED";

function intentOf({ meetingId, values, idempotencyKey }: AskedFields): Intent {
  const sent = values.map(({ entity, targetId, value }) => [entity, targetId, value]);
  return { idempotencyKey, inputHash: hashOf([meetingId, sent]) };
}
